"""Output of commands while they run and when they end."""
