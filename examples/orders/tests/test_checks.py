"""Each check of the demo fails when what it is for is not so."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from orders.demo.checks import Facts, check_all, revenue_of
from orders.model import CHECKS, FAILED, VALIDATED, validation
from stage import order

GOOD, BAD = order("good", quantity=2), order("bad", quantity=0)
ORDERS = (GOOD, BAD, GOOD.moved_to(VALIDATED), BAD.moved_to(FAILED, ("order-details: none",)))
ROWS = [("good", VALIDATED), ("bad", FAILED)]


def said(name: str, check: str) -> Mapping[str, Any]:
    reason = "none" if (name, check) == ("bad", "order-details") else None
    return validation(order(name), check, reason)


FACTS = Facts(
    posted=frozenset({"good", "bad"}),
    orders=ORDERS,
    validations=[said(name, check) for name in ("good", "bad") for check in CHECKS],
    payments=[{"order_id": "good", "amount_cents": 2000}],
    emails=[{"order_id": name, "state": state} for name, state in ROWS],
    dead_letters=0,
    sold={"hats": 2},
    reserved={},
    stock={"hats": 10},
    mailbox=frozenset({"good", "bad"}),
    got=ORDERS[2:],
    revenue=revenue_of(ORDERS),
    tables={"Parquet": ROWS},
)


def failed(facts: Facts) -> list[str]:
    return [check.text for check in check_all(facts) if not check.passed]


def test_all_is_well() -> None:
    assert failed(FACTS) == []
    assert len(check_all(FACTS)) == 12


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(lambda f: {"orders": f.orders[1:]}, "written once", id="lost order"),
        pytest.param(lambda f: {"orders": [GOOD, *f.orders]}, "written once", id="order twice"),
        pytest.param(lambda f: {"orders": f.orders[:3]}, "exactly one state", id="no end"),
        pytest.param(
            lambda f: {"orders": [*f.orders, GOOD.moved_to(FAILED)]},
            "exactly one state", id="two ends",
        ),
        pytest.param(lambda f: {"validations": f.validations[1:]}, "judged once", id="not judged"),
        pytest.param(
            lambda f: {"validations": [*f.validations, f.validations[0]]},
            "judged once", id="judged twice",
        ),
        pytest.param(
            lambda f: {"validations": [*f.validations[:5], said("good", "order-details")]},
            "failed if", id="failed for no reason",
        ),
        pytest.param(lambda f: {"sold": {"hats": 4}}, "stock", id="sold twice"),
        pytest.param(lambda f: {"stock": {"hats": 1}}, "stock", id="oversold"),
        pytest.param(lambda f: {"reserved": {"hats": 1}}, "stock", id="still reserved"),
        pytest.param(lambda f: {"payments": []}, "payment", id="not paid"),
        pytest.param(lambda f: {"payments": [*f.payments] * 2}, "payment", id="paid twice"),
        pytest.param(
            lambda f: {"payments": [{"order_id": "good", "amount_cents": 1}]},
            "payment", id="paid wrongly",
        ),
        pytest.param(lambda f: {"emails": f.emails[1:]}, "e-mail", id="no e-mail"),
        pytest.param(lambda f: {"emails": [*f.emails] * 2}, "e-mail", id="two e-mails"),
        pytest.param(lambda f: {"mailbox": frozenset({"good"})}, "mailbox", id="lost letter"),
        pytest.param(lambda f: {"got": [GOOD]}, "GET", id="an old answer"),
        pytest.param(lambda f: {"dead_letters": 1}, "unreadable", id="dead letter"),
        pytest.param(lambda f: {"revenue": {}}, "revenue", id="no revenue"),
        pytest.param(
            lambda f: {"revenue": dict.fromkeys(f.revenue, (1, 2001))}, "revenue", id="a cent",
        ),
        pytest.param(lambda f: {"tables": {"Parquet": ROWS[1:]}}, "Parquet", id="row missing"),
        pytest.param(lambda f: {"tables": {"Parquet": ROWS * 2}}, "Parquet", id="rows twice"),
        pytest.param(
            lambda f: {"tables": {"Parquet": [("good", FAILED), ROWS[1]]}},
            "Parquet", id="wrong state",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(change: Callable[[Facts], dict[str, Any]], text: str) -> None:
    assert any(text in each for each in failed(replace(FACTS, **change(FACTS))))
