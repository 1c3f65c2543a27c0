"""What travels through the topics: orders and what is said about them, as JSON with text keys.

Amounts are whole cents, so that sums are exact wherever they are made. `created_at` is the event
time: when the customer ordered, not when the order arrived. An order that has a shape at all is
taken; whether it makes sense is for `order-details` to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self

__all__ = [
    "CHECKS",
    "CREATED",
    "FAIL",
    "FAILED",
    "FINAL",
    "PASS",
    "VALIDATED",
    "InvalidOrder",
    "Order",
    "decoded",
    "encoded",
    "iso",
    "milliseconds",
    "validation",
]

CREATED: Final = "CREATED"
VALIDATED: Final = "VALIDATED"
FAILED: Final = "FAILED"
FINAL: Final = frozenset({VALIDATED, FAILED})

PASS: Final = "PASS"
FAIL: Final = "FAIL"
#: The validators, by the names they sign with. All of them have to pass an order.
CHECKS: Final = ("fraud", "inventory", "order-details")

#: An order id is part of an address and of a file's name.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TEXT_SIZE_MAX: Final = 200
_NUMBER_MAX: Final = 10**12


class InvalidOrder(ValueError):
    """What was posted is no order; the text says which field and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    id: str
    customer_id: str
    product: str
    quantity: int
    price_cents: int
    created_at: str
    state: str = CREATED
    #: Why it failed.
    reasons: tuple[str, ...] = ()

    @property
    def value_cents(self) -> int:
        return self.quantity * self.price_cents

    @property
    def created_ms(self) -> int:
        return milliseconds(self.created_at)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    def moved_to(self, state: str, reasons: tuple[str, ...] = ()) -> Self:
        return replace(self, state=state, reasons=reasons)

    def same_request(self, other: Order) -> bool:
        """Whether both ask for the same, whatever has become of them."""
        return self.moved_to(CREATED) == other.moved_to(CREATED)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "reasons": list(self.reasons)}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """From a topic; `InvalidOrder` if it is none."""
        order = cls.from_request(value, now_ms=None)
        state = value.get("state")
        if state not in (CREATED, VALIDATED, FAILED):
            raise InvalidOrder(f"state: {state!r} is none of CREATED, VALIDATED, FAILED")
        return order.moved_to(state, tuple(str(each) for each in value.get("reasons") or ()))

    @classmethod
    def from_request(cls, value: Any, *, now_ms: int | None) -> Self:
        """From a request's body. Without `created_at` the order is made now."""
        if not isinstance(value, Mapping):
            raise InvalidOrder("an order is a JSON object")
        created_at = value.get("created_at")
        if created_at is None and now_ms is not None:
            created_at = iso(now_ms)
        order_id = _text(value, "id")
        if not _ID.fullmatch(order_id):
            raise InvalidOrder(f"id: {order_id!r} is not 1 to 64 letters, digits, '-' and '_'")
        return cls(
            id=order_id,
            customer_id=_text(value, "customer_id"),
            product=_text(value, "product"),
            quantity=_number(value, "quantity"),
            price_cents=_number(value, "price_cents"),
            created_at=_moment(created_at),
        )


def validation(order: Order, check: str, reason: str | None) -> dict[str, Any]:
    """What a validator says; without a reason against it, the order passes."""
    result = PASS if reason is None else FAIL
    return {"order_id": order.id, "check": check, "result": result, "reason": reason}


def encoded(value: Mapping[str, Any] | None) -> bytes | None:
    """For a topic; None is a tombstone."""
    return None if value is None else json.dumps(value, separators=(",", ":")).encode()


def decoded(data: bytes | None) -> dict[str, Any] | None:
    """From a topic; `InvalidOrder` if it is no JSON object."""
    if data is None:
        return None
    try:
        value = json.loads(data)
    except ValueError as error:
        raise InvalidOrder(f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidOrder(f"no JSON object: {str(value)[:80]}")
    return value


def iso(moment_ms: int) -> str:
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def _text(value: Mapping[str, Any], field: str) -> str:
    text = value.get(field)
    if not isinstance(text, str) or len(text) > _TEXT_SIZE_MAX:
        raise InvalidOrder(f"{field}: a text of at most {_TEXT_SIZE_MAX} characters is needed")
    return text


def _number(value: Mapping[str, Any], field: str) -> int:
    number = value.get(field)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > _NUMBER_MAX:
        raise InvalidOrder(f"{field}: a whole number is needed, not {str(number)[:40]!r}")
    return number


def _moment(text: Any) -> str:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError("it has no time zone")
        # Before 1970 and in the far future there are no timestamps in Kafka and Spark.
        if not 1970 <= moment.astimezone(UTC).year < 3000:
            raise ValueError("the year is out of range")
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidOrder(
            f"created_at: {str(text)[:40]!r} is no time as 2026-01-31T12:00:00Z ({error})"
        ) from None
    return iso(round(moment.timestamp() * 1000))
