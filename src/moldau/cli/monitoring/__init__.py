"""Metrics and monitoring."""
