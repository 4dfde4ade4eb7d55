"""The index in tantivy, in the data folder."""
