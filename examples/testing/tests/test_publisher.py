"""Producer code: what it does when the cluster is not at its best."""

import json

import pytest
from shop.publisher import NotPublished, Order, OrderPublisher

from moldau.testing import Broker

FIRST = Order(1, "ada", 30)


@pytest.mark.moldau(topics={"orders": 3})
def test_orders_are_written_as_agreed(moldau_broker: Broker) -> None:
    OrderPublisher(moldau_broker.bootstrap_servers).publish(FIRST, Order(2, "ada", 5))
    records = moldau_broker.records("orders", count=2)
    assert [record.key for record in records] == [b"ada", b"ada"]
    assert json.loads(records[0].value) == {"number": 1, "customer": "ada", "amount": 30}
    assert len({record.partition for record in records}) == 1


@pytest.mark.moldau(topics=["orders"])
def test_a_change_of_leaders_is_not_noticed(moldau_broker: Broker) -> None:
    fault = moldau_broker.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=3)
    OrderPublisher(moldau_broker.bootstrap_servers).publish(FIRST)
    assert fault.hits == 3
    assert len(moldau_broker.records("orders")) == 1


@pytest.mark.moldau(topics=["orders"])
def test_an_order_whose_answer_was_lost_is_not_written_twice(moldau_broker: Broker) -> None:
    moldau_broker.disconnect("Produce", lose="response", times=1)
    OrderPublisher(moldau_broker.bootstrap_servers).publish(FIRST)
    assert len(moldau_broker.records("orders")) == 1


@pytest.mark.moldau(topics=["orders"])
def test_a_cluster_that_is_away_is_told(moldau_broker: Broker) -> None:
    impatient = {"delivery.timeout.ms": 500}
    publisher = OrderPublisher(moldau_broker.bootstrap_servers, settings=impatient)
    moldau_broker.pause()
    with pytest.raises(NotPublished, match="1 of 1 orders"):
        publisher.publish(FIRST)
    moldau_broker.resume()
    OrderPublisher(moldau_broker.bootstrap_servers).publish(Order(2, "bob", 7))
    assert len(moldau_broker.records("orders")) == 1


@pytest.mark.moldau(topics=["orders"])
def test_no_order_is_lost_in_bad_weather(moldau_broker: Broker) -> None:
    """Random, but from a seed: `pytest --moldau-seed N` repeats what a failure has shown."""
    backoff = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
    publisher = OrderPublisher(moldau_broker.bootstrap_servers, settings=backoff)
    moldau_broker.disconnect("Produce", probability=0.2, lose="response")
    moldau_broker.fail("Produce", error="NOT_ENOUGH_REPLICAS", probability=0.2)
    orders = [Order(number, "ada", 1) for number in range(20)]
    for order in orders:
        publisher.publish(order)
    written = [json.loads(value or b"")["number"] for value in moldau_broker.values("orders")]
    assert written == [order.number for order in orders]
