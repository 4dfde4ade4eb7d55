"""The Gatherer's database: which summaries each object has."""
