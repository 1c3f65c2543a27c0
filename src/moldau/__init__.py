"""Moldau: the Kafka platform in Python."""

__version__ = "0.1.0"
