"""Kafka Connect's single message transforms and predicates, one module per group."""
