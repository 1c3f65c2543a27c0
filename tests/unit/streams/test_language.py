"""Parts of the language beside the operators: wrappers, extractors, serdes, stores of others."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest

from moldau.streams import (
    Materialized,
    Processor,
    Record,
    StoreBuilder,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    fail_on_invalid_timestamp,
    key_value_store,
    log_and_skip_on_invalid_timestamp,
    timestamped_key_value_store,
    use_partition_time_on_invalid_timestamp,
    wall_clock_timestamp,
)
from moldau.streams.machine.progress import decode_metadata, encode_metadata
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.records import Produced, Window, Windowed
from moldau.streams.schemas import pickle_serde
from moldau.streams.serdes import STRING, SessionWindowedSerde, TimeWindowedSerde, serde

TEXT = {"key_serde": "string", "value_serde": "string"}


class Counting(Processor):
    """Counts the records of the processor that it wraps."""

    seen: ClassVar[dict[str, int]] = {}

    def __init__(self, name: str, inner: Processor) -> None:
        self._name = name
        self._inner = inner

    def init(self, context: Any) -> None:
        self._inner.init(context)

    def process(self, record: Record[Any, Any]) -> None:
        Counting.seen[self._name] = Counting.seen.get(self._name, 0) + 1
        self._inner.process(record)

    def close(self) -> None:
        self._inner.close()


def test_a_wrapper_wraps_every_processor() -> None:
    def wrap(name: str, supplier: Callable[[], Processor]) -> Callable[[], Processor]:
        return lambda: Counting(name, supplier())

    Counting.seen = {}
    builder = StreamsBuilder()
    stream = builder.stream("in", **TEXT).filter(lambda key, value: value != "no", name="keep")
    stream.group_by_key().count(name="count", store="counts")
    config = {"processor.wrapper.class": wrap}
    with TopologyTestDriver(builder.build(), config=config) as driver:
        driver.input_topic("in").pipe_key_values([("a", "1"), ("a", "no")])
        assert driver.state_store("counts").get("a") == (1, 0)
    assert Counting.seen == {"keep": 2, "count": 1}


@pytest.mark.parametrize(
    ("extractor", "times"),
    [
        pytest.param(log_and_skip_on_invalid_timestamp, [5, 7], id="skip"),
        pytest.param(use_partition_time_on_invalid_timestamp, [5, 5, 7], id="partition time"),
        pytest.param(wall_clock_timestamp, [99, 99, 99], id="wall clock"),
        pytest.param(lambda where, value, before: int(value), [1, 2, 3], id="own"),
    ],
)
def test_extractors(extractor: Any, times: list[int]) -> None:
    builder = StreamsBuilder()
    builder.stream("in", timestamp_extractor=extractor, **TEXT).to("out")
    with TopologyTestDriver(builder.build(), wall_clock_ms=99) as driver:
        for value, time in (("1", 5), ("2", -1), ("3", 7)):
            driver.input_topic("in").pipe_input("k", value, timestamp=time)
        assert [each.timestamp for each in driver.output_topic("out").read_records()] == times
        assert driver.dropped_records == 3 - len(times)


@pytest.mark.parametrize("extractor", [None, fail_on_invalid_timestamp])
def test_a_negative_timestamp_stops_the_application(extractor: Any) -> None:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).to("out")
    config = {} if extractor is None else {"default.timestamp.extractor": extractor}
    with (
        TopologyTestDriver(builder.build(), config=config) as driver,
        pytest.raises(StreamsError, match=r"invalid \(negative\) timestamp"),
    ):
        driver.input_topic("in").pipe_input("k", "v", timestamp=-1)


class Fill(Processor):
    def init(self, context: Any) -> None:
        super().init(context)
        self.store = context.state_store("rates")

    def process(self, record: Record[Any, Any]) -> None:
        self.store.put(record.key, record.value)


class Lookup(Processor):
    def init(self, context: Any) -> None:
        super().init(context)
        self.store = context.state_store("rates")

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_value(self.store.get(record.value)))


class Meddle(Lookup):
    def process(self, record: Record[Any, Any]) -> None:
        self.store.put("k", "v")


@pytest.mark.parametrize("is_global", [True, False])
def test_a_store_that_a_topic_fills(is_global: bool) -> None:
    topology = Topology().add_source("in", ["orders"], **TEXT)
    rates = key_value_store("rates", **TEXT)
    options: Any = {
        "source": "rates-in",
        "topic": "rates",
        "processor": "fill",
        "supplier": Fill,
        **TEXT,
    }
    if is_global:
        topology.add_global_store(rates, **options)
        topology.add_processor("lookup", Lookup, "in")
    else:
        topology.add_read_only_state_store(rates, **options)
        topology.add_processor("lookup", Lookup, "in")
        topology.connect_processor_and_state_stores("lookup", "rates")
    topology.add_sink("out", "priced", "lookup", **TEXT)
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("rates").pipe_input("eur", "1.1")
        driver.input_topic("orders").pipe_input("o1", "eur")
        assert driver.output_topic("priced").read_key_values() == [("o1", "1.1")]
        assert not any(topic.endswith("changelog") for topic in driver.output_topics)


def test_a_processor_cannot_write_to_a_global_store() -> None:
    topology = Topology().add_source("in", ["orders"], **TEXT)
    rates = key_value_store("rates", **TEXT)
    topology.add_global_store(
        rates, source="rates-in", topic="rates", processor="fill", supplier=Fill, **TEXT
    )
    topology.add_processor("meddle", Meddle, "in")
    with (
        TopologyTestDriver(topology) as driver,
        pytest.raises(StreamsError, match="meddle") as raised,
    ):
        driver.input_topic("orders").pipe_input("o1", "eur")
    assert "read-only" in str(raised.value.__cause__)


class Highest:
    """A store of one's own: the largest value of all."""

    def __init__(self, name: str, log: Any) -> None:
        self.name = name
        self.value: int | None = None
        self._log = log

    def offer(self, value: int) -> None:
        if self.value is None or value > self.value:
            self.value = value
            self._log(b"highest", value.to_bytes(8), None)

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def restore(self, records: Iterable[Any]) -> None:
        for _, value, _, _ in records:
            self.value = int.from_bytes(value)


class Offer(Processor):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.state_store("highest").offer(record.value)


def test_a_store_of_ones_own() -> None:
    builder = StreamsBuilder()
    store = StoreBuilder("highest", lambda context: Highest("highest", context.log))
    builder.add_state_store(store)
    builder.stream("in", key_serde="string", value_serde="long").process(Offer, "highest")
    with TopologyTestDriver(builder.build(), application_id="app") as driver:
        for value in (3, 9, 4):
            driver.input_topic("in").pipe_input("k", value)
        assert driver.state_store("highest").value == 9
        assert driver.waiting("app-highest-changelog") == 2


def test_pickle_is_refused_unless_it_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"pickle_serde\(\)"):
        serde("pickle")
    with pytest.raises(ValueError, match="avro_serde"):
        serde("avro")
    assert pickle_serde().deserialize("t", pickle_serde().serialize("t", {1})) == {1}


@pytest.mark.parametrize("kind", ["time", "session"])
def test_windows_go_to_the_partition_of_their_key(kind: str) -> None:
    serde = TimeWindowedSerde(STRING, 10) if kind == "time" else SessionWindowedSerde(STRING)
    assembly = Topology().add_source("in", ["in"], key_serde=serde, value_serde="string").assembly
    assembly.add_sink("out", "out", ["in"], key_serde=serde, value_serde=serde)
    written: list[Produced] = []
    seen: list[tuple[bytes, int]] = []
    settings = TaskSettings(
        application_id="app",
        partition_count=lambda topic: 8,
        partition_of=lambda key, count: seen.append((key, count)) or 5,  # type: ignore[func-returns-value]
    )
    task = Task(assembly.nodes.values(), {}, settings, written.append)
    task.initialize()
    key = serde.serialize("in", Windowed("k", Window(20, 30)))
    task.process("in", 0, 7, key=key, value=None, timestamp=1)
    assert seen == [(b"k", 8)]
    assert written[0].partition == 5
    assert task.prepare_commit() == {("in", 0): (8, encode_metadata(1, {}))}


@pytest.mark.parametrize("processors", [{}, {"store": 5, "é": 2**40}])
def test_metadata_of_offsets(processors: dict[str, int]) -> None:
    text = encode_metadata(17, processors)
    assert decode_metadata(text) == (17, processors)
    assert encode_metadata(17, {}) == "AgAAAAAAAAAR"
    for foreign in ("", None, "no base64!", "CQAAAAAAAAAR", text[:8]):
        assert decode_metadata(foreign) == (-1, {})


def test_a_picture_shows_all_nodes_and_stores() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("text", **TEXT)
    counts = stream.group_by(lambda key, word: word, **TEXT).count(store="counts")
    counts.to_stream().to("out", value_serde="long")
    windowed = stream.group_by_key().windowed_by(TimeWindows(size=10)).count(store="windowed")
    windowed.to_stream().to(lambda key, value, where: "a&b", value_serde="long")
    topology = builder.build()
    root = ElementTree.fromstring(topology.svg())
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Sub-topology 0", "Sub-topology 1", *topology.assembly.nodes} <= texts
    assert {"▤ counts", "▤ windowed", "▸ text", "out ▸", "chosen for each record ▸"} <= texts
    edges = sum(len(node.parents) for node in topology.assembly.nodes.values())
    paths = [e for e in root.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "edge"]
    assert len(paths) == edges


def test_functions_that_also_get_the_key() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", **TEXT)
    table = builder.table("rows", **TEXT)
    stream.flat_map_values_with_key(lambda key, value: [key, value]).to("flat", **TEXT)
    joined = stream.join(table, lambda key, one, two: f"{key}:{one}{two}", with_key=True)
    joined.to("joined", **TEXT)
    described = table.map_values_with_key(lambda key, value: f"{key}={value}")
    described.to_stream().to("described", **TEXT)
    doubled = table.join(
        table,
        lambda one, two: one + two,
        foreign_key=lambda key, value: key,
        with_key=True,
        store=Materialized(value_serde="string"),
    )
    doubled.to_stream().to("doubled", **TEXT)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("rows").pipe_input("k", "r")
        driver.input_topic("in").pipe_input("k", "v")
        assert driver.output_topic("flat").read_values() == ["k", "v"]
        assert driver.output_topic("joined").read_value() == "k:vr"
        assert driver.output_topic("described").read_value() == "k=r"
        assert driver.output_topic("doubled").read_key_value() == ("k", "rr")


def test_branches_with_functions_and_consumers() -> None:
    builder = StreamsBuilder()
    split = builder.stream("in", **TEXT).split(name="s-")
    split.branch(lambda key, value: value == "a", name="a", function=lambda it: it.map_values(len))
    split.branch(lambda key, value: value == "b", consumer=lambda it: it.to("b", **TEXT))
    split.branch(lambda key, value: value == "c", name="c", function=lambda it: None)
    found = split.default_branch(name="rest")
    assert sorted(found) == ["s-a", "s-rest"]
    found["s-a"].to("a", key_serde="string", value_serde="long")
    found["s-rest"].to("rest", **TEXT)
    with pytest.raises(ValueError, match="a function or a consumer, not both"):
        split.branch(lambda key, value: True, function=lambda it: it, consumer=print)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_values(["a", "b", "c", "d"])
        assert driver.output_topic("a").read_values() == [1]
        assert driver.output_topic("b").read_values() == ["b"]
        assert driver.output_topic("rest").read_values() == ["d"]


def test_the_time_of_test_topics_advances() -> None:
    builder = StreamsBuilder()
    builder.table("in", **TEXT, store="rows").to_stream().to("out", **TEXT)
    config = {"statestore.cache.max.bytes": 0}
    with TopologyTestDriver(builder.build(), config=config) as driver:
        topic = driver.input_topic("in", start_timestamp=100, auto_advance_ms=5)
        topic.pipe_key_values([("a", "1"), ("b", "2")])
        topic.advance_time(1000)
        topic.pipe_input("a", "3")
        topic.pipe_records([Record("c", "4", 7)])
        found = driver.output_topic("out")
        assert found.queue_size() == 4
        first = found.read_record()
        assert (first.value, first.timestamp) == ("1", 100)
        assert [record.timestamp for record in found.read_records()] == [105, 1110, 7]
        topic.pipe_key_values([("a", "5"), ("b", "6"), ("a", "7")], timestamp=1)
        assert found.read_key_values_to_map() == {"a": "7", "b": "6"}
        topic.pipe_key_values([("a", "8"), ("b", "9")], timestamp=3, advance_ms=4)
        assert [record.timestamp for record in found.read_records()] == [3, 7]
        assert found.is_empty()
        assert list(driver.all_state_stores()) == ["rows"]
        with pytest.raises(ValueError, match="advance must be positive"):
            topic.advance_time(-1)


def test_records_without_keys_are_no_map() -> None:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).to("out", **TEXT)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input(None, "1")
        with pytest.raises(StreamsError, match="Null keys not allowed"):
            driver.output_topic("out").read_key_values_to_map()


def test_lines_have_a_label_and_what_the_mapper_says() -> None:
    builder = StreamsBuilder()
    lines: list[str] = []
    stream = builder.stream("in", **TEXT)
    stream.print(lines.append)
    stream.print(lines.append, label="orders", mapper=lambda key, value: f"{key}={value}")
    stream.filter(lambda key, value: True, name="kept").print(lines.append)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("k", "v")
    assert lines == [
        "[KSTREAM-SOURCE-0000000000]: k, v\n",
        "[orders]: k=v\n",
        "[kept]: k, v\n",
    ]


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_global_store_has_a_timestamp_extractor(by_hand: bool) -> None:
    class Keep(Processor):
        def process(self, record: Any) -> None:
            store = self.context.state_store("times")
            store.put(record.key, record.value, record.timestamp)

    store = timestamped_key_value_store("times", **TEXT)
    options: dict[str, Any] = {"timestamp_extractor": lambda where, value, before: int(value)}
    if by_hand:
        topology = Topology().add_global_store(
            store, source="s", topic="in", processor="p", supplier=Keep, **TEXT, **options
        )
    else:
        builder = StreamsBuilder()
        topology = builder.add_global_store(store, "in", Keep, **TEXT, **options).build()
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_input("k", "42", timestamp=7)
        assert driver.state_store("times").get("k") == ("42", 42)


def test_suppress_without_logging_has_no_changelog() -> None:
    for logging in (True, False):
        builder = StreamsBuilder()
        table = builder.table("in", **TEXT)
        limit = Suppressed.until_time_limit(
            10, name="wait", logging=logging, changelog_config={"segment.ms": "9"}
        )
        table.suppress(limit).to_stream().to("out", **TEXT)
        topology = builder.build()
        assert topology.assembly.stores["wait-store"].changelog_config == {"segment.ms": "9"}
        with TopologyTestDriver(topology) as driver:
            driver.input_topic("in").pipe_input("k", "v", timestamp=1)
            topics = [topic for topic in driver.output_topics if "wait" in topic]
            assert len(topics) == logging
            driver.input_topic("in").pipe_input("other", "v", timestamp=20)
            assert driver.output_topic("out").read_key_values() == [("k", "v")]
