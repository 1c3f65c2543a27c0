"""Errors that a tool finds by itself."""


class Refused(Exception):
    """An error that the tool finds by itself; `reporting_as` adds Kafka's prefix."""
