"""Whether an order makes sense in itself."""

from __future__ import annotations

from typing import Any, Final

from orders import topics
from orders.logic import Incoming, Outgoing
from orders.model import CREATED, Order, validation

CHECK: Final = "order-details"
QUANTITY_MAX: Final = 100
PRICE_CENTS_MAX: Final = 1_000_000


def objection(order: Order) -> str | None:
    """What is wrong with it."""
    if not order.customer_id:
        return "no customer"
    if not order.product:
        return "no product"
    if not 0 < order.quantity <= QUANTITY_MAX:
        return f"quantity {order.quantity} is not 1 to {QUANTITY_MAX}"
    if not 0 <= order.price_cents <= PRICE_CENTS_MAX:
        return f"price {order.price_cents} cents is not 0 to {PRICE_CENTS_MAX}"
    return None


class Details:
    """Keeps nothing: a second look at an order says the same."""

    def process(self, record: Incoming) -> list[Outgoing]:
        order = Order.from_json(record.value)
        if order.state != CREATED:
            return []
        said = validation(order, CHECK, objection(order))
        return [Outgoing(topics.ORDER_VALIDATIONS, order.id, said, record.timestamp)]

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        raise AssertionError(f"nothing is kept, yet {topic} has {key}")
