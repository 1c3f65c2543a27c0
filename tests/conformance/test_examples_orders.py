"""The project in examples/orders: its own tests, and its demo without Spark while services die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.waiting import eventually

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "orders"
SECONDS_MAX = 120


def begin(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = dict(
        os.environ,
        PYTHONPATH=str(PROJECT / "src"),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        PYTHONPYCACHEPREFIX=str(folder / "cache"),
    )
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def begin_demo(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return begin(folder, "orders.demo", "--without-spark", "--plain", "--folder", str(folder),
                 "--rate", "40", *arguments)  # fmt: skip


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module", autouse=True)
def project_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """They run beside the tests here: all of them mostly wait."""
    process = begin(
        tmp_path_factory.mktemp("project"),
        *("pytest", "-q", "-p", "moldau.testing.plugin", "-p", "no:cacheprovider"),
    )
    yield process
    stop(process)


def test_every_order_has_one_end_although_services_are_killed(tmp_path: Path) -> None:
    """First the aggregator is killed, then a validator; the demo checks what has become of all."""
    process = begin_demo(tmp_path, "--seconds", "4", "--disorder", "0.3", "--chaos", "1.5")
    try:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    assert process.returncode == 0, output
    assert output.count("✓") == 10
    assert re.search(r"\d{3} orders, \d+ late, \d+ posted again, 2 services killed: all is well",
                     output), output  # fmt: skip


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = begin_demo(tmp_path, "--seconds", "60")
    yield process
    stop(process)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_demo_is_interrupted(
    demo: subprocess.Popen[str], ending: signal.Signals
) -> None:
    assert demo.stdout is not None
    assert any("making orders" in line for line in demo.stdout), "no order was made"
    children = psutil.Process(demo.pid).children(recursive=True)
    assert len(children) >= 8
    demo.send_signal(ending)
    assert demo.wait(SECONDS_MAX) == (130 if ending == signal.SIGINT else -ending)
    eventually(lambda: not any(lives(child) for child in children), what="all children have ended")


def test_the_tests_of_the_project_pass(project_tests: subprocess.Popen[str]) -> None:
    output, _ = project_tests.communicate(timeout=SECONDS_MAX)
    assert project_tests.returncode == 0, output[-8000:]
    counted = re.search(r"\b(\d+) passed", output)
    written = sum(path.read_text().count("\ndef test_") for path in PROJECT.rglob("test_*.py"))
    assert counted is not None
    assert int(counted[1]) >= written > 40
