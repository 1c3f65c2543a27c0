"""Whether a customer orders for too much money in too short a time.

The window slides with event time: it ends with the order in question, so a late order is judged by
what was ordered around its own time. An order counts once, however often it is seen.

State: for each customer the orders of the window and of as long before it, for late ones.
"""

from __future__ import annotations

from typing import Any, Final

from orders import topics
from orders.logic import Incoming, Outgoing
from orders.model import CREATED, Order, validation

CHECK: Final = "fraud"
WINDOW_MS: Final = 60_000
LIMIT_CENTS: Final = 200_000
#: How much later than its successors an order may come and still find its window.
LATENESS_MS: Final = 300_000
ORDERS_MAX: Final = 1000

#: Order id, event time, value.
Entry = tuple[str, int, int]


def objection(entries: list[Entry], order: Order) -> str | None:
    """`entries` are the customer's orders so far."""
    end = order.created_ms
    earlier = sum(
        value
        for order_id, at, value in entries
        if end - WINDOW_MS < at <= end and order_id != order.id
    )
    total = earlier + max(0, order.value_cents)
    if total <= LIMIT_CENTS:
        return None
    return f"{total / 100:.2f} within {WINDOW_MS // 1000} s, {LIMIT_CENTS / 100:.2f} is the limit"


def remembered(entries: list[Entry], order: Order) -> list[Entry]:
    """With this one, without those that no window can reach any more."""
    kept = [entry for entry in entries if entry[0] != order.id]
    kept.append((order.id, order.created_ms, max(0, order.value_cents)))
    newest = max(at for _, at, _ in kept)
    return [entry for entry in kept if entry[1] > newest - WINDOW_MS - LATENESS_MS][-ORDERS_MAX:]


class Fraud:
    def __init__(self) -> None:
        self._customers: dict[str, list[Entry]] = {}

    def process(self, record: Incoming) -> list[Outgoing]:
        order = Order.from_json(record.value)
        if order.state != CREATED:
            return []
        customer, at = order.customer_id, record.timestamp
        entries = self._customers.get(customer, [])
        said = validation(order, CHECK, objection(entries, order))
        value = {"orders": [list(entry) for entry in remembered(entries, order)]}
        return [
            Outgoing(topics.FRAUD_CHANGELOG, customer, value, at),
            Outgoing(topics.ORDER_VALIDATIONS, order.id, said, at),
        ]

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        if value is None:
            self._customers.pop(key, None)
        else:
            self._customers[key] = [(name, at, cents) for name, at, cents in value["orders"]]
