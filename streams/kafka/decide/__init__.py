"""Stateful stages on Kafka as Faust agents."""
