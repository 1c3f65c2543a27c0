"""The same kinds of tests with Moldau's own client, in both protocols of groups."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from shop.audit import Auditor

from moldau.client import Producer
from moldau.testing import Broker

ORDERS = 60
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@contextmanager
def auditors(broker: Broker, protocol: str, *names: str) -> Iterator[Counter[int]]:
    seen: Counter[int] = Counter()
    settings = {"group_protocol": protocol}
    if protocol == "classic":
        settings["heartbeat_interval_ms"] = "100"
    many = [
        Auditor(
            broker.bootstrap_servers,
            lambda number: seen.update([number]),
            client_id=name,
            **settings,
        )
        for name in names
    ]
    threads = [threading.Thread(target=each.run) for each in many]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        for each in many:
            each.stop()
        for thread in threads:
            thread.join()


def publish(broker: Broker, numbers: range) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, value_serializer="json") as producer:
        for number in numbers:
            producer.send("orders", value={"number": number}, partition=number % 4)


@PROTOCOLS
@pytest.mark.moldau(topics={"orders": 4})
def test_auditors_share_orders_through_a_rebalance(moldau_broker: Broker, protocol: str) -> None:
    group = moldau_broker.group("audit")
    with auditors(moldau_broker, protocol, "one", "two") as seen:
        group.wait_until_stable(members=2)
        publish(moldau_broker, range(ORDERS))
        moldau_broker.wait_until(lambda: len(seen) == ORDERS, what="all orders")
        group.rebalance().wait()
        group.wait_until_stable(members=2)
        publish(moldau_broker, range(ORDERS, 2 * ORDERS))
        moldau_broker.wait_until(lambda: len(seen) == 2 * ORDERS, what="all orders")
    assert sum(group.committed().values()) == 2 * ORDERS


@PROTOCOLS
@pytest.mark.moldau(topics={"orders": 4})
def test_an_audit_outlives_its_broker(moldau_broker: Broker, protocol: str) -> None:
    with auditors(moldau_broker, protocol, "one") as seen:
        publish(moldau_broker, range(ORDERS))
        moldau_broker.wait_until(lambda: len(seen) == ORDERS, what="all orders")
        moldau_broker.restart(kill=True)
        publish(moldau_broker, range(ORDERS, 2 * ORDERS))
        moldau_broker.wait_until(lambda: len(seen) == 2 * ORDERS, what="all orders")
