"""Kafka Streams with `group.protocol=streams`: the same session with Moldau and Apache Kafka.

A word count (tests/java/StreamsSession.java) waits for its source topic, has its internal topics
made, shares its tasks between two instances, gets standbys by a group config, loses an instance
and counts on; its admin client describes, lists and deletes the group. All it prints must agree.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.java import run_program
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

NO_DELAY = "group.streams.initial.rebalance.delay.ms"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    with moldau(ours, [f"{NO_DELAY}=0"]) as first, apache_kafka(kafkas, {NO_DELAY: "0"}) as second:
        yield first, second


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_streams_application_sees_the_same_as_with_apache_kafka(
    brokers: tuple[BrokerProcess, BrokerProcess], guarantee: str
) -> None:
    with ThreadPoolExecutor(2) as both:
        ours, kafkas = both.map(
            lambda broker: run_program(
                "StreamsSession.java", broker.bootstrap, guarantee
            ).splitlines(),
            brokers,
        )
    assert kafkas[-1] == "end", "the session did not reach its end"
    differing = difflib.unified_diff(kafkas, ours, "Apache Kafka", "Moldau", n=0, lineterm="")
    assert not (listed := list(differing)), "\n".join(listed)
