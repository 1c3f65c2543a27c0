"""Our clients' metrics have the names that Kafka's own clients give theirs."""

from __future__ import annotations

import re

import pytest

from moldau.client.consumer import Consumer
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.producer import Producer
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOPIC = "metrics-names"
# What Java's network thread does between two selects; an event loop of Python's does not tell.
NOT_OURS = re.compile(r"(select-(rate|total)|io-(wait-)?(ratio|time-ns-(avg|total)))$")


def names_in(output: str) -> set[tuple[str, str, tuple[str, ...]]]:
    """Group, name and keys of tags, as Kafka's performance tools print them."""
    found = re.findall(r"^([a-z-]+):([a-z-]+):\{([^}]*)\}", output, re.MULTILINE)
    assert found, output
    return {
        (group, name, tuple(sorted(re.findall(r"([a-z-]+)=", tags))))
        for group, name, tags in found
        if not NOT_OURS.match(name)
    }


def names_of(metrics: dict[MetricName, KafkaMetric]) -> set[tuple[str, str, tuple[str, ...]]]:
    for metric in metrics.values():
        metric.metric_value()
    return {(name.group, name.name, tuple(sorted(name.tags))) for name in metrics}


def test_names_groups_and_tags_are_those_of_java(broker: BrokerProcess) -> None:
    address = broker.bootstrap
    with KafkaTools(address) as tools:
        produced = tools.run_alone(
            "org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--num-records", "100",
            "--record-size", "100", "--throughput", "-1", "--print-metrics",
            "--producer-props", f"bootstrap.servers={address}",
        )  # fmt: skip
        consumed = tools.run_alone(
            "org.apache.kafka.tools.ConsumerPerformance", "--topic", TOPIC, "--num-records", "100",
            "--bootstrap-server", address, "--print-metrics", "--group", "metrics-java",
            "--timeout", "60000",
        )  # fmt: skip
    with Producer(bootstrap_servers=address) as producer:
        producer.send(TOPIC, b"value").result(60)
        assert names_of(producer.metrics()) == names_in(produced.output)
    with Consumer(
        bootstrap_servers=address, group_id="metrics-ours", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([TOPIC])
        while not consumer.poll(20):
            pass
        assert names_of(consumer.metrics()) == names_in(consumed.output)
