"""What the topic `__moldau_metrics` holds: readings of nodes in slots that are used again.

The key names a node and a slot, and there are as many slots as readings are to be kept, so
compaction bounds the topic: a new reading replaces the one that is as many slots older.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from moldau.metrics.parsing import Line

__all__ = ["TOPIC", "decode", "encode", "key_of"]

TOPIC: Final = "__moldau_metrics"
#: Partitions' metrics are left out: they would be most of it, and are in Prometheus.
_LEFT_OUT: Final = ("partition", "version")
#: Below the largest record that brokers accept by default.
BYTES_MAX: Final = 900_000


def key_of(node: str, at_s: float, *, interval_s: float, slots: int) -> bytes:
    return f"{node}/{int(at_s // interval_s) % slots}".encode()


def encode(node: str, at_s: float, lines: Iterable[Line]) -> bytes:
    """One reading of a node; without topics where they are too many for a record."""
    kept = [line for line in lines if not any(key in _LEFT_OUT for key, _ in line.labels)]
    found = _encode(node, at_s, kept)
    if len(found) > BYTES_MAX:
        kept = [line for line in kept if all(key != "topic" for key, _ in line.labels)]
        found = _encode(node, at_s, kept)
    return found


def _encode(node: str, at_s: float, lines: list[Line]) -> bytes:
    values = {line.text: line.value for line in lines}
    return json.dumps({"node": node, "time": at_s, "values": values}).encode()


def decode(value: bytes) -> dict[str, Any]:
    """ValueError if it is no reading."""
    found = json.loads(value)
    if not isinstance(found, dict) or not {"node", "time", "values"} <= found.keys():
        raise ValueError("not a reading of metrics")
    return found
