"""What a Broker decides: which summaries it publishes, and which are copies."""
