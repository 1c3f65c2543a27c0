"""One notice for each end, and one payment for each validated order."""

from pathlib import Path
from typing import Any

import pytest
from orders import topics
from orders.emails import Emails
from orders.logic import Outgoing
from orders.model import FAILED, VALIDATED, InvalidOrder, Order
from orders.payments import Payments
from orders.postman import deliver
from stage import Stage, order

CUSTOMERS = {"ada": {"id": "ada", "name": "Ada", "email": "ada@mail.example"}}
DONE = order(state=VALIDATED, quantity=2)


def emails() -> Emails:
    return Emails(CUSTOMERS.get)


def stage() -> Stage:
    return Stage(emails(), topics.EMAILS_CHANGELOG)


def payment(each: Order) -> dict[str, Any]:
    (made,) = Stage(Payments()).sees(each)
    assert made.topic == topics.PAYMENTS
    assert made.value is not None
    return made.value


def pays(on: Stage, each: Order) -> list[Outgoing]:
    return on.takes(topics.PAYMENTS, each.id, payment(each))


@pytest.mark.parametrize("paid_first", [True, False])
def test_a_validated_order_is_confirmed_once_it_is_paid(paid_first: bool) -> None:
    on = stage()
    first, second = (pays, Stage.sees) if paid_first else (Stage.sees, pays)
    assert first(on, DONE) == []
    (mail,) = second(on.restarted(emails()), DONE)
    assert mail.topic == topics.EMAILS
    assert mail.value is not None
    assert mail.value["to"] == "ada@mail.example"
    assert "20.00 EUR for 2 x hats" in mail.value["body"]


def test_a_failed_order_is_explained_at_once_and_once() -> None:
    on = stage()
    failed = order().moved_to(FAILED, ("fraud: too much",))
    (mail,) = on.sees(failed)
    assert mail.value is not None
    assert "- fraud: too much" in mail.value["body"]
    assert on.sees(failed) == []
    assert on.restarted(emails()).sees(failed) == []


def test_nothing_is_sent_before_the_end() -> None:
    assert stage().sees(order()) == []
    assert Stage(Payments()).sees(order()) == []
    assert Stage(Payments()).sees(order(state=FAILED)) == []


def test_an_unknown_customer_has_no_address_but_a_notice() -> None:
    (mail,) = stage().sees(order(customer_id="who", state=FAILED))
    assert mail.value is not None
    assert mail.value["to"] is None


def test_the_postman_may_come_twice(tmp_path: Path) -> None:
    (mail,) = stage().sees(order(state=FAILED))
    paths = {deliver(tmp_path, mail.value) for _ in range(2)}
    assert paths == set(tmp_path.iterdir()) == {tmp_path / "o-1.eml"}
    assert "To: ada@mail.example" in (tmp_path / "o-1.eml").read_text()


def test_a_notice_stays_in_the_mailbox(tmp_path: Path) -> None:
    path = deliver(tmp_path, {"order_id": "../../away", "subject": "x", "body": "y"})
    assert path == tmp_path / "away.eml"
    with pytest.raises(InvalidOrder, match="body"):
        deliver(tmp_path, {"order_id": "o", "subject": "x"})
