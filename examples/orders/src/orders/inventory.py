"""Whether there is enough in stock; what passes is reserved, once.

Available is what the warehouse received less what is sold or reserved. A reservation becomes a
sale when the order is validated and is given back when it failed. Reservation, validation and
having read the order are one transaction: none is there without the others, whatever crashes.

State, by product like the input:
    `order:<id>`      what was said about an order, and what is reserved for it
    `sold:<product>`  how much is sold
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from orders import topics
from orders.logic import Incoming, Memory, Outgoing
from orders.model import CREATED, VALIDATED, InvalidOrder, Order, validation

CHECK: Final = "inventory"
_ORDER: Final = "order:"
_SOLD: Final = "sold:"


class Inventory:
    def __init__(self) -> None:
        self._received: dict[str, int] = {}
        self._sold: dict[str, int] = {}
        self._orders = Memory(lambda known: not known["reserved"])
        self._reserved: Counter[str] = Counter()

    def available(self, product: str) -> int:
        return self._received.get(product, 0) - self._sold.get(product, 0) - self._reserved[product]

    def reserved(self, product: str) -> int:
        return self._reserved[product]

    def sold(self, product: str) -> int:
        return self._sold.get(product, 0)

    def process(self, record: Incoming) -> list[Outgoing]:
        order = Order.from_json(record.value)
        forgotten = [
            Outgoing(topics.INVENTORY_CHANGELOG, _ORDER + key, None, at)
            for key, at in self._orders.outlived()
        ]
        if order.state == CREATED:
            return forgotten + self._on_created(order, record.timestamp)
        return forgotten + self._on_final(order, record.timestamp)

    def _on_created(self, order: Order, at: int) -> list[Outgoing]:
        known = self._orders.get(order.id)
        if known is not None:
            # Seen before: the same answer again, and nothing more is reserved.
            return [self._said(order, known["reason"], at)]
        reason = self._objection(order)
        reserved = order.quantity if reason is None else 0
        entry = {"at": at, "product": order.product, "reserved": reserved, "reason": reason}
        return [self._kept(order, entry), self._said(order, reason, at)]

    def _on_final(self, order: Order, at: int) -> list[Outgoing]:
        known = self._orders.get(order.id)
        if known is None or not known["reserved"]:
            return []
        kept = [self._kept(order, {**known, "at": at, "reserved": 0})]
        if order.state == VALIDATED:
            sold = {"quantity": self.sold(order.product) + known["reserved"]}
            kept.append(Outgoing(topics.INVENTORY_CHANGELOG, _SOLD + order.product, sold, at))
        return kept

    def _objection(self, order: Order) -> str | None:
        if order.quantity <= 0:
            return "nothing to reserve"
        available = self.available(order.product)
        if available < order.quantity:
            return f"{order.quantity} of {order.product!r} wanted, {available} in stock"
        return None

    def _said(self, order: Order, reason: str | None, at: int) -> Outgoing:
        said = validation(order, CHECK, reason)
        return Outgoing(topics.ORDER_VALIDATIONS, order.id, said, at)

    def _kept(self, order: Order, entry: dict[str, Any]) -> Outgoing:
        return Outgoing(topics.INVENTORY_CHANGELOG, _ORDER + order.id, entry, entry["at"])

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        if topic == topics.WAREHOUSE_INVENTORY:
            self._received[key] = _stock(value)
        elif key.startswith(_SOLD):
            self._sold[key.removeprefix(_SOLD)] = int(value["quantity"]) if value else 0
        else:
            self._replay_order(key.removeprefix(_ORDER), value)

    def _replay_order(self, order_id: str, value: dict[str, Any] | None) -> None:
        before = self._orders.get(order_id)
        if before is not None:
            self._reserved[before["product"]] -= before["reserved"]
        if value is not None:
            self._reserved[value["product"]] += value["reserved"]
        self._orders.replay(order_id, value)


def _stock(row: dict[str, Any] | None) -> int:
    stock = 0 if row is None else row.get("stock")
    if not isinstance(stock, int):
        raise InvalidOrder(f"stock: a whole number is needed, not {stock!r}")
    return stock
