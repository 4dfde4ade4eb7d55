"""The index of a Broker: documents made from summaries, in tantivy or OpenSearch."""
