"""Where source offsets are kept: in a file (standalone) or in a compacted topic (distributed).

The file has one line of JSON per partition: `{"key": ["connector", {...}], "value": {...}}`. Java's
worker has a serialized HashMap there, which only Java reads.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from moldau.client import KafkaError
from moldau.connect.api import ConnectError, SourcePartition
from moldau.connect.machine.source_offsets import SourceOffsets, key_bytes, value_bytes
from moldau.connect.runtime.topic_log import TopicLog

logger = logging.getLogger(__name__)

#: Longer than a transaction can stay open by default.
_OPEN_TRANSACTIONS_S = 90.0
Offsets = Mapping[SourcePartition, Mapping[str, Any] | None]


class OffsetStore(Protocol):
    """Reading waits for what is written already; writing returns when it is stored."""

    def get(
        self, connector: str, partition: Mapping[str, Any], *, wait: bool = True
    ) -> dict[str, Any] | None:
        """With `wait`, also for transactions that are open: one may hold what is asked for back.
        A task asks so, after it has fenced its own earlier ones."""

    def all(self, connector: str) -> dict[SourcePartition, dict[str, Any]]: ...

    def put(self, connector: str, offsets: Offsets, timeout_s: float) -> None: ...

    def send(self, connector: str, offsets: Offsets) -> None:
        """As `put`, without waiting; what fails is logged."""


class Reader:
    """What a connector or task sees of its offsets."""

    def __init__(self, store: OffsetStore, connector: str, *, wait: bool = True) -> None:
        self._store = store
        self._connector = connector
        self._wait = wait

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._store.get(self._connector, partition, wait=self._wait)

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(each) for each in partitions]


class FileOffsets:
    """Offsets in memory, written to a file as a whole: a new file takes the place of the old."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._offsets = SourceOffsets()
        self._load()

    def _load(self) -> None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConnectError(f"{self._path}: {error.strerror}") from error
        if data.startswith(b"\xac\xed"):
            raise ConnectError(
                f"{self._path} was written by Java's Connect, whose format only Java reads. Set "
                "offset.storage.file.filename to another file; sources then begin at the start"
            )
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                node = json.loads(line)
                key, value = node["key"], node["value"]
            except (ValueError, KeyError, TypeError):
                raise ConnectError(
                    f"{self._path}, line {number}: no offset. Repair or remove the file"
                ) from None
            self._offsets.replay(json.dumps(key).encode(), json.dumps(value).encode())

    def get(
        self, connector: str, partition: Mapping[str, Any], *, wait: bool = True
    ) -> dict[str, Any] | None:
        with self._lock:
            return self._offsets.get(connector, partition)

    def all(self, connector: str) -> dict[SourcePartition, dict[str, Any]]:
        with self._lock:
            return self._offsets.all(connector)

    def put(self, connector: str, offsets: Offsets, timeout_s: float) -> None:
        with self._lock:
            for partition, offset in offsets.items():
                self._offsets.replay(key_bytes(connector, partition), value_bytes(offset))
            lines = [
                b'{"key":' + key + b',"value":' + value + b"}\n"
                for key, value in self._offsets.records()
            ]
            self._replace(b"".join(lines))

    def send(self, connector: str, offsets: Offsets) -> None:
        self.put(connector, offsets, 0.0)

    def _replace(self, data: bytes) -> None:
        fresh = self._path.with_name(self._path.name + ".tmp")
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)


class TopicOffsets:
    """Offsets in a compacted topic."""

    def __init__(self, log: TopicLog, offsets: SourceOffsets) -> None:
        self._log = log
        self._offsets = offsets

    def get(
        self, connector: str, partition: Mapping[str, Any], *, wait: bool = True
    ) -> dict[str, Any] | None:
        self._log.read_to_end(_OPEN_TRANSACTIONS_S, committed=not wait)
        return self._offsets.get(connector, partition)

    def all(self, connector: str) -> dict[SourcePartition, dict[str, Any]]:
        self._log.read_to_end(committed=True)
        return self._offsets.all(connector)

    def put(self, connector: str, offsets: Offsets, timeout_s: float) -> None:
        self._log.write(
            [
                (key_bytes(connector, partition), value_bytes(offset))
                for partition, offset in offsets.items()
            ],
            timeout_s,
        )

    def send(self, connector: str, offsets: Offsets) -> None:
        try:
            for partition, offset in offsets.items():
                self._log.send(key_bytes(connector, partition), value_bytes(offset))
        except KafkaError as error:
            logger.warning("offsets of %s are not in %s: %s", connector, self._log.topic, error)
