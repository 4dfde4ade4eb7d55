"""Access to a Kafka cluster: administration, log, Schema Registry, offsets."""
