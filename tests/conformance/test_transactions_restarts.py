"""A broker that stops or dies in the middle of a transaction: the transaction goes on.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.either import create_and_wait, either_broker, wait_for_leader
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.scenarios.stage import disturbed
from support.transactional import PRODUCERS, committed_offset, look
from support.waiting import eventually

SETTINGS = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
TOPIC = "t"
GROUP = "g"


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path, SETTINGS) as process:
        with RawConnection(process.port) as to:
            create_and_wait(to, TOPIC)
        yield process


def restart(broker: BrokerProcess, how: str) -> None:
    if how == "killed":
        broker.kill()
    else:
        broker.stop()
    broker.start()
    with RawConnection(broker.port) as to:
        wait_for_leader(to, TOPIC)


@disturbed(PRODUCERS, "stopped", "killed")
def test_a_transaction_survives(broker: BrokerProcess, client: str, disturbance: str) -> None:
    producer = PRODUCERS[client](broker.bootstrap, "tx")  # type: ignore[call-arg]
    producer.init()
    try:
        producer.begin()
        producer.send(TOPIC, b"before")
        producer.send_offsets({TOPIC: 5}, GROUP)
        restart(broker, disturbance)
        seen = eventually(lambda: look(broker.port, TOPIC), what="the topic can be read")
        assert not seen.settled
        assert seen.values == ()
        producer.send(TOPIC, b"after")
        producer.commit()
        eventually(lambda: look(broker.port, TOPIC).settled, what="everything is decided")
        assert look(broker.port, TOPIC).values == (b"before", b"after")
        # Its marker is another than the topic's.
        eventually(
            lambda: committed_offset(broker.port, GROUP, TOPIC) == (0, 5),
            what="the offset is decided",
        )
        restart(broker, disturbance)
        assert look(broker.port, TOPIC).values == (b"before", b"after")
        producer.begin()
        producer.send(TOPIC, b"never")
        producer.abort()
        eventually(lambda: look(broker.port, TOPIC).settled, what="the abort is written")
        restart(broker, disturbance)
        assert look(broker.port, TOPIC).values == (b"before", b"after")
    finally:
        with suppress(Exception):
            producer.close()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_transaction_of_nobody_is_aborted_after_the_restart(
    broker: BrokerProcess, how: str
) -> None:
    producer = PRODUCERS["confluent-kafka"](broker.bootstrap, "tx", 3_000)  # type: ignore[call-arg]
    producer.init()
    producer.begin()
    producer.send(TOPIC, b"orphan")
    producer.close()
    restart(broker, how)
    eventually(
        lambda: look(broker.port, TOPIC).settled, what="the orphan is aborted", seconds_max=90
    )
    assert look(broker.port, TOPIC).values == ()
