"""The fetch and essence stages on Kafka."""
