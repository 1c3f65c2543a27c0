"""Every page in light and dark and at phone width: axe finds nothing, nothing is wider than the
screen, and the keyboard is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from support.console import Console, Tab, axe_violations
from support.processes import BrokerProcess

AXE = Path(__file__).parents[3] / ".cache/axe-core/axe.min.js"
SERVICE_PARAMETERS = ("subject", "connector", "pipeline", "application", "query", "source")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


@pytest.fixture(scope="module")
def filled(broker: BrokerProcess, admin: Admin, console: Console) -> dict[str, str]:
    """Something to see on every page; returns the parameters of paths."""
    admin.create_topics([NewTopic("orders", 2, 1), NewTopic("orders-dlq", 1, 1)])
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(50):
            producer.send("orders", b'{"id": %d}' % number, b"k", headers=[("h", b"x")])
            headers = [
                ("__connect.errors.exception.message", b"no"),
                ("__connect.errors.topic", b"o"),
            ]
            producer.send("orders-dlq", b"bad", headers=headers)
    console.ask("POST", "/acls", {"resource_type": "TOPIC", "resource_name": "orders",
                                  "principal": "User:a", "operation": "READ"})  # fmt: skip
    console.ask("PUT", "/users/ada", {"password": "of ada"})
    quota = {"entity": {"user": "ada"}, "values": {"producer_byte_rate": 1000}}
    console.ask("POST", "/quotas", quota)
    place = TopicPartition("orders", 0)
    admin.alter_consumer_group_offsets("readers", {place: OffsetAndMetadata(0)})
    return {"topic": "orders", "group": "readers", "broker": "1"}


def paths(console: Console, filled: dict[str, str]) -> list[str]:
    """Every page. The settings of brokers are 300 rows of what the topic's settings are."""
    found = []
    for each in console.ask("GET", "/api/session")["pages"]:
        path = each["path"]
        if path.startswith("/dead-letters/"):
            path = "/dead-letters/orders-dlq"
        # Pages of services that do not run here are looked at with them, in test_service_pages.
        known = all(f"{{{name}}}" not in path for name in SERVICE_PARAMETERS)
        if path != "/settings" and known:
            found.append(path.format(**filled) if "{" in path else path)
    return [*found, "/topics/orders?view=settings", "/groups/readers?view=members"]


def opened(tab: Tab, path: str) -> Any:
    page = tab.open(path)
    if path.endswith("/messages"):
        page.get_by_text("records read").wait_for()
    return page


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core here: make axe fetches it with npm")
@pytest.mark.parametrize(
    "theme",
    [
        "light",
        pytest.param("dark", marks=pytest.mark.long("the same pages again, for their colours")),
    ],
)
@pytest.mark.slow("axe looks at every element of thirty pages")
def test_axe_finds_nothing(
    browser: Any, console: Console, filled: dict[str, str], theme: str
) -> None:
    # `bypass_csp` only for axe itself, which the pages' policy would not let in.
    tab = Tab(
        browser,
        console,
        viewport={"width": 1280, "height": 860},
        color_scheme=theme,
        bypass_csp=True,
    )
    # Dark differs in its colours alone.
    only = {"type": "tag", "values": RULES}
    if theme == "dark":
        only = {"type": "rule", "values": ["color-contrast"]}
    problems = []
    for path in paths(console, filled):
        page = opened(tab, path)
        found = axe_violations(page, AXE, only)
        problems += [f"{path}: {each}" for each in found]
    assert tab.problems == []
    tab.close()
    assert problems == [], "\n".join(problems)


@pytest.mark.slow("a browser opens thirty pages")
def test_pages_fit_a_phone(browser: Any, console: Console, filled: dict[str, str]) -> None:
    tab = Tab(browser, console, viewport={"width": 390, "height": 800})
    problems = []
    for path in paths(console, filled):
        page = opened(tab, path)
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            problems.append(f"{path}: {wider} px too wide")
    page = tab.open("/groups/readers")
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("What would change").wait_for()
    wider = page.locator("dialog").evaluate("box => box.scrollWidth - box.clientWidth")
    assert wider <= 0, "a table in a dialog scrolls by itself"
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Brokers", exact=True).click()
    page.get_by_role("heading", name="Brokers").wait_for()
    assert tab.problems == []
    tab.close()
    assert problems == []


def test_the_keyboard_is_enough(tab: Tab, console: Console, filled: dict[str, str]) -> None:
    page = tab.open("/topics")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Search topics").focus()
    page.keyboard.type("dlq")
    page.get_by_role("link", name="orders-dlq").wait_for()
    page.get_by_role("button", name="Create topic").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    page.get_by_text("Topic typed is created.").wait_for()
    page.get_by_role("heading", name="typed").wait_for()
    page.get_by_role("button", name="Delete topic").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
