"""Converters between typed values and bytes: Kafka Connect's own, and a Schema Registry's."""
