"""One final state for every order, in whatever order things are seen."""

from itertools import permutations
from typing import Any

import pytest
from orders import topics
from orders.aggregator import Aggregator
from orders.logic import Outgoing
from orders.model import CHECKS, FAILED, VALIDATED, InvalidOrder, validation
from stage import NOON, Stage, order

ORDER = order()
Record = tuple[str, dict[str, Any]]
CREATED_RECORD: Record = (topics.ORDERS, ORDER.as_json())


def stage() -> Stage:
    return Stage(Aggregator(), topics.AGGREGATOR_CHANGELOG)


def said(check: str, reason: str | None = None) -> Record:
    return topics.ORDER_VALIDATIONS, validation(ORDER, check, reason)


def outcome(on: Stage, *records: Record) -> list[Outgoing]:
    return [each for topic, value in records for each in on.takes(topic, ORDER.id, value)]


@pytest.mark.parametrize(
    "records", list(permutations([CREATED_RECORD, *(said(check) for check in CHECKS)]))
)
def test_three_passes_validate_in_any_order(records: tuple[Record, ...]) -> None:
    (final,) = outcome(stage(), *records)
    assert final == Outgoing(topics.ORDERS, ORDER.id, ORDER.moved_to(VALIDATED).as_json(), NOON)


@pytest.mark.parametrize(
    "records",
    list(
        permutations([CREATED_RECORD, said("fraud", "too much"), said("inventory"), said("fraud")])
    ),
)
def test_one_failure_fails_whatever_else_is_said(records: tuple[Record, ...]) -> None:
    (final,) = outcome(stage(), *records)
    assert final.value is not None
    assert final.value["state"] == FAILED


def test_a_failed_order_tells_why() -> None:
    (final,) = outcome(stage(), CREATED_RECORD, said("inventory", "none left"))
    assert final.value is not None
    assert final.value["reasons"] == ["inventory: none left"]


def test_nothing_changes_a_final_state() -> None:
    on = stage()
    everything = [CREATED_RECORD, *(said(check) for check in CHECKS)]
    outcome(on, *everything)
    late = [
        *everything,
        said("fraud", "too late"),
        (topics.ORDERS, ORDER.moved_to(FAILED).as_json()),
    ]
    assert outcome(on, *late) == []
    assert outcome(on.restarted(Aggregator()), *late) == []


@pytest.mark.parametrize("seen", range(4))
def test_a_restart_goes_on_where_the_crash_was(seen: int) -> None:
    records = [CREATED_RECORD, *(said(check) for check in CHECKS)]
    on = stage()
    assert outcome(on, *records[:seen]) == []
    (final,) = outcome(on.restarted(Aggregator()), *records[seen:])
    assert final.value is not None
    assert final.value["state"] == VALIDATED


def test_what_is_over_is_forgotten_a_day_later() -> None:
    on = stage()
    outcome(on, CREATED_RECORD, said("fraud", "too much"))
    for number in range(3):
        on.sees(order(f"later-{number}", at_s=25 * 3600 + number))
    assert on.kept[ORDER.id] is None


def test_an_order_that_waits_is_not_forgotten() -> None:
    on = stage()
    outcome(on, CREATED_RECORD, said("fraud"), said("inventory"))
    for number in range(3):
        on.sees(order(f"later-{number}", at_s=25 * 3600 + number))
    (final,) = outcome(on.restarted(Aggregator()), said("order-details"))
    assert final.value is not None
    assert final.value["state"] == VALIDATED


@pytest.mark.parametrize("value", [None, {}, {"check": "taste", "result": "PASS"}])
def test_what_is_no_validation_is_refused(value: dict[str, Any] | None) -> None:
    with pytest.raises(InvalidOrder, match="no validation"):
        stage().takes(topics.ORDER_VALIDATIONS, ORDER.id, value)
