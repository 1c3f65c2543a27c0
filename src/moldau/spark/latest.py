"""The latest value of each key of a topic: a compacted topic as a table that is kept current.

Invariants: what is read is committed; a record without a value deletes its key; `catch_up` returns
when everything that had been committed when it was called is in the table, or raises; a table never
has more than `rows_max` keys.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.client import Consumer, TopicPartition
from moldau.client.config import CONSUMER_KEYS, keys_of
from moldau.spark.client_cache import ClientCache

__all__ = ["TopicTable", "TopicTableError", "tables"]

CATCH_UP_SECONDS_MAX: Final = 120.0
#: For each process of Spark's; a table is as large as its topic.
IDLE_MAX: Final = 8
_POLL_SECONDS: Final = 0.5
TOPIC, ROWS_MAX = "lookup.topic", "lookup.rows.max"


class TopicTableError(Exception):
    """The topic cannot be looked up in."""


class TopicTable:
    """Reads the topic itself; one thread uses it at a time."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._topic = str(settings[TOPIC])
        self._rows_max = int(settings[ROWS_MAX])
        given = {name: value for name, value in settings.items() if not name.startswith("lookup.")}
        own = {
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "allow.auto.create.topics": "false",
        }
        self._consumer = Consumer({**keys_of(CONSUMER_KEYS, given), **own})
        self._places: list[TopicPartition] = []
        self._values: dict[bytes | None, bytes] = {}

    def close(self) -> None:
        self._consumer.close()

    def __len__(self) -> int:
        return len(self._values)

    def values_of(self, keys: Sequence[bytes | None]) -> list[bytes | None]:
        """None for keys that the topic does not have, and for no key."""
        get = self._values.get
        return [None if key is None else get(key) for key in keys]

    def catch_up(self, seconds_max: float = CATCH_UP_SECONDS_MAX) -> None:
        until = time.monotonic() + seconds_max
        self._assign()
        ends = self._consumer.end_offsets(self._places)
        self._start_again_if_made_anew(ends)
        while any(self._consumer.position(place) < end for place, end in ends.items()):
            if time.monotonic() > until:
                raise TopicTableError(
                    f"topic {self._topic} could not be read to its end in {seconds_max:.0f} s"
                )
            for record in self._consumer.poll(_POLL_SECONDS):
                if record.value is None:
                    self._values.pop(record.key, None)
                else:
                    self._values[record.key] = record.value
            self._refuse_too_many()

    def _assign(self) -> None:
        numbers = sorted(one.partition for one in self._consumer.partitions_for(self._topic))
        places = [TopicPartition(self._topic, number) for number in numbers]
        if not places:
            raise TopicTableError(f"there is no topic {self._topic!r} to look up in")
        if places != self._places:
            # Positions of those that were there before stay.
            self._consumer.assign(places)
            self._places = places

    def _start_again_if_made_anew(self, ends: Mapping[TopicPartition, int]) -> None:
        if any(self._consumer.position(place) > end for place, end in ends.items()):
            self._values.clear()
            self._consumer.seek_to_beginning(self._places)

    def _refuse_too_many(self) -> None:
        if len(self._values) > self._rows_max:
            raise TopicTableError(
                f"topic {self._topic} has more than {self._rows_max} keys: join it as a stream, or "
                "set maxRows if each of Spark's processes has the memory"
            )


#: Those of this process.
tables: Final = ClientCache[TopicTable](
    TopicTable, TopicTable.close, idle_max=IDLE_MAX, shared=False
)
