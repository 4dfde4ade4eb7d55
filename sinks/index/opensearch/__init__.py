"""The index in OpenSearch."""
