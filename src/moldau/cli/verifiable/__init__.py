"""Clients that report every event as JSON, for Kafka's system tests."""
