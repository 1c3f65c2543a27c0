"""What is an order, and what is refused at the door."""

from typing import Any

import pytest
from orders.model import CREATED, FAILED, InvalidOrder, Order, decoded, encoded

GOOD: dict[str, Any] = {
    "id": "o-1",
    "customer_id": "ada",
    "product": "hats",
    "quantity": 2,
    "price_cents": 2450,
    "created_at": "2026-01-31T12:00:00.250Z",
}


def test_an_order_survives_the_topic() -> None:
    order = Order.from_request(GOOD, now_ms=0)
    assert order.value_cents == 4900
    assert order.created_ms % 60_000 == 250
    failed = order.moved_to(FAILED, ("fraud: too much",))
    assert Order.from_json(decoded(encoded(failed.as_json()))) == failed
    assert failed.same_request(order)


def test_an_order_without_a_time_is_made_now() -> None:
    request = {name: value for name, value in GOOD.items() if name != "created_at"}
    order = Order.from_request(request, now_ms=1_500)
    assert (order.created_at, order.state) == ("1970-01-01T00:00:01.500Z", CREATED)


def test_times_are_kept_in_utc() -> None:
    order = Order.from_request({**GOOD, "created_at": "2026-01-31T13:00:00+01:00"}, now_ms=0)
    assert order.created_at == "2026-01-31T12:00:00.000Z"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"id": "../etc/passwd"}, "id: ", id="id that is a path"),
        pytest.param({"id": ""}, "id: ", id="no id"),
        pytest.param({"id": 7}, "id: ", id="id that is a number"),
        pytest.param({"quantity": "2"}, "quantity: ", id="quantity as text"),
        pytest.param({"quantity": True}, "quantity: ", id="quantity that is true"),
        pytest.param({"price_cents": 1.5}, "price_cents: ", id="half a cent"),
        pytest.param({"price_cents": 10**13}, "price_cents: ", id="more than there is"),
        pytest.param({"customer_id": "x" * 201}, "customer_id: ", id="long name"),
        pytest.param({"created_at": "yesterday"}, "created_at: ", id="no time"),
        pytest.param({"created_at": "2026-01-31T12:00:00"}, "time zone", id="no time zone"),
        pytest.param({"created_at": "1815-12-10T12:00:00Z"}, "year", id="before all timestamps"),
    ],
)
def test_what_is_no_order_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOrder, match=told):
        Order.from_request({**GOOD, **change}, now_ms=0)


@pytest.mark.parametrize("data", [b"{", b"[]", b'"text"', b"\xff"])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidOrder, match="no JSON"):
        decoded(data)
