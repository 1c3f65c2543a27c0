"""Kafka Streams with `group.protocol=streams`: the same session with Moldau and Apache Kafka.

A word count (tests/java/StreamsSession.java) waits for its source topic, has its internal topics
made, shares its tasks between two instances, gets standbys by a group config, loses an instance
and counts on; its admin client describes, lists and deletes the group. All it prints must agree.
"""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.either import either_broker
from support.java import program, run_program
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

NO_DELAY = "group.streams.initial.rebalance.delay.ms"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    with moldau(ours, [f"{NO_DELAY}=0"]) as first, apache_kafka(kafkas, {NO_DELAY: "0"}) as second:
        yield first, second


@pytest.mark.long("two sessions of Kafka Streams; test_same_streams_answers compares each answer")
@pytest.mark.slow("two sessions of Kafka Streams that wait for rebalances")
@pytest.mark.parametrize(
    "guarantee",
    [
        "exactly_once_v2",
        pytest.param("at_least_once", marks=pytest.mark.long("the same without transactions")),
    ],
)
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


@pytest.mark.long("two restarts under Kafka Streams; test_embedded has restarts of ours")
@pytest.mark.slow("Kafka Streams restores its state after each of two restarts")
def test_an_application_counts_on_when_the_broker_restarts(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Once stopped, once killed: members stay, nothing is counted twice or lost."""
    with either_broker(request, tmp_path, {NO_DELAY: "0"}) as broker:
        check_counting_over_restarts(broker)


def check_counting_over_restarts(broker: BrokerProcess) -> None:
    command = program("StreamsSession.java")
    command += [broker.bootstrap, "exactly_once_v2", "restarts"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        seen = []
        try:
            for line in session.stdout:
                seen.append(line.strip())
                if seen[-1] == "restart":
                    broker.stop() if seen.count("restart") % 2 else broker.kill()
                    broker.start()
                    session.stdin.write("\n")
                    session.stdin.flush()
        finally:
            session.kill()
    assert seen[-1] == "end", seen
    assert seen.count("counts {a=3, b=3, c=3}") == 1
