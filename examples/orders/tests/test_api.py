"""The orders service over HTTP, with a broker behind it."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from orders import topics
from orders.api import OrdersServer
from orders.model import FAILED, VALIDATED, Order, encoded

from moldau.testing import Broker

ORDER: dict[str, Any] = {
    "id": "o-1", "customer_id": "ada", "product": "hats", "quantity": 1, "price_cents": 2450,
}  # fmt: skip


class Client:
    def __init__(self, server: OrdersServer) -> None:
        self._connection = http.client.HTTPConnection(
            server.url.removeprefix("http://"), timeout=60
        )

    def post(self, body: Any) -> tuple[int, Any]:
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self._ask("POST", "/v1/orders", text)

    def get(self, path: str) -> tuple[int, Any]:
        return self._ask("GET", path, None)

    def _ask(self, method: str, path: str, body: str | bytes | None) -> tuple[int, Any]:
        self._connection.request(method, path, body)
        with self._connection.getresponse() as response:
            return response.status, json.loads(response.read())


@pytest.fixture
def server(moldau_broker: Broker) -> Iterator[OrdersServer]:
    topics.create(moldau_broker.bootstrap_servers)
    server = OrdersServer(moldau_broker.bootstrap_servers, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: OrdersServer) -> Client:
    return Client(server)


def test_an_order_is_written_once_however_often_it_is_posted(
    moldau_broker: Broker, client: Client
) -> None:
    status, order = client.post(ORDER)
    assert (status, order["state"]) == (201, "CREATED")
    assert client.post(ORDER) == client.post(order) == (200, order)
    assert client.get("/v1/orders/o-1") == (200, order)
    (record,) = moldau_broker.records("orders")
    assert record.key == b"o-1"
    assert json.loads(record.value) == order
    status, answer = client.post({**ORDER, "quantity": 2})
    assert (status, answer["error"]) == (409, "order o-1 exists, and is another")


def test_an_order_is_known_after_a_restart(moldau_broker: Broker, server: OrdersServer) -> None:
    _, order = Client(server).post(ORDER)
    again = OrdersServer(moldau_broker.bootstrap_servers, "127.0.0.1", 0)
    again.start()
    try:
        assert Client(again).post(ORDER) == (200, order)
    finally:
        again.stop()
    assert len(moldau_broker.records("orders")) == 1


@pytest.mark.parametrize(
    ("state", "path"),
    [
        pytest.param(VALIDATED, "/v1/orders/o-1/validated?timeout=30", id="validated"),
        pytest.param(VALIDATED, "/v1/orders/o-1?wait=validated&timeout=30", id="wait"),
        pytest.param(FAILED, "/v1/orders/o-1?wait=validated&timeout=30", id="wait in vain"),
    ],
)
def test_get_waits_for_the_end(
    moldau_broker: Broker, client: Client, state: str, path: str
) -> None:
    _, order = client.post(ORDER)
    final = Order.from_json(order).moved_to(state)
    (record,) = moldau_broker.records("orders")
    moldau_broker.produce("orders", encoded(final.as_json()), key="o-1", partition=record.partition)
    assert client.get(path) == (200, final.as_json())


def test_get_says_when_the_end_did_not_come(client: Client) -> None:
    client.post(ORDER)
    status, answer = client.get("/v1/orders/o-1/validated?timeout=0.05")
    assert (status, answer["error"]) == (504, "order o-1 is still CREATED")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/orders/nobody", 404),
        ("/v1/orders/nobody?wait=final&timeout=0.05", 404),
        ("/v1/order", 404),
        ("/v1/orders/o-1?wait=soon", 400),
        ("/v1/orders/o-1?wait=final&timeout=long", 400),
        ("/v1/orders/o-1?wait=final&timeout=1e9", 400),
    ],
)
def test_questions_that_have_no_answer(client: Client, path: str, status: int) -> None:
    found, answer = client.get(path)
    assert found == status
    assert answer["error"]


@pytest.mark.parametrize("body", ["", "{", "[]", b"\xff", json.dumps({**ORDER, "quantity": "x"})])
def test_what_is_no_order_is_refused(moldau_broker: Broker, client: Client, body: Any) -> None:
    status, answer = client.post(body)
    assert status == 400
    assert answer["error"]
    assert moldau_broker.records("orders") == []
