"""What a scripted session asks of a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Row:
    """A record as it is sent, and as it is seen again (then with its offset)."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()
    offset: int = -1


class Client(Protocol):
    """One client against one broker; topics have a single partition, 0."""

    codecs: Sequence[str]

    def create_topic(self, topic: str, config: dict[str, str]) -> None: ...
    def topics(self) -> set[str]: ...
    def produce(self, topic: str, codec: str, rows: Sequence[Row]) -> None: ...
    def read(self, topic: str, *, offset: int, count: int) -> list[Row]: ...
    def offset_at(self, topic: str, timestamp: int) -> int:
        """The first offset whose timestamp is at or after the given one."""
        ...

    def beginning(self, topic: str) -> int: ...
    def alter_config(self, topic: str, key: str, value: str) -> None: ...
    def config(self, topic: str, key: str) -> str: ...
    def delete_records(self, topic: str, before: int) -> None: ...
    def delete_topic(self, topic: str) -> None: ...
    def close(self) -> None: ...
