"""Exactly-once while brokers crash."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Message
from shop.payments import PaymentProcessor

from moldau.testing import Broker, Cluster

ORDERS = 40
TOPICS = pytest.mark.moldau(topics={"orders": 1, "payments": 1})


@contextmanager
def running(*processors: PaymentProcessor) -> Iterator[list[BaseException]]:
    """Processors at work, each in a thread; what they ended with."""
    failures: list[BaseException] = []

    def run(processor: PaymentProcessor) -> None:
        try:
            processor.run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in processors]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        for processor in processors:
            processor.stop()
        for thread in threads:
            thread.join()


def publish(cluster: Cluster, numbers: range) -> None:
    cluster.produce("orders", *({"number": number, "amount": 1} for number in numbers))


def paid(cluster: Cluster, count: int) -> list[int]:
    """The orders that were paid, once there are so many."""
    values = cluster.values("payments", count=count, isolation_level="read_committed", timeout=60)
    return sorted(json.loads(value or b"")["order"] for value in values)


@TOPICS
def test_every_order_is_paid_once_though_a_broker_crashes(moldau_cluster: Cluster) -> None:
    crashed: list[Any] = []

    def crash(messages: list[Message]) -> None:
        if not crashed:
            # In the middle of a transaction: its coordinator is gone, and with it, perhaps, the
            # leader of a topic.
            node = moldau_cluster.transaction_coordinator("payments-1")
            node.kill()
            crashed.append(node)

    publish(moldau_cluster, range(ORDERS))
    processor = PaymentProcessor(moldau_cluster.bootstrap_servers, before_commit=crash)
    with running(processor) as failures:
        assert paid(moldau_cluster, ORDERS) == list(range(ORDERS))
        (node,) = crashed
        node.start()
        publish(moldau_cluster, range(ORDERS, 2 * ORDERS))
        assert paid(moldau_cluster, 2 * ORDERS) == list(range(2 * ORDERS))
    assert not failures


@TOPICS
def test_a_transaction_that_the_broker_refuses_is_done_again(moldau_broker: Broker) -> None:
    fault = moldau_broker.fail("Produce", error="INVALID_TXN_STATE", times=1)
    publish(moldau_broker, range(ORDERS))
    with running(PaymentProcessor(moldau_broker.bootstrap_servers)) as failures:
        assert paid(moldau_broker, ORDERS) == list(range(ORDERS))
    assert fault.hits == 1
    assert not failures


@TOPICS
def test_a_processor_that_dies_leaves_nothing_half_done(moldau_broker: Broker) -> None:
    class Died(Exception):
        pass

    def die(messages: list[Message]) -> None:
        raise Died

    publish(moldau_broker, range(ORDERS))
    with running(PaymentProcessor(moldau_broker.bootstrap_servers, before_commit=die)) as failures:
        moldau_broker.wait_until(lambda: failures)
    assert isinstance(failures[0], Died)
    # The next one of the same name ends what the dead one had begun.
    with running(PaymentProcessor(moldau_broker.bootstrap_servers)) as failures:
        assert paid(moldau_broker, ORDERS) == list(range(ORDERS))
    assert not failures
