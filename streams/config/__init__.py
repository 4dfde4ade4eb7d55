"""Settings, from harvest.toml, the environment and flags."""
