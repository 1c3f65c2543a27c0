"""Records that anybody may have written: huge, binary, half broken. One of them must not break the
page of all, and none is changed by being looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from moldau.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from support.console import Console, Tab, console_of
from support.processes import BrokerProcess
from support.waiting import eventually

HUGE = "huge.odd_name-1"
DEEP = b"[" * 5000 + b"]" * 5000
ODD = [
    b'{"id": 12345678901234567890, "rate": 1.50}',
    b'{"half": "\\ud800"}',
    b'{"a": NaN}',
    b'{"a": 1e999}',
    DEEP,
    b"[" * 300 + b"]" * 300,
    bytes(range(256)),
    b"",
    None,
]


@pytest.fixture(scope="module")
def odd(broker: BrokerProcess, admin: Admin) -> str:
    admin.create_topics([NewTopic("odd", 1, 1)])
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for value in ODD:
            producer.send("odd", value, b"\xff\x00key", headers=[("h", b"\xfe"), ("h", None)])
    return "odd"


@pytest.fixture(scope="module")
def huge(broker: BrokerProcess, admin: Admin) -> str:
    """A record of a megabyte whose last field is `end`, and a small one after it."""
    admin.create_topics([NewTopic(HUGE, 1, 1, {"max.message.bytes": "4000000"})])
    settings = {"bootstrap.servers": broker.bootstrap, "max.request.size": "4000000"}
    with Producer(settings) as producer:
        value = {"text": "x" * 1_000_000, "card": "4111-1111", "end": "here"}
        producer.send(HUGE, json.dumps(value).encode(), b"k")
        producer.send(HUGE, b'{"end": "small"}', b"s")
    return HUGE


def found(lines: Iterator[Any]) -> tuple[list[Any], Any]:
    records, last = [], None
    for line in lines:
        if "record" in line:
            records.append(line["record"])
        last = line
    return records, last


def test_a_huge_value_is_searched_whole_and_shown_in_part(console: Console, huge: str) -> None:
    asked = {"start": "beginning", "expression": 'value.end = "here"'}
    (record,), last = found(console.lines(f"/topics/{huge}/messages", asked))
    assert last["done"]
    assert len(record["value"]["value"]) == 100_000
    assert record["value"]["note"] == "the first 100,000 bytes"
    whole = console.ask("GET", f"/topics/{huge}/partitions/0/messages/0")
    assert whole["value"]["value"]["end"] == "here"
    assert whole["value"]["note"] is None
    rows = console.ask("GET", f"/topics/{huge}/export?start=beginning")
    assert [row["value"]["end"] for row in rows] == ["here", "small"]
    rows, last = found(console.lines(f"/topics/{huge}/table", {}))
    assert last["keys"] == 2


def test_a_hidden_field_of_a_huge_value_is_hidden(broker: BrokerProcess, huge: str) -> None:
    rules = {"mask_cards_topics": "huge.*", "mask_cards_fields": "card", "mask_cards_with": "last4"}
    with console_of(broker.bootstrap, **rules) as masking:
        whole = masking.ask("GET", f"/topics/{huge}/partitions/0/messages/0")
        assert (whole["value"]["value"]["card"], whole["value"]["value"]["end"]) == (
            "****1111",
            "here",
        )
        masking.ask("POST", "/topics", {"name": "open"})
        again = {"records": [{"partition": 0, "offset": 0}], "to": "open"}
        refused = masking.ask("POST", f"/topics/{huge}/resend", again, status=400)
        assert "would be visible in open" in refused["message"]
        dead = masking.ask("POST", f"/dead-letters/{huge}/redrive", again, status=400)
        assert "would be visible in open" in dead["message"]
        masking.ask("POST", f"/topics/{huge}/resend", {**again, "to": huge})


def test_every_odd_record_is_shown(console: Console, odd: str) -> None:
    records, last = found(console.lines(f"/topics/{odd}/messages", {"start": "beginning"}))
    assert (len(records), last["progress"]["reason"]) == (len(ODD), "end")
    values = [each["value"]["value"] for each in records]
    assert values[0]["id"] == 12345678901234567890
    assert values[1] == '{"half": "\\ud800"}'
    assert values[2] == '{"a": NaN}'
    assert values[4:6] == [DEEP.decode(), "[" * 300 + "]" * 300]
    assert values[7:] == ["", None]
    assert {each["key"]["value"] for each in records} == {"/wBrZXk="}
    for offset in range(len(ODD)):
        console.ask("GET", f"/topics/{odd}/partitions/0/messages/{offset}")
    assert len(console.ask("GET", f"/topics/{odd}/export?start=beginning")) == len(ODD)
    assert console.client.get(f"/api/clusters/default/topics/{odd}/export?format=csv").is_success
    assert console.ask("GET", f"/dead-letters/{odd}")["read"] == len(ODD)
    for kind in ("json", "double", "hex", "avro"):
        asked = {"start": "beginning", "value_format": kind, "key_format": kind}
        assert found(console.lines(f"/topics/{odd}/messages", asked))[1]["done"]
    nan = {"records": [{"value": "nan"}], "value_format": "double"}
    stored = console.ask("POST", f"/topics/{odd}/records", nan)["data"][0]
    asked = {"start": "offset", "offset": stored["offset"], "value_format": "double"}
    (record,), _ = found(console.lines(f"/topics/{odd}/messages", asked))
    assert record["value"]["value"] == "nan"


def test_a_long_number_is_kept_on_the_page_and_when_it_is_sent_again(
    tab: Tab, console: Console, odd: str
) -> None:
    page = tab.open(f"/topics/{odd}/messages?start=beginning")
    page.get_by_text("12345678901234567890").wait_for()
    page.get_by_label("Open partition 0 offset 0").click()
    page.get_by_role("dialog").get_by_text('"id": 12345678901234567890').wait_for()
    page.get_by_role("button", name="Edit and send").click()
    box = page.get_by_label("Value", exact=True)
    box.fill(box.input_value().replace("1.5", "2.5"))
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("Stored in partition").wait_for()
    records, _ = found(console.lines(f"/topics/{odd}/messages", {"limit": 1}))
    assert records[0]["value"]["value"] == {"id": 12345678901234567890, "rate": 2.5}


def test_a_huge_record_in_a_browser(tab: Tab, huge: str) -> None:
    page = tab.open(f"/topics/{huge}/messages?start=beginning")
    page.get_by_role("status").filter(has_text="This is the end.").wait_for()
    page.get_by_label("Open partition 0 offset 0").click()
    page.get_by_role("dialog").get_by_text('"end": "here"').wait_for()
    page.get_by_role("button", name="Close").click()
    page = tab.open(f"/dead-letters/{huge}")
    page.get_by_text("Records", exact=True).click()
    page.get_by_label("Choose partition 0 offset 0").check()
    page.get_by_role("button", name="Send chosen back").click()
    # The list has the beginning; what is edited is all of it.
    assert '"end": "here"' in page.get_by_label("Value", exact=True).input_value()
    page.get_by_role("button", name="Cancel").click()


def test_topics_that_are_not_there(tab: Tab, console: Console) -> None:
    for path in ("messages", "table"):
        refused = console.ask("POST", f"/topics/nowhere/{path}", {}, status=404)
        assert "nowhere" in refused["message"]
    console.ask("GET", "/topics/nowhere/export", status=404)
    page = tab.open("/topics/nowhere/messages")
    page.get_by_role("alert").get_by_text("nowhere").wait_for()
    page.goto(f"{console.url}/clusters/elsewhere/topics", wait_until="domcontentloaded")
    page.get_by_role("alert").get_by_text("There is no cluster elsewhere").wait_for()


@pytest.mark.parametrize("group", ["a/b", "ü & ?x=1#y", 'quoted "%2F"', "{curly}"])
def test_odd_names_of_groups(
    tab: Tab, console: Console, admin: Admin, odd: str, group: str
) -> None:
    admin.alter_consumer_group_offsets(group, {TopicPartition(odd, 0): OffsetAndMetadata(1)})
    page = tab.open("/groups")
    page.get_by_role("link", name=group, exact=True).click()
    page.get_by_role("heading", name=group, exact=True).wait_for()
    page.get_by_role("region", name="Offsets by partition").get_by_role("link", name=odd).wait_for()

    def is_drawn() -> bool:
        nodes = console.ask("GET", "/lineage")["nodes"]
        return f"group:{group}" in {each["id"] for each in nodes}

    eventually(is_drawn, what="the group in the lineage")
    page = tab.open("/lineage")
    box = page.locator(".graphbox a", has_text=group)
    box.click()
    page.get_by_text(f"around {group}").wait_for()
    page.locator(".graphbox a", has_text=group).click()
    page.get_by_role("heading", name=group, exact=True).wait_for()
    console.ask("DELETE", f"/groups/{quote(group, safe='')}")
