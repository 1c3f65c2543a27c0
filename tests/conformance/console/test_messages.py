"""Messages: browsed, searched, followed, sent, copied, exported, hidden."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import (
    Admin,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from support.console import Console, Tab, console_of
from support.processes import BrokerProcess
from support.waiting import eventually

COUNT = 3000


@pytest.fixture(scope="module")
def orders(broker: BrokerProcess, admin: Admin) -> str:
    """3,000 orders of 10 customers in three partitions."""
    admin.create_topics([NewTopic("orders", 3, 1), NewTopic("copies", 1, 1)])
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(COUNT):
            value = {"id": number, "amount": number % 100, "card": f"4111-{number:04}"}
            producer.send(
                "orders",
                json.dumps(value).encode(),
                f"customer-{number % 10}".encode(),
                headers=[("region", b"eu" if number % 2 else b"us")],
            )
    return "orders"


def found(lines: Iterator[Any]) -> tuple[list[Any], Any]:
    records, last = [], None
    for line in lines:
        if "record" in line:
            records.append(line["record"])
        last = line
    return records, last


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        pytest.param({}, 50, id="the newest ones"),
        pytest.param({"start": "beginning", "limit": 5000}, COUNT, id="all"),
        pytest.param(
            {"start": "beginning", "limit": 5000, "partitions": [0]}, None, id="partition"
        ),
        pytest.param(
            {"start": "beginning", "limit": 5000, "expression": "value.amount = 7"}, 30, id="field"
        ),
        pytest.param(
            {"start": "beginning", "limit": 5000, "expression": 'header.region = "eu"'},
            1500,
            id="header",
        ),
        pytest.param(
            {
                "start": "beginning",
                "limit": 5000,
                "expression": 'key = "customer-3" and $.id < 100',
            },
            10,
            id="key and path",
        ),
        pytest.param({"start": "beginning", "contains": "4111-0042"}, 1, id="text"),
        pytest.param({"start": "time", "timestamp": 2**42}, 0, id="a time to come"),
        pytest.param({"start": "time", "timestamp": 1, "limit": 10}, 10, id="a time long ago"),
    ],
)
def test_search(console: Console, orders: str, asked: dict[str, Any], count: int | None) -> None:
    records, last = found(console.lines(f"/topics/{orders}/messages", asked))
    assert last["done"]
    assert "error" not in last
    assert last["progress"]["matched"] == len(records)
    if count is not None:
        assert len(records) == count
    else:
        assert {each["partition"] for each in records} == {0}


def test_a_wrong_filter_is_explained(console: Console, orders: str) -> None:
    asked = {"expression": "value.amount >"}
    answer = console.ask("POST", f"/topics/{orders}/messages", asked, status=400)
    assert "Expected a name or a value" in str(answer)


def test_the_latest_value_of_each_key(console: Console, orders: str) -> None:
    records, last = found(console.lines(f"/topics/{orders}/table", {}))
    assert last["keys"] == 10
    assert sorted(each["value"]["value"]["id"] for each in records) == list(range(2990, 3000))


def test_export(console: Console, orders: str) -> None:
    path = f"/api/clusters/default/topics/{orders}/export"
    rows = console.ask("GET", f"{path}?format=json&start=beginning&limit=100")
    assert len(rows) == 100
    assert rows[0]["value"]["card"].startswith("4111")
    text = console.client.get(f"{path}?format=csv&start=beginning&limit=100").text
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == 100
    assert json.loads(table[0]["headers"])["region"] in ("eu", "us")
    rows = console.ask("GET", f"{path}?start=beginning&partitions=1,2&limit=5000")
    assert {each["partition"] for each in rows} == {1, 2}
    console.ask("GET", f"{path}?partitions=all", status=400)


def test_produce_resend_and_copy(console: Console, orders: str) -> None:
    sent = {"records": [{"key": "k", "value": {"a": 1}, "headers": [["h", "x"]]}]}
    stored = console.ask("POST", "/topics/copies/records", {**sent, "value_format": "json"})
    assert stored["data"] == [{"partition": 0, "offset": 0}]
    console.ask("POST", "/topics/copies/resend", {"records": [{"partition": 0, "offset": 0}]})
    copying = {"to": "copies", "start": "beginning", "expression": "value.amount = 7"}
    *_, last = console.lines(f"/topics/{orders}/copy", copying)
    assert last["copied"] == 30
    records, _ = found(console.lines("/topics/copies/messages", {"start": "beginning"}))
    assert len(records) == 32
    assert records[0]["value"] == records[1]["value"]
    assert records[1]["headers"] == [["h", "x"]]
    one = console.ask("GET", "/topics/copies/partitions/0/messages/1")
    assert one["key"]["value"] == "k"
    console.ask("GET", "/topics/copies/partitions/0/messages/999", status=404)


def test_new_records_arrive_while_somebody_follows(console: Console, orders: str) -> None:
    seen = threading.Event()
    live = {"start": "end", "live": True}

    def follow() -> None:
        for line in console.lines("/topics/copies/messages", live):
            if line.get("record", {}).get("key", {}).get("value") == "live":
                seen.set()
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    for _ in range(100):
        console.ask("POST", "/topics/copies/records", {"records": [{"key": "live", "value": "1"}]})
        if seen.wait(0.2):
            break
    assert seen.is_set()


def test_internal_topics_are_decoded(console: Console, broker: BrokerProcess, admin: Admin) -> None:
    place = TopicPartition("orders", 0)
    admin.alter_consumer_group_offsets("readers", {place: OffsetAndMetadata(5)})
    asked = {"start": "beginning", "expression": 'key.group = "readers"'}
    records, _ = found(console.lines("/topics/__consumer_offsets/messages", asked))
    assert records[0]["key"]["kind"] == "internal"
    assert records[0]["value"]["value"]["offset"] == 5


def test_fields_are_hidden_by_rule(broker: BrokerProcess, orders: str) -> None:
    rules = {"mask_cards_topics": "orders", "mask_cards_fields": "card", "mask_cards_with": "last4"}
    with console_of(broker.bootstrap, **rules) as masking:
        records, _ = found(masking.lines(f"/topics/{orders}/messages", {"limit": 5}))
        assert all(each["value"]["value"]["card"].startswith("****") for each in records)
        asked = {"start": "beginning", "contains": "4111-0042"}
        assert found(masking.lines(f"/topics/{orders}/messages", asked))[0] == []
        asked = {"start": "beginning", "expression": 'value.card like "4111%"'}
        assert found(masking.lines(f"/topics/{orders}/messages", asked))[0] == []


def test_records_of_transactions_and_queues_are_decoded(
    console: Console, broker: BrokerProcess, admin: Admin, orders: str
) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "shown"}
    with Producer(settings) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("copies", b"in a transaction", partition=0)
    asked = {"start": "beginning", "expression": 'key.transactionalId = "shown"'}
    records, _ = found(console.lines("/topics/__transaction_state/messages", asked))
    assert records[0]["key"]["value"]["type"] == "TransactionLog"
    assert records[0]["value"]["kind"] == "internal"
    with ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": "queue"}) as consumer:
        consumer.subscribe(["copies"])
        eventually(
            lambda: consumer.poll(0.2) is not None and _shared_states(console) > 0,
            what="the share coordinator has written",
        )


def _shared_states(console: Console) -> int:
    if "__share_group_state" not in str(console.ask("GET", "/topics?internal=true&size=500")):
        return 0
    asked = {"start": "beginning", "expression": 'key.groupId = "queue"'}
    records, _ = found(console.lines("/topics/__share_group_state/messages", asked))
    return sum(each["value"]["kind"] == "internal" for each in records)


def opened(tab: Tab, topic: str) -> Any:
    page = tab.open(f"/topics/{topic}/messages")
    page.get_by_text("records read").wait_for()
    return page


@pytest.mark.parametrize(
    ("words", "count"),
    [
        pytest.param('key = "customer-3" and partition >= 0', 300, id="key"),
        pytest.param('header.region = "eu" and value.amount = 7', 30, id="header"),
        pytest.param('$.card like "4111-00%"', 100, id="JSON path"),
    ],
)
def test_a_filter_in_a_browser(tab: Tab, orders: str, words: str, count: int) -> None:
    page = opened(tab, orders)
    page.get_by_label("Start").select_option("beginning")
    page.get_by_label("Records", exact=True).fill("5000")
    page.get_by_label("Filter", exact=True).fill(words)
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("status").filter(has_text=f"{count} match. This is the end.").wait_for()
    assert page.locator("main tbody tr").count() == count


def test_a_start_at_an_offset_and_at_a_time_in_a_browser(tab: Tab, orders: str) -> None:
    page = opened(tab, orders)
    page.get_by_label("Start").select_option("offset")
    page.get_by_label("Offset", exact=True).fill("5")
    page.get_by_label("Partitions").fill("1")
    page.get_by_label("Records", exact=True).fill("3")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_label("Open partition 1 offset 5").wait_for()
    eventually(lambda: page.locator("main tbody tr").count() == 3, what="three rows")
    page.get_by_label("Start").select_option("time")
    page.get_by_label("Time", exact=True).fill("2001-01-01T00:00:00")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_label("Open partition 1 offset 0").wait_for()
    page.get_by_label("Time", exact=True).fill("2099-01-01T00:00:00")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("No records match.").wait_for()


def test_a_live_tail_in_a_browser(
    tab: Tab, console: Console, broker: BrokerProcess, orders: str
) -> None:
    page = opened(tab, "copies")
    page.get_by_label("Start").select_option("end")
    page.get_by_role("button", name="Show", exact=True).click()
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:

        def shown() -> bool:
            producer.send("copies", b"while somebody looks", b"tail").result(30)
            return bool(page.locator("main tbody tr", has_text="while somebody looks").count())

        eventually(shown, what="a new record on the page")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("status").filter(has_text="Stopped.").wait_for()


def test_records_are_sent_sent_again_and_copied_in_a_browser(
    tab: Tab, console: Console, admin: Admin, orders: str
) -> None:
    admin.create_topics([NewTopic("drafts", 1, 1), NewTopic("others", 1, 1)])
    page = opened(tab, "drafts")
    page.get_by_role("button", name="Send a record").click()
    page.get_by_label("Value format").select_option("json")
    page.get_by_label("Key", exact=True).fill("k1")
    page.get_by_label("Value", exact=True).fill('{"n": 1}')
    page.get_by_label("Headers").fill("region: eu")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("Stored in partition 0 at offset 0.").wait_for()
    page.get_by_label("Choose partition 0 offset 0").check()
    page.get_by_role("button", name="Re-send chosen").click()
    page.get_by_label("To topic").fill("others")
    page.get_by_role("button", name="Re-send", exact=True).click()
    page.get_by_text("Sent 1 record to others.").wait_for()
    page.get_by_role("button", name="Copy to a topic").click()
    page.get_by_label("To topic").fill("others")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_text("Copied 1 record to others.").wait_for()
    records, _ = found(console.lines("/topics/others/messages", {"start": "beginning"}))
    assert [(each["value"]["value"], each["headers"]) for each in records] == [
        ({"n": 1}, [["region", "eu"]])
    ] * 2


@pytest.mark.parametrize(("name", "kind"), [("Export JSON", "json"), ("Export CSV", "csv")])
def test_what_was_found_is_exported_from_the_page(
    tab: Tab, orders: str, name: str, kind: str
) -> None:
    page = opened(tab, orders)
    page.get_by_label("Start").select_option("beginning")
    page.get_by_label("Filter", exact=True).fill("value.amount < 50")
    page.get_by_label("Partitions").fill("0")
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).click()
    text = waiting.value.path().read_text()
    rows = json.loads(text) if kind == "json" else list(csv.DictReader(io.StringIO(text)))
    assert waiting.value.suggested_filename == f"orders.{kind}"
    assert rows
    assert {str(each["partition"]) for each in rows} == {"0"}


def test_hidden_fields_are_hidden_on_the_page(
    browser: Any, broker: BrokerProcess, orders: str
) -> None:
    rules = {"mask_cards_topics": "orders", "mask_cards_fields": "card", "mask_cards_with": "last4"}
    with console_of(broker.bootstrap, **rules) as masking:
        tab = Tab(browser, masking)
        page = opened(tab, orders)
        shown = page.locator("main tbody").inner_text()
        assert "****" in shown
        assert "4111" not in shown
        tab.close()
        assert tab.problems == []


def test_messages_in_a_browser(tab: Tab, console: Console, orders: str) -> None:
    page = tab.open(f"/topics/{orders}/messages")
    page.get_by_text("records read").wait_for()
    page.get_by_label("Start").select_option("beginning")
    page.get_by_label("Filter", exact=True).fill("value.id = 1234")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("3,000 records read").wait_for()
    assert page.locator("main tbody tr").count() == 1
    page.get_by_role("button", name="Open partition").click()
    assert '"id": 1234' in page.get_by_role("dialog").locator("pre").last.inner_text()
    page.get_by_role("button", name="Edit and send").click()
    page.get_by_label("Value", exact=True).fill('{"id": 99999}')
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("Stored in partition").wait_for()
    page.get_by_label("Filter", exact=True).fill("value.id = 99999")
    page.get_by_label("latest value per key").check()
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("1 key.").wait_for()
