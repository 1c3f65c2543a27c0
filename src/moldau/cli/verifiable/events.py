"""The events of the verifiable tools: JSON objects, one per line, with time and name in front."""

from __future__ import annotations

import threading
import time
from typing import TextIO

from moldau.cli.support.java_errors import as_java
from moldau.client.errors import KafkaError
from moldau.wire.message_json import compact_json

__all__ = ["Events", "java_class"]


class Events:
    """Prints events; several threads may report at the same time."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._lock = threading.Lock()

    def report(self, name: str, **fields: object) -> None:
        event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}
        with self._lock:
            # Flushed at once: the test reads events as they come.
            print(compact_json(event), file=self._output, flush=True)


def java_class(error: BaseException) -> str:
    """The class that Kafka's tool would name."""
    if isinstance(error, KafkaError):
        return as_java(error).partition(":")[0]
    return f"{type(error).__module__}.{type(error).__qualname__}"
