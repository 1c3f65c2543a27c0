"""A newcomer's walk: the commands of README's pipeline section, as written, in an empty folder.

Then, with what is running, an example in Python.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import ROOT, free_port
from support.waiting import eventually

README = (ROOT / "README.md").read_text()


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    [found] = [each for each in blocks if containing in each]
    return str(found)


@pytest.fixture
def address() -> str:
    """Of the broker that stands for the one on 127.0.0.1:9092."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def environment(tmp_path: Path, address: str) -> dict[str, str]:
    """A shell in which `moldau` is the one under test, and only an address is set."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MOLDAU_BOOTSTRAP_SERVERS": address,
    }


@pytest.fixture
def commands(tmp_path: Path, environment: dict[str, str], address: str) -> Iterator[list[str]]:
    """The commands after the first, which runs in a terminal of its own until the end."""
    (tmp_path / "big-orders.yaml").write_text(block("yaml", "name: big-orders"))
    lines = block("sh", "moldau start --spark").splitlines()
    first, *rest = (line.partition("  #")[0] for line in lines)
    with subprocess.Popen(
        [*first.split(), "--port", address.rpartition(":")[2]],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as terminal:
        assert terminal.stdout is not None
        try:
            for line in terminal.stdout:
                if "is up" in line and "Spark" in line:
                    break
            yield rest
        finally:
            terminal.send_signal(signal.SIGINT)
            terminal.communicate(timeout=240)
    assert terminal.returncode == 0


@pytest.mark.long("types a whole document; the commands in it have tests of their own")
def test_the_walk(tmp_path: Path, environment: dict[str, str], commands: list[str]) -> None:
    def run(command: str) -> str:
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    create, start, produce, consume, listing = commands
    run(create)
    assert "big-orders is running" in run(start)
    run(produce)
    assert run(consume) == '{"id":"o1","amount":250.0}\n'
    eventually(
        lambda: re.search(r"big-orders\s+running\s.*\s0\s", run(listing)),
        what="the pipeline has no lag",
        seconds_max=240,
    )
    run(f"echo junk | {produce.partition('| ')[2]}")
    dead = consume.replace("big-orders", "orders-dead-letter")
    assert run(f"{dead} --formatter-property print.headers=true").endswith("\tjunk\n")

    *_, press, drill = run(f"python {ROOT}/examples/pipelines/machine_risk.py").splitlines()
    assert press == '{"machine":"press","risk":1.0}'
    assert drill == '{"machine":"drill","risk":1.0}'
