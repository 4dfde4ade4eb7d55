"""The Gatherer's database as one stream: a sink over `summaries` with ready compressed SOIF."""
