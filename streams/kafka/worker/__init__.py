"""The worker process: supervision, watchdog, checks before the start, telemetry."""
