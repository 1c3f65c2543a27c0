"""Moves each order to its one final state: VALIDATED when all checks passed, FAILED with the first
that did not.

An order and what is said about it are in different topics, so either may be seen first. Once final,
an order stays what it is: whatever is said later changes nothing.
"""

from __future__ import annotations

from typing import Any

from orders import topics
from orders.logic import Incoming, Memory, Outgoing
from orders.model import CHECKS, CREATED, FAIL, FAILED, PASS, VALIDATED, InvalidOrder, Order

__all__ = ["Aggregator", "verdict"]


def verdict(results: dict[str, str | None]) -> str | None:
    """`results` are the reasons against the order by check, None where it passed."""
    if any(reason is not None for reason in results.values()):
        return FAILED
    if all(check in results for check in CHECKS):
        return VALIDATED
    return None


class Aggregator:
    def __init__(self) -> None:
        self._orders = Memory(lambda known: known["state"] is not None)

    def process(self, record: Incoming) -> list[Outgoing]:
        forgotten = [
            Outgoing(topics.AGGREGATOR_CHANGELOG, key, None, at)
            for key, at in self._orders.outlived()
        ]
        known = self._orders.get(record.key) or {"order": None, "results": {}, "state": None}
        if known["state"] is not None:
            return forgotten
        if record.topic == topics.ORDERS:
            order = Order.from_json(record.value)
            if order.state != CREATED:
                return forgotten
            known = {**known, "order": order.as_json()}
        else:
            check, reason = _said(record.value)
            # A failure stays one, even if the same validator should pass the order later.
            reason = known["results"].get(check) or reason
            known = {**known, "results": {**known["results"], check: reason}}
        return forgotten + self._settled(record, {**known, "at": record.timestamp})

    def _settled(self, record: Incoming, known: dict[str, Any]) -> list[Outgoing]:
        state = verdict(known["results"])
        if state is None or known["order"] is None:
            return [Outgoing(topics.AGGREGATOR_CHANGELOG, record.key, known, known["at"])]
        order = Order.from_json(known["order"])
        reasons = tuple(
            f"{check}: {reason}" for check, reason in known["results"].items() if reason
        )
        # Of what is over only the end is kept.
        over: dict[str, Any] = {
            "order": None,
            "results": {},
            "state": state,
            "at": order.created_ms,
        }
        final = order.moved_to(state, reasons).as_json()
        return [
            Outgoing(topics.AGGREGATOR_CHANGELOG, order.id, over, order.created_ms),
            Outgoing(topics.ORDERS, order.id, final, order.created_ms),
        ]

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        self._orders.replay(key, value)


def _said(value: dict[str, Any] | None) -> tuple[str, str | None]:
    check, result = (value or {}).get("check"), (value or {}).get("result")
    if check not in CHECKS or result not in (PASS, FAIL):
        raise InvalidOrder(f"no validation: check {check!r}, result {result!r}")
    return check, None if result == PASS else str((value or {}).get("reason") or "no reason given")
