"""Decisions of a Broker: which summaries it publishes, and which are copies."""
