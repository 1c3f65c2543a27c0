"""What can go wrong between this machine and a running Spark: one line each, with what to do."""


class SparkRuntimeError(Exception):
    """Spark cannot be had or does not run; the message is complete for a user."""


class MissingPackage(SparkRuntimeError):
    """A Python package of the extra `spark` is not installed."""


class JavaNotFound(SparkRuntimeError):
    """There is no Java that Spark runs on."""


class ServerStartError(SparkRuntimeError):
    """The Connect server ended at its start, or did not answer in time."""


class ServerNotRunning(SparkRuntimeError):
    """Nobody runs a Connect server from this folder."""


class ConnectorUnavailable(SparkRuntimeError):
    """Spark's own connector for topics cannot be had here."""
