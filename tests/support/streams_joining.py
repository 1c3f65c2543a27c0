"""A windowed join that tests kill, and the pairs that its output must hold in the end."""

from __future__ import annotations

import random
from collections import defaultdict

from moldau.client import Consumer, Producer, TopicPartition
from moldau.streams import JoinWindows, StreamsBuilder
from support.waiting import eventually

LEFT, RIGHT, JOINED = "left", "right", "joined"
KEYS = 20
STEP_MS = 10
APART_MS = 300
#: No record is late, in whatever order the two sides are read: each pair is there once.
GRACE_MS = 86_400_000
#: key, left or right, name, timestamp
Row = tuple[str, str, str, int]


def add_windowed_join(builder: StreamsBuilder, prefix: str) -> None:
    """Joins `<prefix>left` and `<prefix>right` into `<prefix>joined`."""
    left = builder.stream(prefix + LEFT, key_serde="string", value_serde="string")
    right = builder.stream(prefix + RIGHT, key_serde="string", value_serde="string")
    windows = JoinWindows(time_difference=APART_MS, grace=GRACE_MS)
    joined = left.join(right, lambda one, two: f"{one}+{two}", windows=windows)
    joined.to(prefix + JOINED, key_serde="string", value_serde="string")


class Sides:
    """Sends records to both sides, and knows all pairs that follow from them."""

    def __init__(self, chance: random.Random, began_ms: int) -> None:
        self._chance = chance
        self._began_ms = began_ms
        self.rows: list[Row] = []

    def send(self, producer: Producer, prefix: str, count: int) -> None:
        for _ in range(count):
            number = len(self.rows)
            side = self._chance.choice((LEFT, RIGHT))
            key, name = f"k{self._chance.randrange(KEYS)}", f"{side[0]}{number}"
            timestamp = self._began_ms + number * STEP_MS
            self.rows.append((key, side, name, timestamp))
            producer.send(prefix + side, name.encode(), key.encode(), timestamp=timestamp)

    def pairs(self) -> dict[str, list[str]]:
        """All pairs by key, sorted."""
        found: dict[str, list[str]] = defaultdict(list)
        by_side: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
        for key, side, name, timestamp in self.rows:
            by_side[key, side].append((name, timestamp))
        for (key, side), rows in by_side.items():
            if side == LEFT:
                found[key] += [
                    f"{one}+{two}"
                    for one, at in rows
                    for two, other in by_side[key, RIGHT]
                    if abs(at - other) <= APART_MS
                ]
        return {key: sorted(each) for key, each in found.items() if each}


def joined(bootstrap: str, topic: str, partitions: int, count: int) -> dict[str, list[str]]:
    """All committed pairs by key, sorted, once there are so many."""
    found: dict[str, list[str]] = defaultdict(list)
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])

        def complete() -> bool:
            for record in consumer.poll(0.5):
                found[record.key.decode()].append(record.value.decode())
            return sum(map(len, found.values())) >= count

        eventually(complete, what=f"{count} pairs in {topic}", seconds_max=120)
        for record in consumer.poll(0.5):
            found[record.key.decode()].append(record.value.decode())
    return {key: sorted(each) for key, each in found.items()}
