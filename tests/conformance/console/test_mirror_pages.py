"""A mirror between two clusters, as the console shows it: flows, lag, checkpoints, and where groups
would continue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from support.console import Console, Tab, axe_violations, console_of
from support.mirrors import create, exactly_once, mirroring, properties, read, write
from support.processes import BrokerProcess, moldau
from support.waiting import eventually

from .conftest import SETTINGS

AXE = Path(__file__).parents[3] / ".cache/axe-core/axe.min.js"
PLACE = TopicPartition("orders", 0)
COUNT = 20


@pytest.fixture(scope="module")
def paris(broker: BrokerProcess) -> str:
    return broker.bootstrap


@pytest.fixture(scope="module")
def berlin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = [f"{key}={value}" for key, value in SETTINGS.items()]
    with moldau(tmp_path_factory.mktemp("berlin"), given) as process:
        yield process.bootstrap


@pytest.fixture(scope="module")
def mirrored(paris: str, berlin: str) -> dict[str, str]:
    """The mirror ran until a group and its topic were in berlin, and has been stopped since; more
    records have come."""
    create(paris, NewTopic("orders", 1, 1))
    with Admin({"bootstrap.servers": paris}) as admin:
        admin.alter_consumer_group_offsets("billing", {PLACE: OffsetAndMetadata(7)})
    made = exactly_once(
        properties({"paris": paris, "east": berlin}, "paris->east", topics="orders", groups=".*ing")
    )
    _send(paris, COUNT)
    with mirroring(made), Admin({"bootstrap.servers": berlin}) as admin:
        read(berlin, "paris.orders", COUNT)
        eventually(
            lambda: "heartbeats" in admin.list_topics() and read(berlin, "heartbeats", 1),
            what="heartbeats",
        )
        eventually(
            lambda: any(each.value for each in read(berlin, "paris.checkpoints.internal", 1)),
            what="a checkpoint",
        )
    _send(paris, 5)
    return made


def _send(bootstrap: str, count: int) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(count):
            producer.send("orders", b"%d" % number, partition=0)


@pytest.fixture(scope="module")
def console(
    paris: str, berlin: str, mirrored: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """`berlin`, which the file calls east, and `paris`."""
    file = write(tmp_path_factory.mktemp("mirror") / "mm2.properties", mirrored)
    more = {"cluster_name": "berlin", "clusters": "paris", "cluster_paris_bootstrap_servers": paris}
    with console_of(berlin, mirror_file=str(file), **more) as found:
        yield Console(found.service, "berlin")


def test_the_flow_with_its_lag_and_its_groups(console: Console) -> None:
    listed = console.ask("GET", "/mirrors")
    (flow,) = [each for each in listed["data"] if each["source"] == "paris"]
    assert flow["topics"] == ["paris.heartbeats", "paris.orders"]
    assert 0 <= flow["heartbeat_age_s"] < 600
    assert (flow["enabled"], flow["exactly_once"]) == (True, True)
    assert flow["policy"] == "DefaultReplicationPolicy"

    def orders() -> dict[str, Any]:
        topics = console.ask("GET", "/mirrors/paris")["topics"]
        (topic,) = [each for each in topics if each["topic"] == "orders"]
        return dict(topic)

    assert orders()["remote"] == "paris.orders"
    assert orders()["records_behind"] == 5
    eventually(lambda: 1.0 < orders()["seconds_behind"] < 600, what="a second of lag")
    found = console.ask("GET", "/mirrors/paris")
    checkpoint = {"group": "billing", "topic": "orders", "partition": 0, "offset": 7,
                  "remote": "paris.orders", "remote_offset": 7}  # fmt: skip
    assert checkpoint in found["groups"]
    assert found["error"] is None

    there = Console(console.service, "paris").ask("GET", "/mirrors")
    assert {"target": "east", "cluster": "berlin"} in there["targets"]


def test_a_fail_over_is_tried_dry(console: Console, berlin: str) -> None:
    found = console.ask("GET", "/mirrors/paris/moves")
    (move,) = found["data"]
    assert (move["group"], move["offset"], move["remote_offset"]) == ("billing", 7, 7)
    assert (move["exact"], move["behind"]) == (True, 0)
    assert found["refused"] == []
    assert "--from paris --to east" in found["command"]
    lost = console.ask("GET", "/mirrors/paris/moves?lost=true&group=billing")
    assert [each["remote_offset"] for each in lost["data"]] == [7]
    assert lost["command"].endswith("--group billing --without-source")
    with Admin({"bootstrap.servers": berlin}) as admin:
        offsets = admin.list_consumer_group_offsets({"billing": None}, check=False).values_by_key
        assert not any(offsets.get("billing", {}).values()), "nothing was changed"
    assert "no mirror" in console.ask("GET", "/mirrors/rome", status=404)["message"].lower()


def test_without_its_file_a_mirror_is_known_by_its_topics(berlin: str, console: Console) -> None:
    with console_of(berlin) as alone:
        (flow,) = alone.ask("GET", "/mirrors")["data"]
        assert (flow["source"], flow["enabled"]) == ("paris", None)
        found = alone.ask("GET", "/mirrors/paris")
        assert [each["offset"] for each in found["groups"]] == [7]
        assert {each["seconds_behind"] for each in found["topics"]} == {None}
        refused = alone.ask("GET", "/mirrors/paris/moves", status=409)
        assert "mirror.file" in refused["message"]


def test_a_source_that_is_gone_leaves_its_checkpoints(
    berlin: str, mirrored: dict[str, str], tmp_path: Path
) -> None:
    file = write(
        tmp_path / "mm2.properties",
        {
            **mirrored,
            "paris.bootstrap.servers": "127.0.0.1:1",
            "admin.default.api.timeout.ms": "2000",
            "paris.admin.default.api.timeout.ms": "2000",
            "paris.admin.request.timeout.ms": "1000",
        },
    )
    with console_of(berlin, mirror_file=str(file)) as found:
        shown = found.ask("GET", "/mirrors/paris")
        assert shown["error"].startswith("paris cannot be read")
        assert [each["remote_offset"] for each in shown["groups"]] == [7]
        lost = found.ask("GET", "/mirrors/paris/moves?lost=true")
        assert [each["remote_offset"] for each in lost["data"]] == [7]


def test_a_file_that_cannot_be_used_is_named(berlin: str, tmp_path: Path) -> None:
    file = write(tmp_path / "mm2.properties", {"clusters": "A"})
    with console_of(berlin, mirror_file=str(file)) as found:
        assert str(file) in found.ask("GET", "/mirrors", status=500)["message"]


def test_the_pages_of_a_mirror(browser: Any, console: Console) -> None:
    small = Tab(browser, console, viewport={"width": 390, "height": 800}, bypass_csp=True)
    page = small.open("/mirrors")
    page.get_by_role("link", name="paris", exact=True).click()
    page.get_by_role("heading", name="Mirror of paris").wait_for()
    page.get_by_role("region", name="Topics").get_by_role("link", name="paris.orders").wait_for()
    page.get_by_role("region", name="Checkpoints").get_by_text("billing").wait_for()
    page.get_by_role("button", name="Dry run").click()
    planned = page.get_by_role("region", name="Fail-over, dry run")
    planned.get_by_text("exact", exact=True).wait_for()
    page.get_by_text("Nothing was changed").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if AXE.exists():
        only = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
        assert axe_violations(page, AXE, only) == []
    small.close()
    assert small.problems == []
