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

from support.processes import apache_kafka, free_port, kafka_missing
from support.waiting import eventually

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "orders"
SECONDS_MAX = 120


def begin(*arguments: str) -> subprocess.Popen[str]:
    environment = dict(
        os.environ,
        PYTHONPATH=str(PROJECT / "src"),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
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
    return begin("orders.demo", "--without-spark", "--plain", "--folder", str(folder),
                 "--rate", "40", *arguments)  # fmt: skip


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def project_tests() -> Iterator[subprocess.Popen[str]]:
    process = begin("pytest", "-q", "-p", "moldau.testing.plugin", "-p", "no:cacheprovider")
    yield process
    stop(process)


@pytest.mark.slow("all services of the demo start, two of them twice")
def test_every_order_has_one_end_although_services_are_killed(tmp_path: Path) -> None:
    """First the aggregator is killed, then a validator; the demo checks what has become of all."""
    process = begin_demo(tmp_path, "--seconds", "5", "--disorder", "0.3", "--chaos", "1.2")
    try:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    assert process.returncode == 0, output
    assert output.count("✓") == 10
    told = re.search(
        r"\d+ orders, \d+ late, \d+ posted again, (\d+) services killed: all is well", output
    )
    assert told is not None, output
    assert int(told[1]) >= 2


@pytest.mark.long("the demo again, on Apache Kafka")
def test_the_demo_runs_on_apache_kafka(tmp_path: Path) -> None:
    if reason := kafka_missing():
        pytest.skip(reason)
    with apache_kafka(tmp_path / "kafka", {"group.initial.rebalance.delay.ms": "0"}) as kafka:
        process = begin_demo(tmp_path, "--seconds", "2", "--bootstrap-server", kafka.bootstrap)
        try:
            output, _ = process.communicate(timeout=SECONDS_MAX)
        finally:
            stop(process)
    assert process.returncode == 0, output
    assert output.count("✓") == 10


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = begin_demo(tmp_path, "--seconds", "60")
    yield process
    stop(process)


@pytest.mark.long("the demo twice more; `make examples` runs it")
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
    eventually(
        lambda: not any(lives(child) for child in children),
        what="all children have ended",
        seconds_max=60,
    )


@pytest.mark.long("a whole test suite; `make examples` runs it")
@pytest.mark.slow("runs the whole test suite of the example")
def test_the_tests_of_the_project_pass(project_tests: subprocess.Popen[str]) -> None:
    output, _ = project_tests.communicate(timeout=SECONDS_MAX)
    assert project_tests.returncode == 0, output[-8000:]
    counted = re.search(r"\b(\d+) passed", output)
    written = sum(path.read_text().count("\ndef test_") for path in PROJECT.rglob("test_*.py"))
    assert counted is not None
    assert int(counted[1]) >= written > 40


SHELL_BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.long("types a whole document; `make examples` runs it")
def test_the_walk_in_the_readme(tmp_path: Path) -> None:
    """`By hand`: one block for each of two terminals, as written but for ports and folders."""
    text = (PROJECT / "README.md").read_text()
    services, orders, _ = SHELL_BLOCKS.findall(text[text.index("## By hand") :])
    kafka, http = free_port(), free_port()
    environment = dict(
        os.environ,
        PYTHONPATH=str(PROJECT / "src"),
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    )

    def begin_terminal(block: str) -> subprocess.Popen[str]:
        block = block.replace("9092", str(kafka)).replace("8080", str(http))
        for module in ("topics", "load", "services"):
            ours = f"-m orders.{module} --bootstrap-server 127.0.0.1:{kafka}"
            block = block.replace(f"-m orders.{module}", ours)
        block = block.replace("-m orders.load", f"-m orders.load --url http://127.0.0.1:{http}")
        return subprocess.Popen(
            ["bash", "-e", "-c", block],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    first = begin_terminal(services)
    try:
        assert first.stdout is not None
        assert any("running: orders" in line for line in first.stdout), "the services did not start"
        second = begin_terminal(orders)
        try:
            output, _ = second.communicate(timeout=SECONDS_MAX)
        finally:
            stop(second)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        stop(first)
    assert second.returncode == 0, output
    assert '"id": "my-1"' in output
    assert '"state": "VALIDATED"' in output
    assert output.count('"check":') == 3
    assert "my-1.eml" in output


def test_the_rules_in_the_documentation(tmp_path: Path) -> None:
    text = (PROJECT.parents[1] / "docs" / "orders.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "rules.py").write_text(block)
    environment = dict(os.environ, PYTHONPATH=str(PROJECT / "src"))
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "rules.py")],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.stdout == "orders VALIDATED\n", ran.stderr


def test_the_pipelines_are_right() -> None:
    from moldau.pipelines import Pipeline

    names = {path.stem for path in (PROJECT / "pipelines").glob("*.yaml")}
    assert names == {"revenue-per-minute", "orders-to-table", "orders-to-parquet"}
    for name in names:
        pipeline = Pipeline.load(PROJECT / "pipelines" / f"{name}.yaml")
        assert pipeline.name == name
        assert pipeline.kafka == {"isolation.level": "read_committed"}
