"""Client metrics: what the stats make of values, names, sensors, reporters."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest

import moldau.client.metrics
from moldau.client.config import PRODUCER_KEYS, parse_settings
from moldau.client.metrics import (
    ConsumerMetrics,
    KafkaMetric,
    MetricName,
    Metrics,
    NetworkMetrics,
    ProducerMetrics,
    ShareConsumerMetrics,
    Windows,
    add_app_info,
    resolve_reporters,
)
from moldau.client.metrics import _stats as stats
from moldau.client.metrics._stats import CumulativeSum
from moldau.client.metrics.registry import IDLE_MS
from moldau.config.errors import ConfigError
from support.plain import load_plain

WINDOWS = Windows(samples=2, window_ms=1_000)


class Time:
    def __init__(self) -> None:
        self.ms = 10_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def metrics(time: Time) -> Metrics:
    return Metrics(WINDOWS, tags={"client-id": "c"}, now_ms=time)


def value(metrics: Metrics, group: str, name: str, **tags: str) -> Any:
    metric = metrics.get(name, group, tags)
    assert metric is not None, f"{group} {name} {tags}"
    return metric.metric_value()


@pytest.fixture(params=["plain", "installed"])
def form(request: pytest.FixtureRequest) -> ModuleType:
    """The plain file always, and what is installed: the compiled module where it was built."""
    return load_plain(moldau.client.metrics, "_stats") if request.param == "plain" else stats


@pytest.mark.parametrize(
    ("kind", "expected", "empty"),
    [
        ("Avg", 4.0, math.nan),
        ("Max", 9.0, math.nan),
        ("Min", 1.0, math.nan),
        ("CumulativeSum", 12.0, 0.0),
        ("CumulativeCount", 3.0, 0.0),
        ("Value", 2.0, 0.0),
        # Two seconds have passed since the oldest window began.
        ("Rate", 6.0, 0.0),
        ("count_rate", 1.5, 0.0),
    ],
)
def test_stats_of_three_values(form: ModuleType, kind: str, expected: float, empty: float) -> None:
    windows = form.Windows(2, 1_000)
    stat = getattr(form, kind)()
    assert stat.measure(windows, 0) == pytest.approx(empty, nan_ok=True)
    for now_ms, number in ((0, 1.0), (500, 9.0), (900, 2.0)):
        stat.record(windows, number, now_ms)
    assert stat.measure(windows, 2_000 if "ate" in kind else 900) == expected


def test_windowed_figures_forget_and_totals_do_not(form: ModuleType) -> None:
    windows = form.Windows(2, 1_000)
    average, largest, total = form.Avg(), form.Max(), form.CumulativeSum()
    for stat in (average, largest, total):
        stat.record(windows, 100, 0)
        stat.record(windows, 2, 1_500)
    assert (average.measure(windows, 1_500), largest.measure(windows, 1_500)) == (51, 100)
    assert (average.measure(windows, 2_500), largest.measure(windows, 2_500)) == (2, 2)
    assert math.isnan(average.measure(windows, 9_000))
    assert math.isnan(largest.measure(windows, 9_000))
    assert total.measure(windows, 9_000) == 102


def test_a_window_is_reused_when_all_are_full(form: ModuleType) -> None:
    windows = form.Windows(2, 1_000)
    rate = form.Rate()
    for second in range(20):
        rate.record(windows, 10, second * 1_000)
    # Of three windows in use the last began a second ago.
    assert rate.measure(windows, 20_000) == pytest.approx(10)


def test_a_rate_at_the_start_is_not_exaggerated(form: ModuleType) -> None:
    windows = form.Windows(2, 1_000)
    rate = form.Rate()
    rate.record(windows, 100, 0)
    assert rate.measure(windows, 1) == pytest.approx(100 / 1.001)


def test_hourly_rates_and_ratios(form: ModuleType) -> None:
    windows = form.Windows(2, 1_000)
    hourly = form.hourly_rate()
    hourly.record(windows, 7, 0)
    hourly.record(windows, 7, 1_800_000)
    assert hourly.measure(windows, 3_600_000) == pytest.approx(2)
    ratio = form.nanosecond_ratio()
    ratio.record(windows, 500_000_000, 0)
    assert ratio.measure(windows, 1_000) == pytest.approx(0.5)


def test_a_recorder_asks_the_time_only_where_it_is_not_told(form: ModuleType) -> None:
    asked: list[int] = []

    def now_ms() -> int:
        asked.append(1)
        return 50

    parent = form.Recorder(form.Windows(), now_ms, ())
    child = form.Recorder(form.Windows(), now_ms, (parent,))
    total = form.CumulativeSum()
    parent.add_stat(total)
    asked.clear()
    child.record(3)
    child.record(4, 60)
    assert (len(asked), parent.last_ms, parent.measure(total)) == (1, 60, 7)


def test_names_are_equal_by_name_group_and_tags() -> None:
    name = MetricName("n", "g", "what it is", {"a": "1", "b": "2"})
    assert name == MetricName("n", "g", "", {"b": "2", "a": "1"})
    assert hash(name) == hash(MetricName("n", "g", "", {"b": "2", "a": "1"}))
    assert name != MetricName("n", "g", "what it is", {"a": "1"})
    assert name != MetricName("n", "h", "what it is", {"a": "1", "b": "2"})


def test_a_name_is_taken_once(metrics: Metrics) -> None:
    metrics.add_gauge("x", "g", "", lambda: 1)
    with pytest.raises(ValueError, match="already registered"):
        metrics.add_gauge("x", "g", "", lambda: 2)


def test_the_registry_counts_itself(metrics: Metrics) -> None:
    before = value(metrics, "kafka-metrics-count", "count")
    metrics.add_gauge("x", "g", "", lambda: 1)
    assert value(metrics, "kafka-metrics-count", "count") == before + 1


def test_a_parent_gets_what_its_children_record(metrics: Metrics) -> None:
    parent = metrics.sensor("all")
    parent.add(metrics.metric_name("total", "g"), CumulativeSum())
    for name in ("a", "b"):
        metrics.sensor(name, parents=(parent,)).record(3)
    assert value(metrics, "g", "total") == 6


def test_removing_a_sensor_removes_its_metrics(metrics: Metrics) -> None:
    sensor = metrics.sensor("s")
    sensor.add(metrics.metric_name("total", "g"), CumulativeSum())
    metrics.remove_sensor("s")
    assert metrics.get("total", "g") is None
    assert metrics.sensor("s") is not sensor


def test_idle_topics_are_dropped_whole_and_come_back(time: Time, metrics: Metrics) -> None:
    producer = ProducerMetrics(metrics)
    producer.retried("t", 5)
    time.ms += IDLE_MS - 1
    send(producer, "t", 3)
    time.ms += IDLE_MS - 1
    assert value(metrics, "producer-topic-metrics", "record-send-total", topic="t") == 3
    assert value(metrics, "producer-topic-metrics", "record-retry-total", topic="t") == 5
    time.ms += 1
    names = {name.tags.get("topic") for name in metrics.metrics()}
    assert "t" not in names
    send(producer, "t", 2)
    producer.failed("t", 1)
    assert value(metrics, "producer-topic-metrics", "record-send-total", topic="t") == 2
    assert value(metrics, "producer-topic-metrics", "record-error-total", topic="t") == 1


def send(producer: ProducerMetrics, topic: str, records: int) -> None:
    producer.batch_sent(
        topic,
        records=records,
        size=100 * records,
        compression_ratio=0.5,
        queue_time_ms=4,
        record_size_max=120,
    )


def test_a_producers_figures(metrics: Metrics) -> None:
    producer = ProducerMetrics(metrics)
    producer.add_gauges({"buffer-total-bytes": lambda: 32.0})
    send(producer, "t", 3)
    send(producer, "u", 5)
    producer.request_sent(8)
    producer.request_answered(12, 0)
    producer.batch_split()
    producer.memory_exhausted()
    producer.spent("flush", 1_000)
    group = "producer-metrics"
    assert value(metrics, group, "record-send-total") == 8
    assert value(metrics, group, "records-per-request-avg") == 8
    assert value(metrics, group, "batch-size-max") == 500
    assert value(metrics, group, "batch-size-avg") == 400
    assert value(metrics, group, "compression-rate-avg") == 0.5
    assert value(metrics, group, "record-queue-time-max") == 4
    assert value(metrics, group, "request-latency-avg") == 12
    assert value(metrics, group, "batch-split-total") == 1
    assert value(metrics, group, "buffer-exhausted-total") == 1
    assert value(metrics, group, "flush-time-ns-total") == 1_000
    assert value(metrics, group, "buffer-total-bytes") == 32
    assert value(metrics, "producer-topic-metrics", "byte-total", topic="u") == 500


def test_a_consumers_figures(time: Time, metrics: Metrics) -> None:
    consumer = ConsumerMetrics(metrics)
    group = "consumer-fetch-manager-metrics"
    assert value(metrics, "consumer-metrics", "last-poll-seconds-ago") == -1
    consumer.poll_started()
    time.ms += 30
    consumer.poll_ended()
    time.ms += 70
    consumer.poll_started()
    assert value(metrics, "consumer-metrics", "time-between-poll-max") == 100
    assert value(metrics, "consumer-metrics", "poll-idle-ratio-avg") == 1.0
    consumer.assigned([("t", 0), ("t", 1)], lambda topic, partition: partition + 4)
    consumer.fetch_answered(5, 0)
    consumer.consumed({"t": (10, 1_000), "u": (1, 10)})
    consumer.positioned("t", 1, lag=7, lead=3)
    consumer.positioned("gone", 1, lag=700)
    assert value(metrics, group, "records-consumed-total") == 11
    assert value(metrics, group, "bytes-consumed-total", topic="t") == 1_000
    assert value(metrics, group, "fetch-total") == 1
    assert value(metrics, group, "records-lag-max") == 7
    assert value(metrics, group, "records-lag", topic="t", partition="1") == 7
    assert value(metrics, group, "records-lead-min", topic="t", partition="1") == 3
    assert value(metrics, group, "preferred-read-replica", topic="t", partition="1") == 5
    consumer.assigned([("t", 0)])
    assert metrics.get("records-lag", group, {"topic": "t", "partition": "1"}) is None
    assert metrics.get("records-lag", group, {"topic": "t", "partition": "0"}) is not None


def test_group_figures_are_there_for_members_only(time: Time, metrics: Metrics) -> None:
    consumer = ConsumerMetrics(metrics)
    group = "consumer-coordinator-metrics"
    consumer.heartbeat_answered(3)
    assert not [name for name in metrics.metrics() if name.group == group]
    consumer.join_group()
    consumer.join_group()
    consumer.heartbeat_sent()
    consumer.heartbeat_answered(3)
    consumer.joined(20)
    consumer.synced(10)
    consumer.rebalanced(40)
    consumer.rebalance_failed()
    consumer.callback_ran("revoked", 6)
    consumer.commit_answered(8)
    time.ms += 2_500
    assert value(metrics, group, "heartbeat-total") == 1
    assert value(metrics, group, "last-heartbeat-seconds-ago") == 2
    assert value(metrics, group, "last-rebalance-seconds-ago") == 2
    assert value(metrics, group, "rebalance-latency-total") == 40
    assert value(metrics, group, "rebalance-total") == 1
    assert value(metrics, group, "failed-rebalance-total") == 1
    assert value(metrics, group, "join-total") == 1
    assert value(metrics, group, "commit-total") == 1


def test_a_share_consumers_figures(metrics: Metrics) -> None:
    consumer = ShareConsumerMetrics(metrics)
    consumer.consumed(5, 50)
    consumer.consumed(7, 70)
    consumer.acknowledged(12)
    consumer.acknowledge_failed(2)
    consumer.heartbeat_answered(4)
    consumer.rebalanced()
    group = "consumer-share-fetch-manager-metrics"
    assert value(metrics, group, "records-per-request-max") == 7
    assert value(metrics, group, "acknowledgements-send-total") == 12
    assert value(metrics, group, "acknowledgements-error-total") == 2
    assert value(metrics, "consumer-share-coordinator-metrics", "rebalance-total") == 1


def test_network_figures_of_all_and_of_each_node(metrics: Metrics) -> None:
    network = NetworkMetrics(metrics, "producer")
    network.connection_opened(1)
    network.connection_opened(2)
    network.connection_closed(2)
    network.request_sent(1, 100)
    network.request_sent(2, 300)
    network.response_received(1, 40, 9)
    assert value(metrics, "producer-metrics", "connection-count") == 1
    assert value(metrics, "producer-metrics", "outgoing-byte-total") == 400
    assert value(metrics, "producer-metrics", "request-size-max") == 300
    assert value(metrics, "producer-metrics", "network-io-total") == 3
    node = {"node-id": "node-1"}
    assert value(metrics, "producer-node-metrics", "request-latency-max", **node) == 9
    assert value(metrics, "producer-node-metrics", "incoming-byte-total", **node) == 40


def test_app_info(metrics: Metrics) -> None:
    add_app_info(metrics)
    assert value(metrics, "app-info", "version")
    assert value(metrics, "app-info", "start-time-ms") > 0


class Reporter:
    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.seen: list[str] = []
        self.closed = False

    def configure(self, config: dict[str, Any]) -> None:
        self.config = config

    def init(self, metrics: list[KafkaMetric]) -> None:
        self.seen += [metric.metric_name.name for metric in metrics]

    def metric_change(self, metric: KafkaMetric) -> None:
        self.seen.append(metric.metric_name.name)

    def metric_removal(self, metric: KafkaMetric) -> None:
        self.seen.remove(metric.metric_name.name)

    def close(self) -> None:
        self.closed = True


def test_reporters_follow_what_is_registered() -> None:
    values = {
        "metrics.num.samples": 3,
        "metrics.sample.window.ms": 100,
        "metric.reporters": [
            "org.apache.kafka.common.metrics.JmxReporter",
            Reporter,
        ],
    }
    (reporter,) = resolve_reporters(values["metric.reporters"], values)
    metrics = Metrics.of({**values, "metric.reporters": [reporter]}, client_id="c")
    assert (metrics.windows.samples, metrics.windows.window_ms) == (3, 100)
    assert reporter.config["metrics.num.samples"] == 3
    name = metrics.add_gauge("x", "g", "", lambda: 1)
    assert name.tags == {"client-id": "c"}
    assert reporter.seen == ["count", "x"]
    metrics.remove(name)
    assert reporter.seen == ["count"]
    metrics.close()
    assert reporter.closed


def test_a_reporter_that_fails_does_not_stop_the_client(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def metric_change(self, metric: KafkaMetric) -> None:
            raise RuntimeError("no")

    metrics.add_reporter(Broken())
    metrics.add_gauge("x", "g", "", lambda: 1)
    assert "failed in metric_change" in caplog.text


def test_a_reporter_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no\.such\.Reporter"):
        resolve_reporters(["no.such.Reporter"], {})


@pytest.mark.parametrize("given", [Reporter, [Reporter], (Reporter(),), Reporter()])
def test_the_setting_takes_classes_and_objects_alone_or_in_a_list(given: Any) -> None:
    values = parse_settings(PRODUCER_KEYS, {"bootstrap.servers": "a:1", "metric.reporters": given})
    (reporter,) = resolve_reporters(values["metric.reporters"], values)
    assert isinstance(reporter, Reporter)


def test_javas_own_reporter_is_the_default_and_left_out() -> None:
    values = parse_settings(PRODUCER_KEYS, {"bootstrap.servers": "a:1"})
    assert resolve_reporters(values["metric.reporters"], values) == []
