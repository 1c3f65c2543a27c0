"""Splunk's HTTP Event Collector: records as events."""
