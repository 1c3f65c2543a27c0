"""What has to be true when all is done, whatever happened in between.

Pure: facts in, a list of checks out. Facts are read from the topics, tables and folders themselves,
not from what the demo saw while it ran, and sums are made again from the orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orders.model import CHECKS, CREATED, FAIL, FINAL, VALIDATED, Order

__all__ = ["Check", "Facts", "Revenue", "check_all", "revenue_of"]

_NAMED_MAX: Final = 3

#: Minute to number of orders and cents.
Revenue = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """None where something was not asked for, as the pipelines without Spark."""

    #: Ids of the orders that were accepted over HTTP.
    posted: frozenset[str]
    #: Topics, in the order of each partition.
    orders: Sequence[Order]
    validations: Sequence[Mapping[str, Any]]
    payments: Sequence[Mapping[str, Any]]
    emails: Sequence[Mapping[str, Any]]
    dead_letters: int
    #: Of the inventory's changelog: what is sold and what is still reserved, by product.
    sold: Mapping[str, int]
    reserved: Mapping[str, int]
    stock: Mapping[str, int]
    #: Order ids in the mailbox.
    mailbox: frozenset[str]
    #: A few orders as HTTP gives them.
    got: Sequence[Order] = ()
    revenue: Revenue | None = None
    #: Order id and state of every row.
    tables: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    text: str
    passed: bool
    #: What was counted, or what is wrong.
    detail: str


def revenue_of(orders: Iterable[Order]) -> Revenue:
    """By minute of event time, of the validated ones."""
    sums: Revenue = {}
    for order in orders:
        if order.state == VALIDATED:
            minute = order.created_at[:16] + ":00Z"
            count, cents = sums.get(minute, (0, 0))
            sums[minute] = (count + 1, cents + order.value_cents)
    return sums


def check_all(facts: Facts) -> list[Check]:
    finals = {order.id: order for order in facts.orders if order.is_final}
    checks = [
        _created_once(facts),
        _one_final_state(facts),
        _judged_by_all(facts),
        _state_follows_judgement(facts, finals),
        _stock(facts, finals),
        _once_each(
            "one payment for every validated order, of its value",
            {each.id: each.value_cents for each in finals.values() if each.state == VALIDATED},
            [(each["order_id"], each["amount_cents"]) for each in facts.payments],
        ),
        _once_each(
            "one e-mail for every order's end",
            {each.id: each.state for each in finals.values()},
            [(each["order_id"], each["state"]) for each in facts.emails],
        ),
        _mailbox(facts, finals),
        _got(facts, finals),
        _no_dead_letters(facts),
    ]
    if facts.revenue is not None:
        checks.append(_revenue(facts.revenue, revenue_of(facts.orders)))
    for name, rows in facts.tables.items():
        states = {each.id: each.state for each in finals.values()}
        checks.append(_once_each(f"{name} holds every order once", states, rows))
    return checks


def _created_once(facts: Facts) -> Check:
    created = Counter(order.id for order in facts.orders if order.state == CREATED)
    wrong = [each for each in facts.posted if created[each] != 1]
    wrong += [each for each, count in created.items() if count != 1]
    return _check("every order that was accepted is written once", wrong, len(created))


def _one_final_state(facts: Facts) -> Check:
    counts = Counter(order.id for order in facts.orders if order.is_final)
    states = Counter(order.state for order in facts.orders if order.is_final)
    known = {order.id for order in facts.orders}
    wrong = [each for each in known if counts[each] != 1]
    counted = ", ".join(f"{states[each]} {each}" for each in sorted(FINAL, reverse=True))
    return _check("every order ended in exactly one state", wrong, counted)


def _judged_by_all(facts: Facts) -> Check:
    counts = Counter((each["order_id"], each["check"]) for each in facts.validations)
    known = {order.id for order in facts.orders}
    wrong = [f"{each} {name}" for each in known for name in CHECKS if counts[each, name] != 1]
    wrong += [str(order_id) for order_id, _ in counts if order_id not in known]
    return _check("every order was judged once by each validator", wrong, sum(counts.values()))


def _state_follows_judgement(facts: Facts, finals: Mapping[str, Order]) -> Check:
    failed = {each["order_id"] for each in facts.validations if each["result"] == FAIL}
    wrong = [
        each.id for each in finals.values() if (each.state == VALIDATED) is (each.id in failed)
    ]
    return _check("an order failed if a validator said so, and only then", wrong, len(failed))


def _stock(facts: Facts, finals: Mapping[str, Order]) -> Check:
    sold: Counter[str] = Counter()
    for order in finals.values():
        if order.state == VALIDATED:
            sold[order.product] += order.quantity
    products = {*sold, *facts.sold, *facts.reserved}
    wrong = [
        f"{each}: {facts.sold.get(each, 0)} sold of {facts.stock.get(each, 0)}, orders for "
        f"{sold[each]}, {facts.reserved.get(each, 0)} reserved"
        for each in sorted(products)
        if not sold[each] == facts.sold.get(each, 0) <= facts.stock.get(each, 0)
        or facts.reserved.get(each, 0)
    ]
    text = "stock went to the validated orders, to each once, and no further"
    return _check(text, wrong, f"{sum(sold.values())} pieces")


def _mailbox(facts: Facts, finals: Mapping[str, Order]) -> Check:
    wrong = sorted(facts.mailbox ^ finals.keys())
    return _check("the mailbox holds one letter for each", wrong, len(facts.mailbox))


def _got(facts: Facts, finals: Mapping[str, Order]) -> Check:
    wrong = [each.id for each in facts.got if finals.get(each.id) != each]
    return _check("GET answers what the topic holds", wrong, f"{len(facts.got)} tried")


def _no_dead_letters(facts: Facts) -> Check:
    wrong = [f"{facts.dead_letters} dead letters"] if facts.dead_letters else []
    return _check("nothing was unreadable", wrong, "no dead letters")


def _revenue(found: Revenue, expected: Revenue) -> Check:
    wrong = [
        f"{minute}: {found.get(minute)} instead of {expected.get(minute)}"
        for minute in sorted({*found, *expected})
        if found.get(minute) != expected.get(minute)
    ]
    total = sum(cents for _, cents in expected.values())
    counted = f"{total / 100:,.2f} in {len(expected)} minutes"
    return _check("revenue per minute is the sum over the validated orders", wrong, counted)


def _once_each(
    text: str, expected: Mapping[str, object], found: Iterable[tuple[str, object]]
) -> Check:
    rows = list(found)
    counts = Counter(key for key, _ in rows)
    wrong = [each for each in {*expected, *counts} if counts[each] != (each in expected)]
    wrong += [key for key, value in rows if key in expected and expected[key] != value]
    return _check(text, wrong, len(rows))


def _check(text: str, wrong: Sequence[str], counted: object) -> Check:
    if not wrong:
        return Check(text, True, str(counted))
    named = ", ".join(wrong[:_NAMED_MAX]) + (", ..." if len(wrong) > _NAMED_MAX else "")
    return Check(text, False, f"{len(wrong)} wrong: {named}")
