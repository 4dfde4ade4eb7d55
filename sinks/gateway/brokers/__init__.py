"""All Brokers of a gateway: their list, the statistics of their words, searches in one or in several."""
