"""`TopologyTestDriver`: runs a topology in this process, record by record, without a broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import cached_property
from time import monotonic_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moldau.streams.errors import StreamsError
from moldau.streams.hosts.driver_meter import DriverMeter
from moldau.streams.hosts.metering import TaskMeter
from moldau.streams.machine.definitions import Definition, SinkDefinition, SourceDefinition
from moldau.streams.machine.error_handlers import Handlers
from moldau.streams.machine.surroundings import Surroundings
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.machine.topic_queues import TopicQueues
from moldau.streams.machine.wrappers import no_wrapper
from moldau.streams.records import Headers, Produced, Record
from moldau.streams.serdes import Serde, SerdeLike, serde
from moldau.streams.stores._cache import RecordCache
from moldau.streams.stores.base import TaskState
from moldau.streams.stores.with_headers import with_or_without_headers
from moldau.streams.topology.topology import Topology
from moldau.streams.windows import Duration, millis

if TYPE_CHECKING:
    from moldau.client.metrics import KafkaMetric, MetricName
    from moldau.streams.hosts.driver_metrics import DriverMetrics

CACHE_BYTES = "statestore.cache.max.bytes"
CACHE_BYTES_DEFAULT = 10 * 1024 * 1024

K = TypeVar("K")
V = TypeVar("V")


class TopologyTestDriver:
    """One task runs all sub-topologies; every topic has one partition; time stands still.

    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_input("key", "value", timestamp=0)
        assert driver.output_topic("out").read_key_values() == [("key", "value")]
    """

    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str = "test",
        default_key_serde: SerdeLike | None = None,
        default_value_serde: SerdeLike | None = None,
        wall_clock_ms: int = 0,
        config: Mapping[str, Any] | None = None,
        handlers: Handlers | None = None,
        state: TaskState | None = None,
    ) -> None:
        """`state` keeps stores on disk: TopologyTestDriver(topology, state=open_state(path))."""
        self._assembly = topology.assembly
        self._application_id = application_id
        self._wall_clock_ms = wall_clock_ms
        self._outputs: dict[str, deque[Produced]] = {}
        self._waiting = TopicQueues()
        self._offsets: dict[str, int] = {}
        self._produced: list[Produced] = []
        level = str((config or {}).get("metrics.recording.level", "INFO"))
        self._meter = DriverMeter(
            TaskMeter(is_debug=level.upper() != "INFO", topic_name=self._topic_name)
        )
        topology.set_default_serdes(key=default_key_serde, value=default_value_serde)
        settings = TaskSettings(
            application_id=application_id,
            config=dict(config or {}),
            handlers=handlers or Handlers(),
            topic_name=self._topic_name,
            changelog_topic=lambda store: f"{application_id}-{store}-changelog",
            source_changelogs=self._assembly.source_changelogs,
            processor_wrapper=(config or {}).get("processor.wrapper.class", no_wrapper),
            timestamp_extractor=(config or {}).get("default.timestamp.extractor"),
            persistent_stores=(config or {}).get("default.dsl.store") != "in_memory",
        )
        settings.surroundings = Surroundings(
            key_serde=self._assembly.default_key_serde,
            value_serde=self._assembly.default_value_serde,
            metrics=lambda: self._measured.own,
        )
        self._global_task: Task | None = None
        self._global_topics: set[str] = set()
        groups = self._assembly.groups()
        of_globals = [name for group in groups if self._assembly.is_global(group) for name in group]
        if of_globals:
            self._make_globals([self._assembly.nodes[name] for name in of_globals], settings)
        settings.state = state
        settings.meter = self._meter.tasks
        settings.cache = RecordCache(int(settings.config.get(CACHE_BYTES, CACHE_BYTES_DEFAULT)))
        rest = [name for name in self._assembly.nodes if name not in set(of_globals)]
        self._definitions = [self._assembly.nodes[name] for name in rest]
        self._task = Task(
            self._definitions,
            self._assembly.stores,
            settings,
            self._produced.append,
            self._global_task.stores if self._global_task is not None else None,
            wall_clock_ms=wall_clock_ms,
        )
        logs = self._task.changelogs()
        self._changelogs = frozenset(each.topic for each in logs if not each.is_source)
        if self._global_task is not None:
            self._global_task.initialize()
        self._task.initialize()
        self._work()

    def _make_globals(self, nodes: list[Definition], settings: TaskSettings) -> None:
        """Global stores have a task of their own, which reads their topics."""
        self._global_task = Task(
            nodes, self._assembly.global_stores, settings, self._produced.append
        )
        self._global_topics = {
            topic for node in nodes if isinstance(node, SourceDefinition) for topic in node.topics
        }

    def _topic_name(self, topic: str) -> str:
        if topic in self._assembly.internal_topics:
            return f"{self._application_id}-{topic}"
        return topic

    # Topics.

    def _serdes(self, topic: str, *, writes: bool) -> tuple[Serde[Any], Serde[Any]]:
        for node in self._assembly.nodes.values():
            if writes and isinstance(node, SinkDefinition) and node.topic == topic:
                return node.key_serde, node.value_serde
            if not writes and isinstance(node, SourceDefinition) and topic in node.topics:
                return node.key_serde, node.value_serde
        return self._assembly.default_key_serde, self._assembly.default_value_serde

    def input_topic(
        self,
        topic: str,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        start_timestamp: int = 0,
        auto_advance_ms: int = 0,
    ) -> TestInputTopic[Any, Any]:
        """Writes to a topic, with its source's serdes unless others are given.

        Records that name no timestamp get `start_timestamp`, each `auto_advance_ms` more.
        """
        if not self._task.reads(topic) and topic not in self._global_topics:
            raise StreamsError(f"Unknown topic: {topic}")
        keys, values = self._serdes(topic, writes=False)
        return TestInputTopic(
            self,
            topic,
            serde(key_serde) or keys,
            serde(value_serde) or values,
            start_timestamp=start_timestamp,
            auto_advance_ms=auto_advance_ms,
        )

    def output_topic(
        self,
        topic: str,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
    ) -> TestOutputTopic[Any, Any]:
        """Reads what was written to a topic, with its sink's serdes unless others are given."""
        keys, values = self._serdes(topic, writes=True)
        return TestOutputTopic(self, topic, serde(key_serde) or keys, serde(value_serde) or values)

    @property
    def output_topics(self) -> list[str]:
        """The topics that were written to, with those of changelogs and repartitions."""
        return sorted(self._outputs)

    def state_store(self, name: str, *, headers: bool = False) -> Any:
        """A store of the topology: driver.state_store("counts").get("hello").

        A store with headers is shown as one without them, to be read, unless `headers` is set.
        """
        found = self._task.stores.get(name)
        if found is None and self._global_task is not None:
            found = self._global_task.stores.get(name)
        if found is None:
            names = ", ".join(sorted(self._task.stores)) or "none"
            raise KeyError(f"there is no store {name!r}; the topology has {names}")
        return with_or_without_headers(found, headers=headers)

    def all_state_stores(self) -> dict[str, Any]:
        """All stores of the topology, by name: driver.all_state_stores()["counts"]."""
        others = {} if self._global_task is None else dict(self._global_task.stores)
        return others | dict(self._task.stores)

    @property
    def dropped_records(self) -> int:
        """How many records were dropped: late, without a key, or refused by a handler."""
        other = 0 if self._global_task is None else self._global_task.dropped
        return self._task.dropped + other

    # Metrics. Their modules are imported by the first look: most tests take none.

    @cached_property
    def _measured(self) -> DriverMetrics:
        from moldau.streams.hosts.driver_metrics import DriverMetrics

        return DriverMetrics(self._task, self._definitions, self._meter)

    def metrics(self) -> Mapping[MetricName, KafkaMetric]:
        """The metrics of the task, by Kafka's names, and those that processors have added.

        `config={"metrics.recording.level": "DEBUG"}` also records those of tasks and stores.
        """
        self._measured.update()
        return self._measured.registry.metrics()

    # Time and work.

    def advance_wall_clock_time(self, duration: Duration) -> None:
        """Move the wall clock, which fires punctuations, and commit."""
        if millis(duration) < 0:
            raise ValueError("Sleep ms cannot be negative.")
        self._wall_clock_ms += millis(duration)
        started = monotonic_ns()
        if self._task.punctuate_wall_clock(self._wall_clock_ms):
            self._meter.punctuated(monotonic_ns() - started)
        self._commit()
        self._work()

    def pipe(self, record: Produced) -> None:
        """Process an input record and all that follows from it."""
        self._enqueue(record)
        self._work()

    def _enqueue(self, record: Produced) -> None:
        topic = record.topic
        if topic in self._global_topics and self._global_task is not None:
            self._process(self._global_task, record)
        elif self._task.reads(topic):
            self._waiting.add(record)

    def _process(self, task: Task, record: Produced) -> None:
        offset = self._offsets.get(record.topic, 0)
        self._offsets[record.topic] = offset + 1
        task.process(
            record.topic,
            0,
            offset,
            key=record.key,
            value=record.value,
            timestamp=record.timestamp,
            headers=record.headers,
        )

    def _work(self) -> None:
        """Until nothing is left: the record with the smallest timestamp first."""
        self._capture()
        while (record := self._waiting.take()) is not None:
            started = monotonic_ns()
            self._process(self._task, record)
            spent_ns = monotonic_ns() - started
            latest_ms = self._task.stream_time_ms
            self._meter.consumed(record, spent_ns, self._wall_clock_ms, latest_ms)
            self._task.punctuate_stream_time()
            self._commit()
            self._capture()

    def _commit(self) -> None:
        self._task.prepare_commit()
        self._task.committed({})

    def _capture(self) -> None:
        produced, self._produced[:] = list(self._produced), []
        for record in produced:
            if record.topic not in self._changelogs:
                self._meter.produced(record)
            self._outputs.setdefault(record.topic, deque()).append(record)
            self._enqueue(record)

    def take(self, topic: str) -> Produced | None:
        """The next record of an output topic, or `None`."""
        queue = self._outputs.get(topic)
        return queue.popleft() if queue else None

    def has_written(self, topic: str) -> bool:
        """Whether a topic ever got a record."""
        return topic in self._outputs

    def waiting(self, topic: str) -> int:
        """How many records of an output topic are not read yet."""
        return len(self._outputs.get(topic, ()))

    def close(self) -> None:
        """Close processors and stores."""
        self._task.close()
        if self._global_task is not None:
            self._global_task.close()

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class TestInputTopic(Generic[K, V]):
    """A topic that a test writes to."""

    __test__ = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        topic: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        *,
        start_timestamp: int = 0,
        auto_advance_ms: int = 0,
    ) -> None:
        if auto_advance_ms < 0:
            raise ValueError("autoAdvance must be positive")
        self._driver = driver
        self._topic = topic
        self._keys = key_serde
        self._values = value_serde
        self._time_ms = start_timestamp
        self._advance_ms = auto_advance_ms

    def __repr__(self) -> str:
        return f"<TestInputTopic {self._topic}>"

    def advance_time(self, duration: Duration) -> None:
        """Move the time of records that name none: topic.advance_time(1000)."""
        if millis(duration) < 0:
            raise ValueError("advance must be positive")
        self._time_ms += millis(duration)

    def pipe_input(
        self,
        key: K | None,
        value: V | None,
        *,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Write one record, and process it: topic.pipe_input("a", "b", timestamp=5)."""
        if timestamp is None:
            timestamp = self._time_ms
            self._time_ms += self._advance_ms
        raw = self._keys.serialize(self._topic, key)
        data = self._values.serialize(self._topic, value)
        self._driver.pipe(Produced(self._topic, raw, data, timestamp, headers))

    def pipe_record(self, record: Record[K, V]) -> None:
        """Write a record with its time and headers: topic.pipe_record(Record("a", "b", 5))."""
        self.pipe_input(
            record.key, record.value, timestamp=record.timestamp, headers=record.headers
        )

    def pipe_records(self, records: Iterable[Record[K, V]]) -> None:
        """Write several records: topic.pipe_records([Record("a", "b", 5)])."""
        for record in records:
            self.pipe_record(record)

    def pipe_values(
        self, values: Iterable[V], *, timestamp: int | None = None, advance_ms: int = 0
    ) -> None:
        """Write several values without keys: topic.pipe_values(["one", "two"]).

        The first gets `timestamp`, each other one `advance_ms` more.
        """
        self.pipe_key_values(
            ((None, value) for value in values), timestamp=timestamp, advance_ms=advance_ms
        )

    def pipe_key_values(
        self,
        pairs: Iterable[tuple[K | None, V]],
        *,
        timestamp: int | None = None,
        advance_ms: int = 0,
    ) -> None:
        """Write several records: topic.pipe_key_values([("a", 1), ("b", 2)], timestamp=5)."""
        for number, (key, value) in enumerate(pairs):
            at = None if timestamp is None else timestamp + number * advance_ms
            self.pipe_input(key, value, timestamp=at)


class TestOutputTopic(Generic[K, V]):
    """A topic that a test reads."""

    __test__ = False

    def __init__(
        self, driver: TopologyTestDriver, topic: str, key_serde: Serde[K], value_serde: Serde[V]
    ) -> None:
        self._driver = driver
        self._topic = topic
        self._keys = key_serde
        self._values = value_serde

    def __repr__(self) -> str:
        return f"<TestOutputTopic {self._topic}, {self.queue_size()} records>"

    def is_empty(self) -> bool:
        """Whether nothing is left to read."""
        return self._driver.waiting(self._topic) == 0

    def queue_size(self) -> int:
        """How many records are left to read."""
        return self._driver.waiting(self._topic)

    def read_value(self) -> V | None:
        """The value of the next record: topic.read_value() == 1."""
        return self.read_record().value

    def read_key_value(self) -> tuple[K | None, V | None]:
        """Key and value of the next record: topic.read_key_value() == ("hello", 1)."""
        record = self.read_record()
        return record.key, record.value

    def read_record(self) -> Record[K | None, V | None]:
        """The next record: topic.read_record().timestamp."""
        record = self._driver.take(self._topic)
        if record is None:
            kind = "Empty" if self._driver.has_written(self._topic) else "Uninitialized"
            raise StreamsError(f"{kind} topic: {self._topic}")
        key = self._keys.deserialize(self._topic, record.key)
        value = self._values.deserialize(self._topic, record.value)
        return Record(key, value, record.timestamp, record.headers)

    def read_records(self) -> list[Record[K | None, V | None]]:
        """All records that are not read yet: topic.read_records()."""
        return [self.read_record() for _ in range(self._driver.waiting(self._topic))]

    def read_key_values(self) -> list[tuple[K | None, V | None]]:
        """The same as pairs: topic.read_key_values() == [("hello", 1)]."""
        return [(record.key, record.value) for record in self.read_records()]

    def read_values(self) -> list[V | None]:
        """The values alone: topic.read_values() == [1, 2]."""
        return [record.value for record in self.read_records()]

    def read_key_values_to_map(self) -> dict[K | None, V | None]:
        """The last value of each key: topic.read_key_values_to_map() == {"hello": 2}."""
        found = dict(self.read_key_values())
        if None in found:
            raise StreamsError("Null keys not allowed with readKeyValuesToMap method")
        return found
