"""Searches in topics that are too big to wait for: progress, an end at any time, little memory."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, Producer
from support.console import Console, Tab, console_of
from support.processes import BrokerProcess
from support.waiting import eventually

MANY = 10_000_000


def fill(broker: BrokerProcess, admin: Admin, topic: str, count: int) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])
    with Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4"}) as producer:
        for number in range(count):
            producer.send(topic, b'{"id": %d, "state": "paid"}' % number, partition=number % 2)


def search(console: Console, topic: str, **asked: Any) -> list[Any]:
    """All lines of a search from the beginning."""
    wanted = {"start": "beginning", "limit": 10, **asked}
    return list(console.lines(f"/topics/{topic}/messages", wanted))


def test_a_search_that_nobody_waits_for_ends(broker: BrokerProcess, admin: Admin) -> None:
    fill(broker, admin, "stopped", 200_000)
    with console_of(broker.bootstrap, streams_max="1") as console:
        path = f"/api/clusters/{console.cluster}/topics/stopped/messages"
        asked = {"start": "beginning", "live": True, "limit": 10, "contains": "nowhere"}
        with console.client.stream("POST", path, json=asked) as answer:
            # Kept: an iterator that is given up closes the connection.
            lines = answer.iter_lines()
            assert "progress" in next(lines)
            refused = console.client.post(path, json=asked)
            assert "streams.max" in refused.text
        whole = {**asked, "live": False}
        eventually(
            lambda: console.client.post(path, json=whole).status_code == 200,
            what="the place of the search that was left",
        )
        assert search(console, "stopped", contains='"id": 199999,')[-1].get("done")


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.long("ten million records are written and read")
def test_ten_million_records(
    broker: BrokerProcess, admin: Admin, console: Console, tab: Tab
) -> None:
    fill(broker, admin, "many", MANY)
    search(console, "many", contains='"id": 7,')
    before = resident_mb()
    lines = search(console, "many", contains=f'"id": {MANY - 1},')
    grown = resident_mb() - before
    reports = [each["progress"] for each in lines if "progress" in each]
    assert reports[-1]["scanned"] == MANY
    assert reports[-1]["matched"] == 1
    assert [each["done"] for each in reports] == sorted(each["done"] for each in reports)
    assert len(reports) > 10
    assert grown < 100, f"{grown:.0f} MB more than before"

    page = tab.open("/topics/many/messages")
    page.get_by_text("records read").wait_for()
    page.get_by_label("Start").select_option("beginning")
    page.get_by_label("Contains").fill("nowhere")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_label("Progress of the search").wait_for()
    page.get_by_role("button", name="Stop").click()
    status = page.get_by_role("status").filter(has_text="Stopped.")
    status.wait_for()
    [read] = re.findall(r"([\d,]+) records read", status.inner_text())
    assert int(read.replace(",", "")) < MANY
