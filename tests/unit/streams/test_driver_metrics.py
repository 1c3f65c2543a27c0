"""The metrics of the test driver: the names, and the numbers that Kafka Streams' driver has."""

from __future__ import annotations

from moldau.streams import (
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    TopologyTestDriver,
    key_value_store,
)


def driver(**config: str) -> TopologyTestDriver:
    builder = StreamsBuilder()
    words = builder.stream("text", key_serde="string", value_serde="string")
    counts = words.group_by_key().count(store="counts")
    counts.to_stream().to("counts", key_serde="string", value_serde="long")
    made = TopologyTestDriver(
        builder.build(), config={name.replace("_", "."): each for name, each in config.items()}
    )
    text = made.input_topic("text")
    for key, timestamp in (("a", 5), ("a", 7), ("b", 6), (None, 6)):
        text.pipe_input(key, "x", timestamp=timestamp)
    return made


def values(made: TopologyTestDriver, group: str) -> dict[str, float]:
    return {
        " ".join((name.name, *(each for key, each in name.tags.items() if key != "thread-id"))): (
            metric.value
        )
        for name, metric in made.metrics().items()
        if name.group == group
    }


def test_what_is_recorded_at_info() -> None:
    with driver() as made:
        tasks = values(made, "stream-task-metrics")
        assert tasks["dropped-records-total 0_0"] == 1
        assert tasks["process-total 0_0"] == 0
        topics = values(made, "stream-topic-metrics")
        assert topics["records-consumed-total 0_0 KSTREAM-SOURCE-0000000000 text"] == 4
        assert topics["records-produced-total 0_0 KSTREAM-SINK-0000000003 counts"] == 3
        nodes = values(made, "stream-processor-node-metrics")
        assert nodes["process-total 0_0 KSTREAM-SOURCE-0000000000"] == 4
        assert nodes["record-e2e-latency-max 0_0 KSTREAM-SOURCE-0000000000"] == -5
        assert nodes["record-e2e-latency-min 0_0 KSTREAM-SOURCE-0000000000"] == -7


def test_what_is_recorded_at_debug() -> None:
    with driver(metrics_recording_level="DEBUG") as made:
        tasks = values(made, "stream-task-metrics")
        assert tasks["process-total 0_0"] == 4
        assert tasks["record-lateness-avg 0_0"] == 0.5
        made.input_topic("text").pipe_input("a", "x", timestamp=9)
        assert values(made, "stream-task-metrics")["process-total 0_0"] == 5
        assert values(made, "stream-state-metrics")["put-rate 0_0 counts"] > 0


class Selling(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        add = context.metrics.add_latency_rate_total_sensor
        self.sales = add("shop", "prague", "sale", city="Prague")
        self.details = context.metrics.add_rate_total_sensor("shop", "all", "look", level="DEBUG")

    def process(self, record: Record[str, str]) -> None:
        self.sales.record(float(record.value))
        self.details.record()


def test_processors_add_their_own() -> None:
    builder = StreamsBuilder()
    builder.stream("sales", key_serde="string", value_serde="string").process(Selling)
    with TopologyTestDriver(builder.build()) as made:
        made.input_topic("sales").pipe_values(["1", "3"])
        assert values(made, "stream-shop-metrics") == {
            "sale-rate prague Prague": values(made, "stream-shop-metrics")[
                "sale-rate prague Prague"
            ],
            "sale-total prague Prague": 2,
            "sale-latency-avg prague Prague": 2,
            "sale-latency-max prague Prague": 3,
            "look-rate all": 0,
            "look-total all": 0,
        }


class Filling(Processor):
    """Of a global store: counts what it puts there."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.puts = context.metrics.add_rate_total_sensor("global", "rates", "put")

    def process(self, record: Record[str, str]) -> None:
        self.context.state_store("rates").put(record.key, record.value)
        self.puts.record()


def test_processors_of_global_stores_add_theirs() -> None:
    builder = StreamsBuilder()
    store = key_value_store("rates", key_serde="string", value_serde="string")
    builder.add_global_store(store, "rates", Filling, key_serde="string", value_serde="string")
    with TopologyTestDriver(builder.build()) as made:
        made.input_topic("rates").pipe_input("eur", "25")
        assert values(made, "stream-global-metrics")["put-total rates"] == 1
