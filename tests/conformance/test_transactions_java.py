"""Apache Kafka's own Java client in transactions, and its tool against hanging ones.

Its producer speaks transaction version 2. One session runs against both brokers and must print
the same: what is read, offsets and states in between, and what zombies and laggards are told.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.messages import ProduceRequest
from moldau.wire.records import encode_batch
from support.either import create_and_wait, either_broker
from support.java import KafkaTools, run_program
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.raw import RawConnection
from support.transactional import look
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOL = "org.apache.kafka.tools.TransactionsCommand"
SETTINGS = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    # Some records here are old enough to expire whenever a broker looks.
    "log.retention.ms": "-1",
}


@pytest.mark.long(
    "two sessions of the Java client; test_same_transaction_answers compares the answers"
)
@pytest.mark.slow("two sessions of the Java client, side by side")
def test_a_session_looks_the_same_as_with_apache_kafka(tmp_path: Path) -> None:
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    with (
        moldau(tmp_path / "moldau", overrides) as ours,
        apache_kafka(tmp_path / "kafka", SETTINGS) as kafkas,
        ThreadPoolExecutor(2) as both,
    ):
        our_lines, kafkas_lines = both.map(
            lambda broker: run_program("TransactionSession.java", broker.bootstrap).splitlines(),
            (ours, kafkas),
        )
    assert kafkas_lines[-1] == "done", f"the session ended with {kafkas_lines[-3:]}"
    differing = difflib.unified_diff(
        kafkas_lines, our_lines, "Apache Kafka", "Moldau", n=0, lineterm=""
    )
    assert not (listed := list(differing)), "\n".join(listed)


@pytest.fixture
def careless_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """Takes transactional records that no coordinator knows of, as brokers of old did."""
    careless = SETTINGS | {"transaction.partition.verification.enable": "false"}
    with either_broker(request, tmp_path, careless) as process:
        yield process


def test_a_hanging_transaction_is_found_and_aborted(careless_broker: BrokerProcess) -> None:
    broker = careless_broker
    with RawConnection(broker.port) as to:
        create_and_wait(to, "t")
        batch = encode_batch(
            # As of long ago: the tool looks for transactions older than their longest timeout.
            [(None, b"hanging", 1_700_000_000_000, ())],
            producer_id=4242,
            producer_epoch=3,
            base_sequence=0,
            is_transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id="nobody",
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[data])],
        )
        answer = to.call(ApiKey.PRODUCE, 11, request).responses[0].partition_responses[0]
    assert answer.error_code == 0, answer
    assert not look(broker.port, "t").settled
    with KafkaTools(broker.bootstrap) as tools:
        found = tools.run(TOOL, "find-hanging", "--broker-id", "1")
        assert found.status == 0, found
        assert re.search(r"^t\s+0\s+4242\s+3\s", found.output, re.MULTILINE), found.output
        aborted = tools.run(
            TOOL, "abort", "--topic", "t", "--partition", "0", "--start-offset", "0"
        )
        assert aborted.status == 0, aborted
        eventually(lambda: look(broker.port, "t").settled, what="the transaction is aborted")
        assert look(broker.port, "t").values == ()
        shown = tools.run(TOOL, "describe-producers", "--topic", "t", "--partition", "0")
        assert re.search(r"^4242\s+3\s+-?\d+\s+0\s+\d+\s+None", shown.output, re.MULTILINE), shown
