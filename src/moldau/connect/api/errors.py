"""What connectors raise, and how Connect calls it in dead-letter headers and REST answers."""

from __future__ import annotations

from moldau.config import ConfigError
from moldau.data.errors import DataError, SchemaBuilderError, SchemaProjectorError

__all__ = [
    "AlreadyExistsError",
    "ConfigError",
    "ConnectError",
    "DataError",
    "IllegalWorkerStateError",
    "NotFoundError",
    "RetriableError",
    "SchemaBuilderError",
    "SchemaProjectorError",
    "java_name",
]


class ConnectError(Exception):
    """A failure that ends the task, unless `errors.tolerance` says otherwise."""


class RetriableError(ConnectError):
    """The target or source is down for now: the same call is made again, later.

    A sink's `put` and a source's `poll` are repeated without limit, conversions and transforms
    within `errors.retry.timeout`. Such a failure never sends a record to a dead-letter topic.
    """


class NotFoundError(ConnectError):
    """A connector, task or plug-in that does not exist."""


class AlreadyExistsError(ConnectError):
    """A connector of that name exists."""


class IllegalWorkerStateError(ConnectError):
    """A call that is not allowed at this time, such as from a task that has not started."""


_ERRORS = "org.apache.kafka.connect.errors."
_JAVA_NAMES: dict[type[BaseException], str] = {
    RetriableError: _ERRORS + "RetriableException",
    NotFoundError: _ERRORS + "NotFoundException",
    AlreadyExistsError: _ERRORS + "AlreadyExistsException",
    IllegalWorkerStateError: _ERRORS + "IllegalWorkerStateException",
    ConnectError: _ERRORS + "ConnectException",
    SchemaBuilderError: _ERRORS + "SchemaBuilderException",
    SchemaProjectorError: _ERRORS + "SchemaProjectorException",
    DataError: _ERRORS + "DataException",
    ConfigError: "org.apache.kafka.common.config.ConfigException",
}


def java_name(error: BaseException) -> str:
    """The class name that Connect's users look for; Python's own for any other error."""
    for kind in type(error).__mro__:
        if kind in _JAVA_NAMES:
            return _JAVA_NAMES[kind]
    return f"{type(error).__module__}.{type(error).__qualname__}"
