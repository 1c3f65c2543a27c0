"""Brokers and topics in a real browser: seen, created, changed, deleted."""

from __future__ import annotations

import pytest

from moldau.client import Admin, NewTopic, OffsetSpec, Producer, TopicPartition
from moldau.client.admin import ConfigResource, RecordsToDelete
from support.console import Console, Tab
from support.processes import BrokerProcess
from support.waiting import eventually


def test_a_topic_is_created_changed_and_deleted(tab: Tab, admin: Admin) -> None:
    page = tab.open("/topics")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_label("Name").fill("orders")
    page.get_by_label("Partitions").fill("3")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_text("Topic orders is created.").wait_for()
    page.get_by_role("heading", name="orders").wait_for()
    assert len(admin.describe_topics(["orders"])["orders"].partitions) == 3

    page.get_by_role("link", name="Settings").last.click()
    page.get_by_label("Search settings").fill("retention.ms")
    page.get_by_role("button", name="Change retention.ms", exact=True).click()
    page.get_by_label("Value").fill("86400000")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("retention.ms is changed.").wait_for()
    resource = ConfigResource.topic("orders")
    assert admin.describe_configs([resource])[resource]["retention.ms"].value == "86400000"

    page.get_by_role("button", name="Add partitions").click()
    page.get_by_label("Partitions in all").fill("5")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Partitions are added.").wait_for()
    eventually(
        lambda: len(admin.describe_topics(["orders"])["orders"].partitions) == 5,
        what="five partitions",
    )

    page.get_by_role("button", name="Delete topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete topic").click()
    dialog.get_by_text("The text is not orders.").wait_for()
    dialog.get_by_label("Type orders to confirm").fill("orders")
    dialog.get_by_role("button", name="Delete topic").click()
    page.get_by_text("Topic orders is deleted.").wait_for()
    eventually(lambda: "orders" not in admin.list_topics(), what="the deletion")


@pytest.mark.slow("a browser opens every page")
def test_every_page_opens(tab: Tab, console: Console) -> None:
    pages = console.ask("GET", "/api/session")["pages"]
    for each in pages:
        if "{" not in each["path"]:
            page = tab.open(each["path"])
            assert page.locator("main h1").count() == 1, each["path"]
            # This console has brokers only: pages of services say which setting is missing.
            notes = page.locator("main .note.bad").all_inner_texts()
            assert [note for note in notes if "configured for this cluster" not in note] == []


def test_bad_bodies_are_refused_with_a_reason(console: Console) -> None:
    bodies = {
        "/topics/t/truncate": {"offsets": {"x": "y"}},
        "/quotas": {"entity": {"user": 5}, "values": {"producer_byte_rate": 1}},
        "/topics": {"name": 5},
        "/acls": {
            "resource_type": "NO",
            "resource_name": "x",
            "principal": "p",
            "operation": "READ",
        },
        "/groups/none/offsets": {"to": "nowhere"},
        "/topics/t/records": {"records": []},
    }
    for path, body in bodies.items():
        answer = console.client.post(f"/api/clusters/default{path}", json=body)
        assert answer.status_code in (400, 404), (path, answer.text)
        assert answer.json()["message"]
    console.ask("GET", "/api/clusters/other/topics", status=404)


def test_the_chart_of_records_does_not_fall_when_records_are_deleted(
    console: Console, admin: Admin, broker: BrokerProcess
) -> None:
    admin.create_topics([NewTopic("purged", 1, 1)])
    place = TopicPartition("purged", 0)

    def rates() -> list[float]:
        found = console.ask("GET", "/series")["series"].get("records_per_second", [])
        return [each for each in found if each is not None]

    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:

        def written(points: int) -> bool:
            # The topic keeps one record, however many come.
            for _ in range(100):
                last = producer.send("purged", b"x").result(30).offset
            admin.delete_records({place: RecordsToDelete.before(last)})
            return len(rates()) >= points

        # The first two points have seen the topic before its records.
        eventually(lambda: written(3), what="the first points")
        before = len(rates())
        eventually(lambda: written(before + 4), what="four more")
    assert min(rates()[before:]) > 0


def test_records_of_a_topic_are_deleted(tab: Tab, admin: Admin, broker: BrokerProcess) -> None:
    admin.create_topics([NewTopic("emptied", 2, 1, {"retention.ms": "7200000"})])
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(10):
            producer.send("emptied", b"x", partition=number % 2)
    page = tab.open("/topics/emptied")
    page.get_by_text("2 h", exact=True).wait_for()
    page.get_by_role("button", name="Delete records").click()
    page.get_by_label("Type emptied to confirm").fill("emptied")
    page.get_by_role("dialog").get_by_role("button", name="Delete records").click()
    page.get_by_text("Records are deleted.").wait_for()
    place = TopicPartition("emptied", 0)
    first = admin.list_offsets({place: OffsetSpec.earliest()})[place].offset
    assert first == 5


@pytest.mark.parametrize("path", ["/brokers/1?view=settings", "/settings"])
def test_a_setting_of_brokers_is_changed_and_taken_back(tab: Tab, admin: Admin, path: str) -> None:
    resource = ConfigResource.broker(1)

    def value() -> str | None:
        return admin.describe_configs([resource])[resource]["log.cleaner.threads"].value

    page = tab.open(path)
    for new in ("2", "1"):
        page.get_by_label("Search settings").fill("log.cleaner.threads")
        page.get_by_role("button", name="Change log.cleaner.threads", exact=True).click()
        if new == "2":
            page.get_by_label("Value").fill(new)
        else:
            page.get_by_label("back to the default").check()
        page.get_by_role("button", name="Save").click()
        eventually(lambda new=new: value() == new, what=f"the value {new}")  # type: ignore[misc]
        page.get_by_role("dialog").wait_for(state="detached")
