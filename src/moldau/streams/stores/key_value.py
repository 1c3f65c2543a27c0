"""Key-value stores: plain, and with the time of each value."""

from __future__ import annotations

from moldau.streams.stores._tables import KeyValueStore, TimestampedKeyValueStore

__all__ = ["KeyValueStore", "TimestampedKeyValueStore"]
