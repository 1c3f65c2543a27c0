"""An application whose result anybody can work out from its input, and what must hold of it.

It counts by a part of each value, once within the partition (a store of a processor) and once over
all partitions (through a repartition topic). Every update says which count it is, so the result
shows a record that was processed twice, not at all, or on a state that is not that of its offset.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.sim.world import Invariant, require
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.records import Record
from moldau.streams.stores.builders import key_value_store
from moldau.streams.topology.streams_builder import StreamsBuilder
from moldau.streams.topology.topology import Topology

TopicPartition = tuple[str, int]

APPLICATION = "app"
INPUT, WITHIN, OVERALL = "in", "within", "overall"
REPARTITION = f"{APPLICATION}-overall-repartition"
BUCKETS = 3


def bucket(value: str) -> str:
    return str(zlib.crc32(value.encode()) % BUCKETS)


class _CountWithin(Processor):
    """Counts within the partition."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._counts: Any = context.state_store("within")

    def process(self, record: Record[Any, str]) -> None:
        name = f"{self.context.task_id.rpartition('_')[2]}.{bucket(record.value)}"
        count = (self._counts.get(name) or 0) + 1
        self._counts.put(name, count)
        self.context.forward(record.with_key(name).with_value(f"{name}|{count}"))


def topology() -> Topology:
    """The application's program."""
    builder = StreamsBuilder()
    builder.add_state_store(key_value_store("within", key_serde="string", value_serde="long"))
    values = builder.stream(INPUT, key_serde="string", value_serde="string")
    values.process(_CountWithin, "within").to(WITHIN, key_serde="string", value_serde="string")
    (
        values.group_by(
            lambda _, value: bucket(value), name="overall", key_serde="string", value_serde="string"
        )
        .count(store="overall")
        .to_stream()
        .map_values_with_key(lambda name, count: f"{name}|{count}")
        .to(OVERALL, key_serde="string", value_serde="string")
    )
    return builder.build()


def check_result(
    inputs: Mapping[TopicPartition, Iterable[bytes]],
    outputs: Mapping[str, Iterable[bytes]],
    *,
    every_update: bool,
) -> None:
    """`inputs` and `outputs` are what committed readers see when all of the input was processed.

    With caches several updates may become one (`every_update`), but never in another order.
    """
    expected: dict[str, Counter[str]] = {WITHIN: Counter(), OVERALL: Counter()}
    for (_, partition), values in inputs.items():
        for value in values:
            name = bucket(value.decode())
            expected[WITHIN][f"{partition}.{name}"] += 1
            expected[OVERALL][name] += 1
    for topic, counts in expected.items():
        found: dict[str, list[int]] = {}
        for value in outputs[topic]:
            name, _, count = value.decode().rpartition("|")
            found.setdefault(name, []).append(int(count))
        merged = topic == OVERALL and not every_update
        _check_counts(topic, counts, found, merged=merged)


def _check_counts(
    topic: str, expected: Counter[str], found: dict[str, list[int]], *, merged: bool
) -> None:
    for name in sorted({*expected, *found}):
        counts, total = found.get(name, []), expected[name]
        if merged:
            holds = counts == sorted(set(counts)) and counts[-1:] == [total]
        else:
            holds = counts == list(range(1, total + 1))
        require(
            holds,
            Invariant.STREAMS_RESULT,
            lambda name=name, counts=counts, total=total: (  # type: ignore[misc]
                f"{topic} counts {name} to {total}, but has {_shown(counts)}"
            ),
        )


def _shown(counts: list[int]) -> str:
    """Where the sequence leaves the one that it should be."""
    for place, count in enumerate(counts):
        if count != place + 1:
            return f"{len(counts)} updates, from number {place + 1} on {counts[place:][:12]}"
    return f"{len(counts)} updates, up to {counts[-1] if counts else 0}"
