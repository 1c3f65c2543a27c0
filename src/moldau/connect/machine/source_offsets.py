"""Source offsets as the offset topic has them: keys `["connector",{partition}]`, JSON without
schemas, bytes as Connect writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.connect.api.errors import DataError
from moldau.connect.api.records import SourcePartition

_SIMPLE = (str, int, float, bool, type(None))


def checked(what: str, value: Mapping[str, Any] | None) -> None:
    """Offsets and partitions hold texts, numbers, booleans and nulls only; DataError if not."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise DataError(f"The {what} must be a map, not {type(value).__name__}")
    for key, each in value.items():
        if not isinstance(key, str):
            raise DataError(f"The {what} may only use texts as keys, found {key!r}")
        if not isinstance(each, _SIMPLE):
            raise DataError(
                f"The {what} may only hold texts, numbers and booleans; {key} is a "
                f"{type(each).__name__}"
            )


def key_bytes(connector: str, partition: Mapping[str, Any]) -> bytes:
    return json.dumps([connector, dict(partition)], separators=(",", ":")).encode()


def value_bytes(offset: Mapping[str, Any] | None) -> bytes | None:
    return None if offset is None else json.dumps(dict(offset), separators=(",", ":")).encode()


class SourceOffsets:
    """All committed source offsets, by connector. `replay` is the only mutator."""

    def __init__(self) -> None:
        self._by_connector: dict[str, dict[SourcePartition, dict[str, Any]]] = {}

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """A record that makes no sense is passed over."""
        try:
            found = None if key is None else json.loads(key)
            offset = None if value is None else json.loads(value)
        except ValueError:
            return
        if not (isinstance(found, list) and len(found) == 2 and isinstance(found[1], dict)):
            return
        connector, partition = str(found[0]), SourcePartition(found[1])
        if offset is None:
            self._by_connector.get(connector, {}).pop(partition, None)
        elif isinstance(offset, dict):
            self._by_connector.setdefault(connector, {})[partition] = offset

    def get(self, connector: str, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._by_connector.get(connector, {}).get(SourcePartition(partition))

    def all(self, connector: str) -> dict[SourcePartition, dict[str, Any]]:
        return dict(self._by_connector.get(connector, {}))

    def records(self) -> Iterable[tuple[bytes, bytes]]:
        """Everything, as records."""
        for connector, offsets in self._by_connector.items():
            for partition, offset in offsets.items():
                yield key_bytes(connector, partition), value_bytes(offset) or b""
