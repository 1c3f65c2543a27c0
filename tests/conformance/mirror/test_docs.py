"""The examples of docs/multi-cluster.md, on ports of the test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.config import load_properties
from moldau.mirror.runner import read_flows
from support.processes import ROOT
from support.waiting import eventually

from .conftest import Servers

DOCUMENT = (ROOT / "docs" / "multi-cluster.md").read_text()
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def here(servers: Servers, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder, and the ports of the page by those of the test."""
    ports = {
        "9092": str(servers("moldau 1").port),
        "9192": str(servers("moldau 2").port),
    }
    return tmp_path, ports


def placed(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"127\.0\.0\.1:(\d+)", lambda m: f"127.0.0.1:{ports.get(m[1], m[1])}", text)


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", program], cwd=folder, env=ENVIRONMENT,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def background(program: str, folder: Path) -> Iterator[None]:
    with (folder / "mirror.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-euc", f"exec {program}"], cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log
        )
    try:
        log_file = folder / "mirror.log"
        eventually(lambda: b"mirror is up" in log_file.read_bytes(), what="the mirror")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def test_the_first_example(here: tuple[Path, dict[str, str]]) -> None:
    folder, ports = here
    (folder / "mm2.properties").write_text(placed(blocks("properties")[0], ports))
    _, create_and_start, use = blocks("sh")
    create, start = create_and_start.strip().splitlines()
    run(placed(create, ports), folder)
    with background(start, folder):
        printed = run(placed(use, ports), folder)
    assert set("12345") <= set(printed.split()[:5])
    assert "paris->berlin: heartbeat" in printed
    assert re.search(r"^orders +paris\.orders +3 +\d+ +\d", printed, re.M)
    assert "berlin->paris:" in printed


def test_every_file_of_the_page_is_right() -> None:
    found = [read_flows(load_properties(each)) for each in blocks("properties")]
    enabled = [sorted(str(n) for n, flow in each.items() if flow["enabled"]) for each in found]
    assert enabled == [
        ["paris->berlin"],
        ["berlin->center", "paris->center"],
        ["berlin->paris", "paris->berlin"],
    ]
    # The way back begins soon after a topic was created by the way there.
    assert {flow.interval_s("refresh.topics") for flow in found[2].values()} == {5.0}


def test_the_policy_of_the_page(tmp_path: Path) -> None:
    names: dict[str, type] = {}
    exec(blocks("python")[0], names)
    policy = names["Suffix"]()
    assert policy.format_remote_topic("paris", "orders") == "orders-from-paris"
    assert policy.original_topic("orders-from-paris") == "orders"
