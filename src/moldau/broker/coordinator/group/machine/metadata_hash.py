"""The metadata hash of a group: a new assignment is due when it changes.

Kafka stores this number in the group's epoch record, so it is computed exactly as
there: XXH3 with 64 bits over numbers in little-endian order and text as UTF-16 units
followed by their count. A topic that does not exist has no part in a group's hash.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import xxhash

from moldau.broker.coordinator.group.machine.assignors.interface import text_order
from moldau.broker.coordinator.machine.topics import TopicFacts

TOPIC_HASH_MAGIC = 0

_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")


def topic_hash(facts: TopicFacts) -> int:
    """Changes with the id, the name, the partition count and the racks of replicas."""
    topic_id = facts.id.int
    parts = [
        bytes((TOPIC_HASH_MAGIC,)),
        (topic_id >> 64).to_bytes(8, "little"),
        (topic_id & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little"),
        _text(facts.name),
        _INT.pack(facts.partition_count),
    ]
    for partition, racks in enumerate(facts.racks):
        parts.append(_INT.pack(partition))
        for rack in sorted(racks, key=text_order):
            encoded = _text(rack)
            # The count comes before the units too: no two lists of racks look the same.
            parts += encoded[-4:], encoded
    return _hash(b"".join(parts))


def group_hash(hashes: Mapping[str, int]) -> int:
    """The hash of all subscribed topics that exist, given by name; without any it is 0."""
    if not hashes:
        return 0
    return _hash(b"".join(_LONG.pack(hashes[name]) for name in sorted(hashes)))


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _hash(data: bytes) -> int:
    """Signed, as Kafka's records hold it."""
    number = xxhash.xxh3_64_intdigest(data)
    return number - (1 << 64) if number >> 63 else number
