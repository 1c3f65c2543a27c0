"""Fraud, inventory and details: what passes, what does not, and what a restart keeps."""

from typing import Any

import pytest
from orders import fraud, topics
from orders.details import Details
from orders.fraud import LIMIT_CENTS, Fraud
from orders.inventory import Inventory
from orders.logic import Logic, Outgoing
from orders.model import FAIL, FAILED, PASS, VALIDATED
from stage import Stage, order


def results(written: list[Outgoing]) -> list[str]:
    return [each.value["result"] for each in written if each.value]


# Details.


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        pytest.param({}, PASS, id="good"),
        pytest.param({"quantity": 0}, FAIL, id="nothing"),
        pytest.param({"quantity": -1}, FAIL, id="less than nothing"),
        pytest.param({"quantity": 101}, FAIL, id="too many"),
        pytest.param({"price_cents": -1}, FAIL, id="negative price"),
        pytest.param({"price_cents": 0}, PASS, id="a present"),
        pytest.param({"customer_id": ""}, FAIL, id="nobody"),
        pytest.param({"product": ""}, FAIL, id="no product"),
    ],
)
def test_details(fields: dict[str, Any], result: str) -> None:
    (said,) = Stage(Details()).sees(order(**fields))
    assert (said.topic, said.key) == (topics.ORDER_VALIDATIONS, "o-1")
    assert said.value is not None
    assert (said.value["check"], said.value["result"]) == ("order-details", result)


@pytest.mark.parametrize("logic", [Details(), Fraud()])
def test_orders_that_are_over_are_not_validated_again(logic: Logic) -> None:
    assert Stage(logic, topics.FRAUD_CHANGELOG).sees(order(state=VALIDATED)) == []


# Fraud.


def fraud_stage() -> Stage:
    return Stage(Fraud(), topics.FRAUD_CHANGELOG)


def spends(stage: Stage, name: str, cents: int, at_s: float, customer: str = "ada") -> str:
    each = order(name, at_s=at_s, price_cents=cents, customer_id=customer)
    (result,) = results(stage.sees(each))
    return result


def test_a_customer_may_spend_up_to_the_limit_within_the_window() -> None:
    stage = fraud_stage()
    assert spends(stage, "a", LIMIT_CENTS - 1, at_s=0) == PASS
    assert spends(stage, "b", 1, at_s=59) == PASS
    assert spends(stage, "c", 1, at_s=59.5) == FAIL
    assert spends(stage, "d", LIMIT_CENTS, at_s=59, customer="bob") == PASS


def test_the_window_slides_with_event_time() -> None:
    stage = fraud_stage()
    assert spends(stage, "a", LIMIT_CENTS, at_s=0) == PASS
    assert spends(stage, "b", LIMIT_CENTS, at_s=60) == PASS
    assert spends(stage, "c", 1, at_s=61) == FAIL


def test_a_late_order_is_judged_by_its_own_time() -> None:
    stage = fraud_stage()
    assert spends(stage, "a", LIMIT_CENTS, at_s=200) == PASS
    assert spends(stage, "late", LIMIT_CENTS, at_s=100) == PASS
    assert spends(stage, "too-late", 1, at_s=201) == FAIL


def test_an_order_seen_twice_counts_once() -> None:
    stage = fraud_stage()
    assert spends(stage, "a", LIMIT_CENTS, at_s=0) == PASS
    assert spends(stage, "a", LIMIT_CENTS, at_s=0) == PASS


def test_fraud_is_still_noticed_after_a_restart() -> None:
    stage = fraud_stage()
    spends(stage, "a", LIMIT_CENTS, at_s=0)
    assert spends(stage.restarted(Fraud()), "b", 1, at_s=1) == FAIL


def test_what_a_customer_did_long_ago_is_forgotten() -> None:
    stage = fraud_stage()
    for number in range(50):
        spends(stage, str(number), 1, at_s=number * 60)
    kept = stage.kept["ada"]
    assert kept is not None
    assert len(kept["orders"]) == (fraud.WINDOW_MS + fraud.LATENESS_MS) // 60_000


# Inventory.


def inventory_stage(stock: int = 10) -> Stage:
    logic = Inventory()
    logic.replay(topics.WAREHOUSE_INVENTORY, "hats", {"product": "hats", "stock": stock})
    return Stage(logic, topics.INVENTORY_CHANGELOG)


def restarted(stage: Stage, stock: int = 10) -> Stage:
    again = stage.restarted(Inventory())
    again.logic.replay(topics.WAREHOUSE_INVENTORY, "hats", {"product": "hats", "stock": stock})
    return again


def wants(stage: Stage, name: str, quantity: int, state: str = "CREATED") -> list[str]:
    return results(stage.sees(order(name, quantity=quantity, state=state)))


def available(stage: Stage) -> int:
    assert isinstance(stage.logic, Inventory)
    return stage.logic.available("hats")


def test_stock_is_reserved_until_there_is_none() -> None:
    stage = inventory_stage()
    assert wants(stage, "a", 7) == [PASS]
    assert wants(stage, "b", 4) == [FAIL]
    assert wants(stage, "c", 3) == [PASS]
    assert available(stage) == 0


def test_an_order_reserves_once_and_gets_the_same_answer_again() -> None:
    stage = inventory_stage()
    assert wants(stage, "a", 7) == wants(stage, "a", 7) == [PASS]
    assert wants(stage, "b", 4) == wants(restarted(stage), "b", 4) == [FAIL]
    assert available(stage) == 3


def test_a_failed_order_gives_its_stock_back_once() -> None:
    stage = inventory_stage()
    wants(stage, "a", 7)
    assert wants(stage, "a", 7, state=FAILED) == wants(stage, "a", 7, state=FAILED) == []
    assert available(stage) == 10
    # Nothing is reserved for it again.
    wants(stage, "a", 7)
    assert available(stage) == 10


def test_what_is_sold_stays_sold() -> None:
    stage = inventory_stage()
    wants(stage, "a", 7)
    wants(stage, "a", 7, state=VALIDATED)
    wants(stage, "a", 7, state=VALIDATED)
    again = restarted(stage)
    assert available(stage) == available(again) == 3
    assert isinstance(again.logic, Inventory)
    assert (again.logic.reserved("hats"), again.logic.sold("hats")) == (0, 7)


def test_new_stock_can_be_sold() -> None:
    stage = inventory_stage(stock=0)
    assert wants(stage, "a", 1) == [FAIL]
    stage.logic.replay(topics.WAREHOUSE_INVENTORY, "hats", {"product": "hats", "stock": 1})
    assert wants(stage, "b", 1) == [PASS]


@pytest.mark.parametrize("quantity", [0, -5])
def test_nothing_cannot_be_reserved(quantity: int) -> None:
    stage = inventory_stage()
    assert wants(stage, "a", quantity) == [FAIL]
    assert available(stage) == 10


def test_a_reservation_is_kept_until_its_order_ends() -> None:
    stage = inventory_stage()
    wants(stage, "a", 7)
    for number in range(3):
        stage.sees(order(f"later-{number}", at_s=25 * 3600 + number))
    assert available(restarted(stage)) == 0
    wants(stage, "a", 7, state=FAILED)
    assert available(restarted(stage)) == 7


def test_orders_of_yesterday_are_forgotten_but_stay_sold() -> None:
    stage = inventory_stage()
    wants(stage, "a", 7)
    wants(stage, "a", 7, state=VALIDATED)
    for number in range(3):
        stage.sees(order(f"later-{number}", at_s=25 * 3600 + number))
    assert stage.kept["order:a"] is None
    assert available(restarted(stage)) == 0
