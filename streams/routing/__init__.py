"""Searches over several Brokers: those of the data folder and of other gateways."""
