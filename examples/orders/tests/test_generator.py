"""A plan is what its settings say."""

from collections import Counter
from itertools import islice

import pytest
from orders import details
from orders.fraud import LIMIT_CENTS
from orders.generator import LATENESS_MS_MAX, STOCK, Planned, Settings, customers, plan
from orders.model import Order
from stage import NOON

COUNT = 4000


def planned(count: int = COUNT, **settings: float) -> list[Planned]:
    return list(islice(plan(Settings(**settings), NOON), count))  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_orders() -> None:
    assert planned(200, seed=7) == planned(200, seed=7)
    assert planned(200, seed=7) != planned(200, seed=8)


@pytest.mark.parametrize("rate", [5.0, 50.0, 500.0])
def test_the_rate_is_as_asked_for(rate: float) -> None:
    last = planned(rate=rate)[-1]
    assert COUNT / (last.due_ms / 1000) == pytest.approx(rate, rel=0.1)


def test_without_disorder_all_come_in_order_and_once() -> None:
    orders = [Order.from_request(each.request, now_ms=None) for each in planned(disorder=0)]
    assert len({each.id for each in orders}) == COUNT
    times = [each.created_ms for each in orders]
    assert times == sorted(times)


@pytest.mark.parametrize("disorder", [0.1, 0.5, 1.0])
def test_disorder_is_the_share_of_late_orders(disorder: float) -> None:
    made = planned(disorder=disorder)
    lateness = {
        each.request["id"]: NOON
        + each.due_ms
        - Order.from_request(each.request, now_ms=None).created_ms
        for each in made
        if each.kind != "repeat"
    }
    late = [each for each in lateness.values() if each > 0]
    assert len(late) / len(lateness) == pytest.approx(disorder, abs=0.03)
    assert all(0 <= each <= LATENESS_MS_MAX for each in lateness.values())
    repeats = sum(each.kind == "repeat" for each in made)
    assert repeats / COUNT == pytest.approx(disorder / 2, abs=0.03)


def test_a_repeat_is_the_very_same_request() -> None:
    requests: dict[str, object] = {}
    for each in planned(disorder=0.5):
        if each.kind == "repeat":
            assert requests[each.request["id"]] == each.request
        requests[each.request["id"]] = each.request


def test_kinds_are_what_they_are_called() -> None:
    spent: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for each in planned(disorder=0.1):
        order = Order.from_request(each.request, now_ms=None)
        kinds[each.kind] += 1
        assert (details.objection(order) is not None) is (each.kind == "bad") or (
            each.kind == "repeat"
        )
        if each.kind in ("good", "late"):
            spent[order.customer_id] += order.value_cents
        if each.kind == "fraud":
            assert order.value_cents > LIMIT_CENTS
        assert order.product in STOCK
    assert set(kinds) == {"good", "late", "repeat", "bad", "fraud", "scarce"}
    # Within 80 s at 50 per second: the honest stay below the limit of a minute.
    assert max(spent.values()) < LIMIT_CENTS


def test_all_who_order_are_known() -> None:
    known = customers(Settings())
    assert {each.request["customer_id"] for each in planned()} - set(known) == {""}


@pytest.mark.parametrize("settings", [{"rate": 0}, {"rate": -1}, {"disorder": 1.1}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Settings(**settings)  # type: ignore[arg-type]
