"""Dead letters: reasons are grouped, chosen records are sent back, with edits, each once."""

from __future__ import annotations

import threading

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from support.console import Console, Tab
from support.processes import BrokerProcess

DEAD = "orders-dlq"


@pytest.fixture(scope="module")
def dead(broker: BrokerProcess, admin: Admin) -> str:
    """Six records with two reasons."""
    admin.create_topics([NewTopic(DEAD, 1, 1), NewTopic("orders", 1, 1)])
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(6):
            kind = "NumberFormatException" if number % 3 else "TimeoutException"
            producer.send(
                DEAD,
                f'{{"id": {number}}}'.encode(),
                b"k",
                headers=[
                    ("__connect.errors.topic", b"orders"),
                    ("__connect.errors.stage", b"VALUE_CONVERTER"),
                    ("__connect.errors.connector.name", b"sink"),
                    ("__connect.errors.exception.class.name", f"java.lang.{kind}".encode()),
                    ("__connect.errors.exception.message", f"bad value {number}".encode()),
                    ("trace", b"t"),
                ],
            )
    return DEAD


def committed(broker: BrokerProcess) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    """What `orders` has."""
    place = TopicPartition("orders", 0)
    settings = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_committed"}
    found = []
    with Consumer(settings) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        while consumer.position(place) < end:
            found += [(each.value, dict(each.headers)) for each in consumer.poll(1.0)]
    return found


def test_reasons_are_grouped(console: Console, dead: str) -> None:
    assert [each["topic"] for each in console.ask("GET", "/dead-letters")["data"]] == [dead]
    found = console.ask("GET", f"/dead-letters/{dead}")["data"]
    assert [(each["error"], each["count"], each["message"]) for each in found] == [
        ("java.lang.NumberFormatException", 4, "bad value #"),
        ("java.lang.TimeoutException", 2, "bad value #"),
    ]
    assert found[0]["topic"] == "orders"


def test_a_record_is_sent_back_once(console: Console, broker: BrokerProcess, dead: str) -> None:
    chosen = {
        "records": [{"partition": 0, "offset": 0}, {"partition": 0, "offset": 1, "value": "fixed"}]
    }
    answers = []

    def redrive() -> None:
        answers.append(
            console.client.post(f"/api/clusters/default/dead-letters/{dead}/redrive", json=chosen)
        )

    # Two people at once: one may be fenced, but no record arrives twice.
    threads = [threading.Thread(target=redrive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    console.ask("POST", f"/dead-letters/{dead}/redrive", chosen)
    assert any(each.is_success for each in answers)
    found = committed(broker)
    assert [value for value, _ in found] == [b'{"id": 0}', b"fixed"]
    assert found[0][1] == {"trace": b"t", "__moldau.redrive.count": b"1"}
    assert console.ask("GET", f"/dead-letters/{dead}")["redriven"] == 2


def test_redrive_in_a_browser(tab: Tab, console: Console, broker: BrokerProcess, dead: str) -> None:
    page = tab.open("/dead-letters")
    page.get_by_role("link", name=dead).click()
    page.get_by_role("heading", name=dead).wait_for()
    page.get_by_label("Choose all of this reason").nth(1).check()
    page.get_by_text("1 record chosen").wait_for()
    page.get_by_role("button", name="Send chosen back").click()
    page.get_by_label("Value", exact=True).fill('{"id": 3, "edited": true}')
    page.get_by_role("button", name="Send back", exact=True).click()
    page.get_by_text("1 sent back, 0 had been sent back before.").wait_for()
    assert committed(broker)[-1][0] == b'{"id": 3, "edited": true}'
