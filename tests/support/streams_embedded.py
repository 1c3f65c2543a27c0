"""Runs the cases of Kafka Streams' answers as applications on a broker."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.client import Admin, Consumer, NewTopic, OffsetSpec, Producer, TopicPartition
from moldau.streams import KafkaStreams, State, Topology, Windowed
from moldau.streams.machine.definitions import SinkDefinition
from support.waiting import eventually

CONFIG = {
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
    "default.key.serde": "string",
    "default.value.serde": "string",
    "statestore.cache.max.bytes": 0,
}
Case = dict[str, Any]
Rows = dict[str, list[Case]]


def renamed(case: Case, prefix: str) -> Case:
    """The same case on topics of its own."""
    case = copy.deepcopy(case)
    for each in [*case["topology"], *case.get("inputs", ())]:
        if "topic" in each:
            each["topic"] = prefix + each["topic"]
    for step in case.get("inputs", ()):
        for record in step.get("out", ()):
            if "topic" in record:
                record["topic"] = prefix + record["topic"]
    return case


def shown(record: Any, key_serde: Any, value_serde: Any) -> Case:
    """A record as the cases write it."""
    key = key_serde.deserialize(record.topic, record.key)
    found: Case = {"key": key, "value": value_serde.deserialize(record.topic, record.value)}
    if isinstance(key, Windowed):
        found |= {"key": key.key, "window": list(key.window)}
    found["ts"] = record.timestamp
    if record.headers:
        found["headers"] = [[name, (value or b"").decode()] for name, value in record.headers]
    return found


class Stage:
    """A broker, and clients that all cases share."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.admin = Admin(bootstrap_servers=bootstrap)
        self.producer = Producer(bootstrap_servers=bootstrap, linger_ms=0)
        self.random = random.Random(1)
        self._numbers = itertools.count()

    def close(self) -> None:
        self.producer.close()
        self.admin.close()

    def new_id(self) -> str:
        return f"app{next(self._numbers)}"

    def create(self, topics: Iterable[str], partitions: int = 1, replicas: int = 1) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, replicas) for topic in topics])

    @contextmanager
    def running(
        self, topology: Topology, application_id: str, **settings: Any
    ) -> Iterator[KafkaStreams]:
        made = KafkaStreams(
            topology,
            CONFIG,
            application_id=application_id,
            bootstrap_servers=self.bootstrap,
            state_dir=str(self.folder / "state"),
            **settings,
        )
        with made:
            assert made.wait_for(State.RUNNING, 30), made.error
            yield made

    def send(self, step: Case) -> None:
        encoded = [None if step[each] is None else step[each].encode() for each in ("key", "value")]
        headers = [(name, value.encode()) for name, value in step.get("headers", ())]
        self.producer.send(
            step["topic"], encoded[1], encoded[0], timestamp=step["ts"], headers=headers
        )

    def wait_until_read(self, made: KafkaStreams, topics: Iterable[str]) -> None:
        """Until all records of the inputs are processed, with what follows from them."""
        ends_of = [TopicPartition(topic, 0) for topic in topics]
        group = made.settings.application_id

        def is_read() -> bool:
            # In this order: what was committed has been written, and is counted by the ends. The
            # other way round, a record could come into a topic in between and not be waited for.
            done = self.admin.list_consumer_group_offsets({group: None})[group]
            ends = self.admin.list_offsets(dict.fromkeys(ends_of, OffsetSpec.latest()))
            return all(
                ends[key].offset == 0
                or ((found := done.get(key)) is not None and found.offset == ends[key].offset)
                for key in ends_of
            )

        eventually(is_read, what=f"{group} has read {ends_of}")

    def wait_for_globals(self, made: KafkaStreams, topics: Iterable[str]) -> None:
        """Until the global stores have everything."""
        ends_of = [TopicPartition(topic, 0) for topic in topics]
        ends = self.admin.list_offsets(dict.fromkeys(ends_of, OffsetSpec.latest()))
        for key in ends_of:
            eventually(
                lambda key=key: made.instance.global_position(key) >= ends[key].offset,
                what=f"the global store of {key} is filled",
            )

    def outputs(self, topology: Topology, topics: Iterable[str], wanted: int) -> Rows:
        """What the sinks have written, once there are so many records."""
        serdes = sink_serdes(topology)
        keys = [TopicPartition(topic, 0) for topic in topics]
        found: Rows = {}
        with Consumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            consumer.assign(keys)

            def read() -> bool:
                for record in consumer.poll(0.2 if wanted else 0.05):
                    row = shown(record, *serdes[record.topic])
                    found.setdefault(record.topic, []).append(row)
                return sum(map(len, found.values())) >= wanted

            eventually(read, what=f"{wanted} records in {topics}", seconds_max=30)
        return found


def sink_serdes(topology: Topology) -> dict[str, tuple[Any, Any]]:
    return {
        node.topic: (node.key_serde, node.value_serde)
        for node in topology.assembly.nodes.values()
        if isinstance(node, SinkDefinition) and isinstance(node.topic, str)
    }


def expected(case: Case, sinks: list[str]) -> Rows:
    found: Rows = {}
    for step in case["inputs"]:
        for record in step.get("out", ()):
            row = {name: value for name, value in record.items() if name != "topic"}
            found.setdefault(record.get("topic", sinks[0]), []).append(row)
    return found


def comparable(rows: Mapping[str, list[Case]], case: Case) -> dict[str, list[str]]:
    """As texts; what one step writes of sliding windows has no order."""
    sliding = any(
        op["window"]["type"] == "sliding" for op in case["topology"] if op["op"] == "windowedBy"
    )
    texts = {
        topic: [json.dumps(row, sort_keys=True) for row in each] for topic, each in rows.items()
    }
    return {topic: sorted(each) if sliding else each for topic, each in texts.items()}
