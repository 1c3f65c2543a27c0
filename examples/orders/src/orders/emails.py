"""One notice for every order's end: an order that failed by itself, a validated one together with
its payment, both addressed with what is known of the customer.

An order and its payment meet here whichever comes first. What has been sent is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orders import topics
from orders.logic import Incoming, Memory, Outgoing
from orders.model import VALIDATED, Order

__all__ = ["Emails", "notice"]

Customers = Callable[[str], Mapping[str, Any] | None]


def notice(
    order: Order, payment: Mapping[str, Any] | None, customer: Mapping[str, Any] | None
) -> dict[str, Any]:
    known = customer or {}
    name = known.get("name") or "customer"
    what = f"{order.quantity} x {order.product}"
    if order.state == VALIDATED and payment is not None:
        subject = f"Your order {order.id} is on its way"
        amount = f"{payment['amount_cents'] / 100:.2f} {payment['currency']}"
        body = f"Dear {name},\n\nwe have received {amount} for {what}. Thank you!\n"
    else:
        subject = f"Your order {order.id} could not be accepted"
        reasons = "".join(f"- {reason}\n" for reason in order.reasons)
        body = f"Dear {name},\n\nwe are sorry, we cannot deliver {what}:\n{reasons}"
    return {
        "order_id": order.id,
        "customer_id": order.customer_id,
        # A customer nobody knows has no address; the notice is written all the same.
        "to": known.get("email"),
        "subject": subject,
        "body": body,
        "state": order.state,
    }


class Emails:
    def __init__(self, customers: Customers) -> None:
        self._customers = customers
        self._orders = Memory(lambda known: bool(known["sent"]))

    def process(self, record: Incoming) -> list[Outgoing]:
        forgotten = [
            Outgoing(topics.EMAILS_CHANGELOG, key, None, at) for key, at in self._orders.outlived()
        ]
        known = self._orders.get(record.key) or {"order": None, "payment": None, "sent": False}
        if known["sent"]:
            return forgotten
        if record.topic == topics.PAYMENTS:
            known = {**known, "payment": record.value}
        else:
            order = Order.from_json(record.value)
            if not order.is_final:
                return forgotten
            known = {**known, "order": order.as_json()}
        return forgotten + self._matched(record, {**known, "at": record.timestamp})

    def _matched(self, record: Incoming, known: dict[str, Any]) -> list[Outgoing]:
        order = Order.from_json(known["order"]) if known["order"] else None
        if order is None or (order.state == VALIDATED and known["payment"] is None):
            return [Outgoing(topics.EMAILS_CHANGELOG, record.key, known, record.timestamp)]
        sent = {"order": None, "payment": None, "sent": True, "at": record.timestamp}
        mail = notice(order, known["payment"], self._customers(order.customer_id))
        return [
            Outgoing(topics.EMAILS_CHANGELOG, order.id, sent, record.timestamp),
            Outgoing(topics.EMAILS, order.id, mail, record.timestamp),
        ]

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        self._orders.replay(key, value)
