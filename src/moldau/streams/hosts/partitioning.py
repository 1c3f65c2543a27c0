"""Kafka's default partitioner of records with a key."""

from __future__ import annotations

from moldau.client.producer._murmur2 import murmur2


def default_partition(key: bytes, count: int) -> int:
    """The partition of a key among `count`: the same in every Kafka client."""
    return (murmur2(key) & 0x7FFF_FFFF) % count
