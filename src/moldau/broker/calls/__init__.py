"""Requests of this broker to other brokers: which, gathered and sent."""
