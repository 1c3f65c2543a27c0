"""Kafka's small text files: offsets per partition, leader epochs, topic id, clean stop.

Decoding is strict: a damaged file raises CorruptCheckpoint naming the file and line, and
the caller decides (a log directory with one is taken offline or recovered without it).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from functools import lru_cache

from moldau.wire.uuids import uuid_from_text, uuid_to_text

Partition = tuple[str, int]


class CorruptCheckpoint(Exception):
    """A checkpoint file does not have Kafka's format."""


def _entries(name: str, text: str) -> list[str]:
    if not text:
        # Kafka makes its checkpoint files empty before it first writes them.
        return []
    if not text.endswith("\n"):
        raise CorruptCheckpoint(f"{name}: the last line is cut off")
    lines = text.splitlines()
    if len(lines) < 2 or lines[0].strip() != "0":
        raise CorruptCheckpoint(f"{name}: line 1 must be the version 0, line 2 the entry count")
    try:
        count = int(lines[1])
    except ValueError:
        raise CorruptCheckpoint(f"{name}: line 2 {lines[1]!r} is not an entry count") from None
    entries = [line for line in lines[2:] if line.strip()]
    if len(entries) != count:
        raise CorruptCheckpoint(f"{name}: {count} entries announced, {len(entries)} found")
    return entries


def encode_offsets(offsets: Mapping[Partition, int]) -> bytes:
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(name: str, data: bytes) -> dict[Partition, int]:
    offsets: dict[Partition, int] = {}
    for line in _entries(name, data.decode(errors="replace")):
        parts = line.split()
        try:
            topic, partition, offset = parts
            offsets[topic, int(partition)] = int(offset)
        except ValueError:
            raise CorruptCheckpoint(f"{name}: {line!r} is not 'topic partition offset'") from None
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    listed = list(entries)
    lines = ["0", str(len(listed))]
    lines += [f"{epoch} {start_offset}" for epoch, start_offset in listed]
    return ("\n".join(lines) + "\n").encode()


def decode_epochs(name: str, data: bytes) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for line in _entries(name, data.decode(errors="replace")):
        try:
            epoch, start_offset = line.split()
            entries.append((int(epoch), int(start_offset)))
        except ValueError:
            raise CorruptCheckpoint(f"{name}: {line!r} is not 'epoch startOffset'") from None
    return entries


def encode_partition_metadata(topic_id: uuid.UUID) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(name: str, data: bytes) -> uuid.UUID:
    try:
        return _decode_topic_id(data)
    except ValueError as error:
        raise CorruptCheckpoint(f"{name}: {error}") from None


# All partitions of a topic have the same content.
@lru_cache(maxsize=1024)
def _decode_topic_id(data: bytes) -> uuid.UUID:
    fields = dict(
        line.split(": ", 1) for line in data.decode(errors="replace").splitlines() if ": " in line
    )
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError("must hold 'version: 0' and 'topic_id: <id>'")
    try:
        return uuid_from_text(fields["topic_id"].strip())
    except ValueError:
        raise ValueError(f"topic_id {fields['topic_id']!r} is not a base64 uuid") from None


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int:
    """The broker epoch of the run that stopped cleanly, -1 when it is not known."""
    try:
        content = json.loads(data)
        return int(content["brokerEpoch"]) if content.get("version") == 0 else -1
    except (ValueError, KeyError, TypeError, AttributeError):
        return -1
