"""Brokers and topics in a real browser: seen, created, changed, deleted."""

from __future__ import annotations

from moldau.client import Admin
from moldau.client.admin import ConfigResource
from support.console import Console, Tab
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
