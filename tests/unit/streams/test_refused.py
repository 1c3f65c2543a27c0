"""What is refused, in Kafka Streams 4.3's own words: each was printed by the Java library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.client.errors import ConfigError
from moldau.streams import (
    JoinWindows,
    KafkaStreams,
    KeyQuery,
    Materialized,
    ProcessingError,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    StateQueryRequest,
    StoreBuilder,
    StreamJoined,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
    UnlimitedWindows,
    Window,
    Windowed,
    key_value_store,
    lru_map,
    session_store,
    versioned_key_value_store,
    window_store,
)
from moldau.streams.errors import (
    InvalidStateStoreError,
    StreamsNotStartedError,
    UnknownStateStoreError,
)
from moldau.streams.hosts.settings import streams_settings

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
Call = Callable[[], object]


class Ignoring(Processor):
    def process(self, record: Record[Any, Any]) -> None:
        pass


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TimeWindows(size=0), "Window size (sizeMs) must be larger than zero."),
        (
            lambda: TimeWindows(size=10, advance=11),
            "Window advancement interval should be more than zero and less than window duration "
            "which is 10 ms, but given advancement interval is: 11 ms",
        ),
        (lambda: TimeWindows(size=1, grace=-1), "Grace period must not be negative."),
        (
            lambda: SlidingWindows(time_difference=-1),
            "Window time difference must not be negative.",
        ),
        (
            lambda: SlidingWindows(time_difference=1, grace=-1),
            "Window grace period must not be negative.",
        ),
        (lambda: SessionWindows(inactivity_gap=-1), "Gap time cannot be negative."),
        (lambda: SessionWindows(inactivity_gap=1, grace=-1), "Grace period cannot be negative."),
        (
            lambda: JoinWindows(time_difference=5, before=-6),
            "Window interval (ie, beforeMs+afterMs) must not be negative.",
        ),
        (lambda: JoinWindows(time_difference=1, grace=-1), "Grace period must not be negative."),
        (lambda: UnlimitedWindows(start=-1), "Window start time (startMs) cannot be negative."),
        (lambda: Materialized(retention=-1), "Retention must not be negative."),
        (lambda: lru_map("x", size_max=-1, **TEXT), "maxCacheSize cannot be negative"),
        (
            lambda: window_store("x", retention=-1, window_size=1, **TEXT),
            "retentionPeriod cannot be negative",
        ),
        (
            lambda: window_store("x", retention=1, window_size=-1, **TEXT),
            "windowSize cannot be negative",
        ),
        (
            lambda: window_store("x", retention=10, window_size=3_720_020, **TEXT),
            "The retention period of the window store x must be no smaller than its window size. "
            "Got size=[PT1H2M0.02S], retention=[PT0.01S]",
        ),
        (lambda: session_store("x", retention=-1, **TEXT), "retentionPeriod cannot be negative"),
        (
            lambda: versioned_key_value_store("x", history=-1, **TEXT),
            "historyRetention cannot be negative",
        ),
    ],
)
def test_wrong_arguments(call: Call, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == message


def test_the_name_of_a_store_is_looked_at_at_once() -> None:
    with pytest.raises(TopologyError, match='Name "a b" is illegal'):
        Materialized(name="a b")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda found: found.add_source("new", []), "topics cannot be empty"),
        (lambda found: found.add_processor("new", Ignoring), "predecessorNames cannot be empty"),
        (lambda found: found.add_sink("new", "out"), "predecessorNames cannot be empty"),
        (lambda found: found.add_sink("new", "out", "zz"), "Parent node zz is unknown."),
        (
            lambda found: found.add_processor("new", Ignoring, "new"),
            "Parent node new is unknown (self-reference).",
        ),
        (
            lambda found: found.connect_processor_and_state_stores("p"),
            "stateStoreNames cannot be empty",
        ),
    ],
)
def test_wrong_topologies(call: Callable[[Topology], object], message: str) -> None:
    topology = Topology().add_source("in", ["in"]).add_processor("p", Ignoring, "in")
    with pytest.raises(TopologyError) as refused:
        call(topology)
    assert str(refused.value) == f"Invalid topology: {message}"


@pytest.mark.parametrize(
    "add",
    [
        lambda builder, supplier: builder.stream("in").process(supplier),
        lambda builder, supplier: builder.stream("in").process_values(supplier),
        lambda builder, supplier: builder.add_global_store(
            key_value_store("s", **TEXT), "in", supplier
        ),
        lambda builder, supplier: (
            Topology().add_source("in", ["in"]).add_processor("p", supplier, "in")
        ),
    ],
)
def test_a_supplier_that_gives_one_processor_twice(
    add: Callable[[StreamsBuilder, Callable[[], Processor]], object],
) -> None:
    only = Ignoring()
    with pytest.raises(ValueError, match=r"generates single reference\. .*#get\(\) must return"):
        add(StreamsBuilder(), lambda: only)


def test_stores_of_a_join_that_do_not_fit() -> None:
    def join(this: Materialized, other: Materialized) -> None:
        builder = StreamsBuilder()
        builder.stream("a", **TEXT).join(
            builder.stream("b", **TEXT),
            lambda one, two: one,
            windows=JoinWindows(time_difference=5),
            store=StreamJoined(this=this, other=other),
        )
        builder.build()

    same = Materialized(name="s", retention=10)
    with pytest.raises(StreamsError) as refused:
        join(same, same)
    assert str(refused.value) == (
        "Both StoreSuppliers have the same name.  StoreSuppliers must provide unique names"
    )
    with pytest.raises(StreamsError, match=r"JoinWindows\{beforeMs=5, afterMs=5, graceMs=0\}"):
        join(Materialized(name="t", retention=20), same)


EXACTLY_ONCE_ONLY = "Can't exceed 5 when exactly-once processing is enabled"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"commit.interval.ms": 20_000}, "Transaction timeout 10000 was set lower than streams"),
        (
            {"producer.transaction.timeout.ms": 10},
            "Transaction timeout 10 was set lower than streams commit interval 100",
        ),
        (
            {"producer.max.in.flight.requests.per.connection": 7},
            f"Invalid value 7 for configuration max.in.flight.requests.per.connection: "
            f"{EXACTLY_ONCE_ONLY}",
        ),
        (
            {"group.protocol": "streams", "consumer.group.instance.id": "x"},
            "Streams rebalance protocol does not support static membership. Please set "
            "group.protocol=classic or remove group.instance.id from the configuration.",
        ),
        (
            {"client.tag.zone": ""},
            "Invalid value [] for configuration client.tag.zone: Tag value cannot be empty.",
        ),
        ({"client.tag.zone": "x" * 31}, "Tag value exceeds maximum length of 30."),
        ({"client.tag." + "k" * 21: "x"}, "Tag key exceeds maximum length of 20."),
        (
            {"rack.aware.assignment.tags": "zone"},
            "Invalid value [zone] for configuration rack.aware.assignment.tags: Contains invalid "
            "value [zone] which doesn't have corresponding tag set via [client.tag.] prefix.",
        ),
        (
            {"rack.aware.assignment.tags": "a,b,c,d,e,f"},
            "Invalid value [a, b, c, d, e, f] for configuration rack.aware.assignment.tags: "
            "exceeds maximum list size of [5].",
        ),
    ],
)
def test_wrong_settings(config: dict[str, Any], message: str) -> None:
    given = {"application.id": "app", "bootstrap.servers": "127.0.0.1:1", **config}
    with pytest.raises(ConfigError) as refused:
        streams_settings(given, {})
    assert message in str(refused.value)


def test_settings_that_only_exactly_once_refuses() -> None:
    given = {
        "application.id": "app",
        "bootstrap.servers": "127.0.0.1:1",
        "processing.guarantee": "at_least_once",
        "commit.interval.ms": 20_000,
        "producer.max.in.flight.requests.per.connection": 7,
        "client.tag.zone": "eu",
        "rack.aware.assignment.tags": "zone",
    }
    assert streams_settings(given, {}).commit_interval_ms == 20_000


def copying() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).to("out", **TEXT)
    builder.table("tab", store="rows", **TEXT)
    return builder.build()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda driver: driver.input_topic("nope"), "Unknown topic: nope"),
        (lambda driver: driver.output_topic("out").read_value(), "Uninitialized topic: out"),
        (lambda driver: driver.input_topic("in").advance_time(-1), "advance must be positive"),
        (
            lambda driver: driver.input_topic("in", auto_advance_ms=-1),
            "autoAdvance must be positive",
        ),
        (lambda driver: driver.advance_wall_clock_time(-1), "Sleep ms cannot be negative."),
    ],
)
def test_wrong_calls_of_the_test_driver(
    call: Callable[[TopologyTestDriver], object], message: str
) -> None:
    with (
        TopologyTestDriver(copying()) as driver,
        pytest.raises((StreamsError, ValueError)) as refused,
    ):
        call(driver)
    assert str(refused.value) == message


def test_an_output_that_was_read_to_its_end_is_empty() -> None:
    with TopologyTestDriver(copying()) as driver:
        driver.input_topic("in").pipe_input("k", "v")
        output = driver.output_topic("out")
        assert output.read_value() == "v"
        with pytest.raises(StreamsError, match=r"^Empty topic: out$"):
            output.read_value()


def text_stream(build: Callable[[Any], object]) -> Topology:
    builder = StreamsBuilder()
    build(builder.stream("in", **TEXT))
    return builder.build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda stream: stream.to(lambda key, value, where: None), "Topic cannot be null."),
        (
            lambda stream: stream.map(lambda key, value: None),
            "The provided KeyValueMapper returned null which is not allowed.",
        ),
    ],
)
def test_functions_that_return_nothing(build: Callable[[Any], object], message: str) -> None:
    with (
        TopologyTestDriver(text_stream(build)) as driver,
        pytest.raises(ProcessingError) as refused,
    ):
        driver.input_topic("in").pipe_input("k", "v")
    assert str(refused.value.__cause__) == message


class NullSessions(Processor):
    @staticmethod
    def stores() -> list[StoreBuilder]:
        return [session_store("sessions", retention=10, **TEXT)]

    def process(self, record: Record[Any, Any]) -> None:
        sessions = self.context.state_store("sessions")
        with pytest.raises(ValueError, match=r"^sessionKey can't be null$"):
            sessions.remove(None)
        with pytest.raises(ValueError, match=r"^sessionKey\.key\(\) can't be null$"):
            sessions.put(Windowed(None, Window(0, 1)), "value")
        self.context.forward(record)


def test_sessions_without_keys() -> None:
    topology = text_stream(lambda stream: stream.process(NullSessions).to("out", **TEXT))
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_input("k", "v")
        assert driver.output_topic("out").read_value() == "v"


NOT_STARTED = "KafkaStreams has not been started, you can retry after calling start()"


def test_calls_of_an_application_that_does_not_run(tmp_path: Path) -> None:
    streams = KafkaStreams(
        copying(), application_id="app", bootstrap_servers="127.0.0.1:1", state_dir=str(tmp_path)
    )
    calls: list[Call] = [
        lambda: streams.store("rows"),
        lambda: streams.query_metadata_for_key("rows", "a"),
        lambda: streams.streams_metadata_for_store("rows"),
        lambda: streams.metadata_for_all_streams_clients(),
    ]
    query = StateQueryRequest(store="rows", query=KeyQuery("a"))
    for call in calls:
        with pytest.raises(StreamsNotStartedError) as refused:
            call()
        assert str(refused.value) == NOT_STARTED
    with pytest.raises(StreamsNotStartedError) as refused:
        streams.query(query)
    assert str(refused.value) == f"{NOT_STARTED}."
    with pytest.raises(UnknownStateStoreError, match="Cannot get state store zz because no such"):
        streams.query(StateQueryRequest(store="zz", query=KeyQuery("a")))
    assert streams.all_local_store_partition_lags() == {}
    with pytest.raises(ValueError, match=r"^The timeout cannot be negative\.$"):
        streams.client_instance_ids(-1)
    with pytest.raises(ValueError, match=r"^Timeout can't be negative\.$"):
        streams.close(-1)

    streams.close()
    for call in calls:
        with pytest.raises(InvalidStateStoreError) as refused:
            call()
        assert str(refused.value) == "KafkaStreams is not running. State is NOT_RUNNING."
    with pytest.raises(InvalidStateStoreError, match=r"^KafkaStreams has been stopped \(NOT_RUN"):
        streams.query(query)
    with pytest.raises(StreamsError, match="already stopped, cannot re-start"):
        streams.start()


def test_an_application_needs_a_source() -> None:
    with pytest.raises(TopologyError, match="must subscribe to at least one source topic or glob"):
        KafkaStreams(
            StreamsBuilder().build(), application_id="app", bootstrap_servers="127.0.0.1:1"
        )
