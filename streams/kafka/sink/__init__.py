"""The index sink on Kafka."""
