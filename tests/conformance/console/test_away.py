"""Brokers and consoles that go away while somebody looks: the page says so, keeps what it has, and
goes on when they are back."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.services.console import scanning
from support.console import Console, Tab, console_of
from support.processes import BrokerProcess, moldau

COUNT = 4000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of its own, with a topic of many small batches: it is killed."""
    with moldau(tmp_path_factory.mktemp("broker")) as process:
        servers = {"bootstrap.servers": process.bootstrap}
        with Admin(servers) as admin:
            admin.create_topics([NewTopic("events", 1, 1)])
        with Producer({**servers, "batch.size": "0", "linger.ms": "0"}) as producer:
            for number in range(COUNT):
                producer.send("events", b'{"id": %d}' % number)
        yield process


@pytest.fixture(scope="module")
def console(broker: BrokerProcess) -> Iterator[Console]:
    # One batch at a time, so that a search takes long enough to be in the middle of it.
    slow = {"consumer_fetch_max_bytes": "1", "consumer_max_partition_fetch_bytes": "1"}
    quick = {"admin_default_api_timeout_ms": "2000", "admin_request_timeout_ms": "1500"}
    with console_of(broker.bootstrap, **slow, **quick) as found:
        yield found


def test_a_search_says_that_its_broker_is_gone(
    console: Console, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "SILENCE_S", 0.5)
    monkeypatch.setattr(scanning, "ASK_S", 1.0)
    asked = {"start": "beginning", "contains": "nowhere"}
    lines = console.lines("/topics/events/messages", asked)
    first = next(lines)
    broker.kill()
    try:
        *_, last = lines
        assert first["progress"]["scanned"] < COUNT
        assert "The cluster did not answer" in last["error"]
        assert last["done"]
        refused = console.ask("POST", "/topics/events/messages", asked, status=503)
        assert "did not answer" in refused["message"]
    finally:
        broker.start()
    *_, last = console.lines("/topics/events/messages", asked)
    assert last["progress"]["scanned"] == COUNT


@pytest.mark.slow("pages notice when they next ask, and the broker starts again")
def test_open_pages_say_that_the_broker_is_gone_and_go_on(
    browser: Any, console: Console, broker: BrokerProcess
) -> None:
    tabs = [Tab(browser, console) for _ in range(3)]
    paths = ["", "/quorum", "/balancer"]
    pages = [tab.open(path) for tab, path in zip(tabs, paths, strict=True)]
    pages[2].get_by_text("Nothing has to move").wait_for()
    broker.kill()
    try:
        for page in pages:
            page.get_by_text("did not answer").first.wait_for()
        other = Tab(browser, console)
        page = other.open("/topics/events")
        page.get_by_role("alert").get_by_text("did not answer").wait_for()
        other.close()
    finally:
        broker.start()
    for page in pages:
        page.get_by_text("did not answer").first.wait_for(state="detached")
    for tab in tabs:
        tab.close()
        assert tab.problems == []


def test_a_console_that_is_killed_in_a_search(
    browser: Any, broker: BrokerProcess, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "moldau.cli", "console", "start", "--port", "0"]
    command += ["--bootstrap-server", broker.bootstrap]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = next(
            found[1] for line in process.stdout if (found := re.search(r"listening +(\S+)", line))
        )
        page = browser.new_page()
        page.goto(f"{url}/clusters/default/topics/events/messages", wait_until="domcontentloaded")
        page.get_by_label("Open partition 0 offset 3999").wait_for()
        page.get_by_label("Start").select_option("end")
        page.get_by_role("button", name="Show", exact=True).click()
        with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            while not page.get_by_text("while somebody looks").count():
                producer.send("events", b"while somebody looks").result(30)
    finally:
        process.kill()
        process.wait()
    page.get_by_role("alert").get_by_text("The connection to the console was lost").wait_for()
    assert page.get_by_text("while somebody looks").count(), "what was found stays"
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("alert").get_by_text("The console does not answer").wait_for()
    page.close()
