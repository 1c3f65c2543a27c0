"""What CI runs again, and what stays failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.nested_pytest import plain_environment
from support.waiting import eventually

CROWD = Path(__file__).parents[1] / "support" / "crowd.py"
#: Each fails the first time; with BROKEN set there is one that always does.
TESTS = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(int(os.environ["UNLUCKY"])))
def test_unlucky(number):
    seen = Path(f"{Path(__file__).stem}.seen{number}")
    if not seen.exists():
        seen.touch()
        pytest.fail("no core was free")

def test_maybe_broken():
    assert "BROKEN" not in os.environ

def test_good():
    pass
"""


@pytest.mark.parametrize(
    ("environment", "files", "code", "named"),
    [
        pytest.param({"CI": "true", "UNLUCKY": "1"}, 3, 0, 3, id="a few that pass alone"),
        pytest.param({"CI": "true", "UNLUCKY": "5"}, 1, 0, 5, id="many of one file"),
        pytest.param({"CI": "true", "UNLUCKY": "1"}, 4, 1, 0, id="too many for chance"),
        pytest.param({"CI": "true", "UNLUCKY": "1", "BROKEN": ""}, 1, 1, 0, id="one fails again"),
        pytest.param({"UNLUCKY": "1"}, 1, 1, 0, id="on a developer's machine"),
    ],
)
def test_what_failed_is_run_again_alone(
    tmp_path: Path, environment: dict[str, str], files: int, code: int, named: int
) -> None:
    for number in range(files):
        (tmp_path / f"test_it{number}.py").write_text(TESTS)
    run = subprocess.run(
        [sys.executable, CROWD, "-q", "--rootdir=."],
        cwd=tmp_path,
        env=plain_environment() | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == code, run.stdout
    chance = run.stdout.partition("FAILED BY CHANCE")[2]
    assert chance.count("test_unlucky") == named


WAITING = """
import time
from pathlib import Path
import pytest

@pytest.fixture
def server():
    Path("up").touch()
    yield
    Path("down").touch()

def test_it_waits(server):
    time.sleep(3600)
"""


def test_what_tests_started_is_stopped_when_the_run_is_terminated(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(WAITING)
    run = subprocess.Popen(
        [sys.executable, CROWD, "-q", "--rootdir=."], cwd=tmp_path, env=plain_environment()
    )
    eventually((tmp_path / "up").exists, what="the server is up")
    run.terminate()
    assert run.wait(60) != 0
    assert (tmp_path / "down").exists()
