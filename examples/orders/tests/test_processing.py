"""Services on a broker: exactly once, although things go wrong."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from orders import topics
from orders.model import encoded
from orders.services import processors
from stage import order

from moldau.client import Producer
from moldau.testing import Broker

ORDERS = 30


@pytest.fixture
def broker(moldau_broker: Broker) -> Broker:
    topics.create(moldau_broker.bootstrap_servers)
    return moldau_broker


@contextmanager
def running(broker: Broker, *names: str, instance: str = "1") -> Iterator[None]:
    failures: list[BaseException] = []

    def run(each: Any) -> None:
        try:
            each.run()
        except BaseException as error:
            failures.append(error)

    many = [
        each
        for name in names
        for each in processors(name, broker.bootstrap_servers, instance=instance)
    ]
    threads = [threading.Thread(target=run, args=(each,)) for each in many]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for each in many:
            each.stop()
        for thread in threads:
            thread.join()
    assert not failures


def write(broker: Broker, numbers: range, **fields: Any) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in numbers:
            each = order(f"o-{number}", at_s=number, **fields)
            producer.send(topics.ORDERS, encoded(each.as_json()), key=each.id)


def stock(broker: Broker, product: str, count: int) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        row = encoded({"product": product, "stock": count})
        producer.send(topics.WAREHOUSE_INVENTORY, row, key=product)


def validations(broker: Broker, count: int) -> Counter[tuple[str, str]]:
    """Who said what, once there are so many."""
    values = broker.values(
        topics.ORDER_VALIDATIONS, count=count, isolation_level="read_committed", timeout=60
    )
    said = [json.loads(value or b"") for value in values]
    assert len({(each["order_id"], each["check"]) for each in said}) == len(said)
    return Counter((each["check"], each["result"]) for each in said)


def test_stock_is_reserved_once_through_an_aborted_transaction(broker: Broker) -> None:
    stock(broker, "hats", 20)
    write(broker, range(ORDERS))
    fault = broker.fail("EndTxn", error="INVALID_TXN_STATE", times=2)
    with running(broker, "inventory"):
        assert validations(broker, ORDERS) == {("inventory", "PASS"): 20, ("inventory", "FAIL"): 10}
    assert fault.hits == 2


def test_the_next_instance_goes_on_with_the_state_of_the_first(broker: Broker) -> None:
    stock(broker, "hats", 20)
    with running(broker, "inventory"):
        write(broker, range(15))
        assert validations(broker, 15) == {("inventory", "PASS"): 15}
    with running(broker, "inventory", instance="2"):
        write(broker, range(15, ORDERS))
        assert validations(broker, ORDERS) == {("inventory", "PASS"): 20, ("inventory", "FAIL"): 10}


def test_two_instances_share_the_work(broker: Broker) -> None:
    with running(broker, "order-details"), running(broker, "order-details", instance="2"):
        broker.group("order-details").wait_until_stable(members=2)
        write(broker, range(ORDERS))
        assert validations(broker, ORDERS) == {("order-details", "PASS"): ORDERS}


def test_what_is_no_order_is_put_aside_and_the_rest_goes_on(broker: Broker) -> None:
    broker.produce(topics.ORDERS, "no order", key="x")
    broker.produce(topics.ORDERS, {"id": "half"}, key=None)
    write(broker, range(3))
    with running(broker, "order-details"):
        assert validations(broker, 3) == {("order-details", "PASS"): 3}
    letters = broker.records(topics.DEAD_LETTER, isolation_level="read_committed")
    assert sorted(letter.value for letter in letters) == [b"no order", b'{"id": "half"}']
    headers = dict(letters[0].headers)
    assert headers["__connect.errors.topic"] == b"orders"
    assert headers["__connect.errors.connector.name"] == b"order-details"


def test_a_service_that_has_caught_up_has_no_lag(broker: Broker) -> None:
    group = broker.group("payments")
    with running(broker, "payments"):
        write(broker, range(ORDERS))
        broker.wait_until(lambda: sum(group.committed().values()) == ORDERS, what="all read")
        write(broker, range(ORDERS), state="VALIDATED")
        ends = broker.end_offsets(topics.ORDERS)
        broker.wait_until(
            lambda: sum(group.committed().values()) == sum(ends.values()), what="all read"
        )
    # A payment for each, although they were all written twice.
    paid = broker.values(topics.PAYMENTS, isolation_level="read_committed")
    assert len(paid) == ORDERS
