"""Apache Kafka's own Java client: one session, the same lines from Moldau and from Apache Kafka.

The session (tests/java/ClientSession.java) prints what its user sees of producers, consumers,
groups and the admin client, refusals included; here the two prints are laid side by side.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.java import run_program
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    # Records here are old enough to expire whenever a broker looks, and producers with them.
    settings = {
        "log.retention.ms": "-1",
        "producer.id.expiration.check.interval.ms": str(24 * 60 * 60 * 1000),
    }
    overrides = ["node.id=1", "group.initial.rebalance.delay.ms=0"]
    overrides += [f"{key}={value}" for key, value in settings.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, settings) as second:
        yield first, second


@pytest.mark.slow("two sessions of the Java client, side by side")
def test_a_session_looks_the_same_as_with_apache_kafka(
    brokers: tuple[BrokerProcess, BrokerProcess],
) -> None:
    with ThreadPoolExecutor(2) as both:
        ours, kafkas = both.map(
            lambda broker: run_program("ClientSession.java", broker.bootstrap).splitlines(), brokers
        )
    assert kafkas[-1] == "left []", "the session did not reach its end"
    differing = difflib.unified_diff(kafkas, ours, "Apache Kafka", "Moldau", n=0, lineterm="")
    assert not (listed := list(differing)), "\n".join(listed)
