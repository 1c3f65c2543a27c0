"""What a tool itself refuses."""


class Refused(Exception):
    """What a tool itself finds wrong; `reporting_as` puts Kafka's words before it."""
