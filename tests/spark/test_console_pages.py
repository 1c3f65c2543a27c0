"""Control Center in a browser while pipelines run on Spark and a mirror copies: what its pages show
is what runs, and their buttons stop and start it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from moldau.pipelines import PipelineError, Pipelines
from moldau.spark import ConnectServer
from support.console import Console, Tab, chromium
from support.mirrors import mirroring, properties, write
from support.platform import Platform
from support.processes import BrokerProcess, moldau
from support.waiting import eventually

SECONDS_MAX = 300.0
WAIT_MS = 1000 * SECONDS_MAX
DEFINITION = """\
name: {name}
source: {{topic: readings, schema: 'id INT, amount INT', startingOffsets: earliest}}
steps:
  - sql: SELECT id, {column} * 2 AS amount FROM input
sink: {{topic: doubled, key: cast(id AS STRING)}}
trigger: 200 milliseconds
"""


class Stage:
    """A cluster, one that is mirrored to it, `moldau up` with a console, and pipelines."""

    def __init__(self, folder: Path, small: dict[str, str], held: ExitStack) -> None:
        self.folder = folder
        self.here: BrokerProcess = held.enter_context(moldau(folder / "here"))
        self.west: BrokerProcess = held.enter_context(moldau(folder / "west"))
        self.create(self.here, "readings", "doubled")
        self.create(self.west, "orders")
        self.mirror = properties(
            {"west": self.west, "here": self.here}, "west->here", topics="orders", groups=".*ing"
        )
        file = write(folder / "mm2.properties", self.mirror)
        settings = write(
            folder / "console.properties", {"mirror.file": str(file), "refresh.ms": "500"}
        )
        self.platform = Platform(folder)
        spark = self.platform.data / "spark"
        words = ["--bootstrap-server", self.here.bootstrap, "--only", "console"]
        words += ["--service-config", f"console={settings}"]
        self.platform.call("up", "--detach", "--port", "0", *words)
        held.callback(self.platform.call, "destroy", "--yes")
        spark.mkdir(exist_ok=True)
        ConnectServer(spark, master="local[2]", conf=small, connector="moldau").remember()
        url = self.platform.services()["console"]["address"]
        self.console = Console(SimpleNamespace(url=url))  # type: ignore[arg-type]
        self.pipelines = held.enter_context(
            Pipelines(self.here.bootstrap, folder=spark, timeout=SECONDS_MAX)
        )

    def create(self, broker: BrokerProcess, *topics: str) -> None:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic(name, 1, 1) for name in topics])

    def define(self, name: str, column: str) -> Path:
        file = self.folder / f"{name}.yaml"
        file.write_text(DEFINITION.format(name=name, column=column))
        return file


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, small: dict[str, str]) -> Iterator[Stage]:
    with ExitStack() as held:
        yield Stage(tmp_path_factory.mktemp("stage"), small, held)


@pytest.fixture
def tab(stage: Stage) -> Iterator[Tab]:
    with chromium() as browser:
        found = Tab(browser, stage.console, viewport={"width": 1280, "height": 860})
        found.page.set_default_timeout(WAIT_MS)
        yield found
        found.close()
        assert found.problems == []


def sending(bootstrap: str, topic: str, stopping: threading.Event) -> threading.Thread:
    def run() -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            number = 0
            while not stopping.wait(0.02):
                producer.send(topic, json.dumps({"id": number, "amount": number}).encode())
                number += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def rate(drawn: Any, name: str) -> float:
    """Records per second in the box of that name."""
    texts = drawn.evaluate(
        "box => Object.fromEntries([...box.querySelectorAll('.rate-line')].map("
        "line => [line.parentNode.querySelector('.label').textContent, line.textContent]))"
    )
    return float(texts.get(name, "0 records/s").removesuffix(" records/s").replace(",", ""))


@pytest.mark.long("a Spark server of its own; test_service_pages has the pages without it")
def test_pipelines_that_run(stage: Stage, tab: Tab) -> None:
    stage.pipelines.start(stage.define("twice", "amount"))
    with pytest.raises(PipelineError, match="amuont"):
        stage.pipelines.start(stage.define("wrong", "amuont"))
    stopping = threading.Event()
    thread = sending(stage.here.bootstrap, "readings", stopping)
    try:
        page = tab.open("/pipelines")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="twice"))
        row.get_by_text("running", exact=True).wait_for()
        broken = page.get_by_role("row").filter(has=page.get_by_role("link", name="wrong"))
        broken.get_by_text("failed", exact=True).wait_for()
        broken.get_by_text("amuont").wait_for()
        page.get_by_role("link", name="twice").click()
        drawn = page.get_by_role("region", name="What twice reads and writes")
        for name in ("readings", "twice", "doubled"):
            eventually(
                lambda name=name: rate(drawn, name) > 0,  # type: ignore[misc]
                what=f"the rate of {name}",
                seconds_max=SECONDS_MAX,
            )

        def state() -> str:
            return str(stage.pipelines.show("twice").state)

        for button, wanted in (("Stop", "stopped"), ("Start", "running"), ("Restart", "running")):
            page.get_by_role("button", name=button, exact=True).click()
            eventually(
                lambda wanted=wanted: state() == wanted,  # type: ignore[misc]
                what=f"{button}: {wanted}",
                seconds_max=SECONDS_MAX,
            )
            page.locator("main .facts").get_by_text(wanted, exact=True).first.wait_for()
        page.get_by_role("region", name="Log").get_by_text("rows/s").first.wait_for()
        page = tab.open("/pipelines/wrong")
        page.locator("main .note.bad").get_by_text("amuont").first.wait_for()
        page = tab.open("/lineage?around=pipeline:twice")
        page.locator(".graphbox a", has_text="twice").click()
        page.get_by_role("heading", name="twice", exact=True).wait_for()
    finally:
        stopping.set()
        thread.join()
    for name in ("twice", "wrong"):
        stage.pipelines.delete(name, checkpoint=True)
    refused = stage.console.ask("GET", "/pipelines/twice", status=404)
    assert "there is no pipeline twice" in refused["message"]


@pytest.mark.long("on the platform of the test above; test_mirror_pages has a mirror that rests")
def test_a_mirror_that_runs(stage: Stage, tab: Tab) -> None:
    with Admin(bootstrap_servers=stage.west.bootstrap) as admin:
        place = TopicPartition("orders", 0)
        admin.alter_consumer_group_offsets("billing", {place: OffsetAndMetadata(3)})
    stopping = threading.Event()
    thread = sending(stage.west.bootstrap, "orders", stopping)
    try:
        with mirroring(stage.mirror):
            page = tab.open("/mirrors")
            row = page.get_by_role("row").filter(
                has=page.get_by_role("link", name="west", exact=True)
            )
            row.get_by_text("ago").wait_for()
            row.get_by_role("link", name="west.orders").wait_for()
            # Records arrive, and the page goes on with them.
            eventually(
                lambda: float(row.locator("td").last.inner_text().replace(",", "")) > 0,
                what="records per second",
                seconds_max=60,
            )
            page.get_by_role("link", name="west", exact=True).click()
            page.get_by_role("heading", name="Mirror of west").wait_for()
            topics = page.get_by_role("region", name="Topics")
            topics.get_by_role("link", name="west.orders").wait_for()
            page.get_by_role("region", name="Checkpoints").get_by_text("billing").wait_for()
            page.get_by_role("button", name="Dry run").click()
            planned = page.get_by_role("region", name="Fail-over, dry run")
            planned.get_by_text("exact", exact=True).wait_for()
            page.get_by_label("Group").select_option("billing")
            page.get_by_label("west is lost").check()
            page.get_by_role("button", name="Dry run").click()
            page.get_by_text("--group billing --without-source").wait_for()
            stopping.set()
            thread.join()
            # All of it is there in the end.
            behind = page.locator(".stat", has_text="records behind").locator("b")
            eventually(lambda: behind.inner_text() == "0", what="nothing behind", seconds_max=60)
    finally:
        stopping.set()
        thread.join()
