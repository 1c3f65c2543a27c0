"""Errors of the client as the one line that a tool prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused

__all__ = ["message_of", "reporting_as"]


@contextmanager
def reporting_as(prefix: str, *, to_stdout: bool = False) -> Iterator[None]:
    """Turns refusals and errors of the client into the one line that Kafka's tool prints."""
    from moldau.client.errors import ConfigError as ClientConfigError
    from moldau.client.errors import KafkaError

    try:
        yield
    except (Refused, KafkaError, ClientConfigError) as error:
        raise ToolError(f"{prefix}{message_of(error)}", to_stdout=to_stdout) from None


def message_of(error: BaseException) -> str:
    """The error as Kafka's tool prints it: the broker's message if there is one."""
    words = getattr(error, "message", "")
    if " " not in words:
        # Only a name, or nothing: the error's own text is better.
        words = str(error) or type(error).__name__
    return " ".join(line.strip() for line in str(words).splitlines()).strip()
