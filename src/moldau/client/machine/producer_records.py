"""What is sent, and what is known of it when it has arrived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.client.errors import SerializationError
from moldau.wire.constants import NO_OFFSET, NO_TIMESTAMP

__all__ = [
    "NO_OFFSET",
    "NO_TIMESTAMP",
    "TIMESTAMP_MAX",
    "ProducerRecord",
    "RecordMetadata",
    "check_place",
    "normal_headers",
]

TIMESTAMP_MAX = 2**63 - 1

Header = tuple[str, bytes | None]


class RecordMetadata(NamedTuple):
    """Where a record is now. `offset` is -1 if the broker was not asked for it (acks=0)."""

    topic: str
    partition: int
    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    serialized_key_size: int = -1
    serialized_value_size: int = -1

    @property
    def has_offset(self) -> bool:
        return self.offset != NO_OFFSET

    @property
    def has_timestamp(self) -> bool:
        return self.timestamp != NO_TIMESTAMP

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(slots=True)
class ProducerRecord:
    """A record to send; `timestamp` is in milliseconds, now if it is None.

    Headers are given as pairs of text and bytes, or as a mapping; they are kept as a list of pairs.
    """

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Any = field(default_factory=list)

    def __post_init__(self) -> None:
        check_place(self.topic, self.partition, self.timestamp)
        self.headers = normal_headers(self.headers)


def check_place(topic: Any, partition: int | None, timestamp: int | None) -> None:
    """Raises for what no record can have."""
    if not isinstance(topic, str):
        raise TypeError(f"topic must be a str, not {type(topic).__name__}")
    if partition is not None and partition < 0:
        raise ValueError(f"invalid partition {partition}: a partition is never negative")
    if timestamp is None:
        return
    if isinstance(timestamp, float):
        raise TypeError(f"invalid timestamp {timestamp}: it is a whole number of milliseconds")
    if not 0 <= timestamp <= TIMESTAMP_MAX:
        raise ValueError(f"invalid timestamp {timestamp}: from 0 to {TIMESTAMP_MAX} milliseconds")


def normal_headers(headers: Any) -> list[Header]:
    """Pairs of text and bytes, of a mapping or of pairs whose values may also be text."""
    if not headers:
        return []
    pairs: Iterable[Any] = headers.items() if isinstance(headers, Mapping) else headers
    found: list[Header] = []
    for pair in pairs:
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise SerializationError(f"a header is a pair of name and bytes, not {pair!r}") from (
                None
            )
        if not isinstance(name, str):
            raise SerializationError(f"a header's name is text, not {name!r}")
        if isinstance(value, str):
            value = value.encode()
        elif isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
        elif value is not None and not isinstance(value, bytes):
            raise SerializationError(f"header {name!r}: {type(value).__name__} is not bytes")
        found.append((name, value))
    return found
