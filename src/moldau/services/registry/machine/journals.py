"""The two topics of the registry, each with its own records and fence.

A journal takes records in the order of its topic and says which count. `opening` is what a primary
writes when its term begins, so that records of earlier terms that come later are void. `repairs` is
what it writes again because a void record hides it from compaction.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from moldau.services.registry.machine.fencing import Fence, repair
from moldau.services.registry.machine.key_records import DekId, KeySet, decode_key, encode_key
from moldau.services.registry.machine.keys import KeyRegistry
from moldau.services.registry.machine.records import Noop, Record, decode, encode
from moldau.services.registry.machine.registry import Registry

__all__ = ["Journal", "KeysJournal", "SchemasJournal"]

_REPAIRS_MAX: Final = 1_000


class Journal(Protocol):
    @property
    def topic(self) -> str: ...

    def encode(self, record: Any) -> tuple[bytes, bytes | None]: ...

    def read(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int | None,
        epoch: int | None,
    ) -> bool:
        """Whether the record counts; if so it is replayed. Raises UnreadableRecord."""

    def opening(self) -> list[Any]: ...

    def repairs(self) -> list[Any]: ...

    def repaired(self) -> None:
        """The repairs are written."""


class SchemasJournal:
    """A NOOP opens a term: see `machine/fencing.py`."""

    def __init__(self, topic: str, registry: Registry) -> None:
        self.topic = topic
        self._registry = registry
        self._fence = Fence()
        self._ignored: list[Record] = []

    @property
    def epoch(self) -> int:
        """Of the present term."""
        return self._fence.epoch

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        return encode(record)

    def read(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int | None,
        epoch: int | None,
    ) -> bool:
        record = decode(key, value, timestamp_ms=timestamp_ms)
        if record is None:
            return True
        if self._fence.accepts(record, epoch):
            self._registry.replay(record)
            return True
        if len(self._ignored) < _REPAIRS_MAX:
            self._ignored.append(record)
        return False

    def opening(self) -> list[Record]:
        return [Noop(dict(self._registry.state.id_maxima), opens_term=True)]

    def repairs(self) -> list[Record]:
        found = (repair(self._registry.state, each) for each in self._ignored)
        return [each for each in found if each is not None]

    def repaired(self) -> None:
        self._ignored.clear()


class KeysJournal:
    """Confluent has no mark for this topic: the first record of a term, whichever, opens it.

    If there are keys, one of them is written again for that. Without keys there is nothing that a
    former primary could spoil.
    """

    def __init__(self, topic: str, registry: KeyRegistry) -> None:
        self.topic = topic
        self._registry = registry
        self._epoch = 0
        self._ignored: list[str | DekId] = []

    def encode(self, record: KeySet) -> tuple[bytes, bytes | None]:
        return encode_key(record)

    def read(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int | None,
        epoch: int | None,
    ) -> bool:
        record = decode_key(key, value, timestamp_ms=timestamp_ms)
        if epoch is None or epoch >= self._epoch:
            self._epoch = max(self._epoch, epoch or 0)
            self._registry.replay(record)
            return True
        if len(self._ignored) < _REPAIRS_MAX:
            self._ignored.append(record.id)
        return False

    def opening(self) -> list[KeySet]:
        return [self._registry.current(id) for id in self._registry.ids[:1]]

    def repairs(self) -> list[KeySet]:
        return [self._registry.current(id) for id in self._ignored]

    def repaired(self) -> None:
        self._ignored.clear()
