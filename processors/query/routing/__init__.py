"""Searches over several Brokers: statistics of their words, the choice of the best, and one list of hits."""
