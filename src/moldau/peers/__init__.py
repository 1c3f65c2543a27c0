"""Calls to Kafka nodes: channels over connections that come and go."""
