"""Brokers under test that are forks: they start, end and die as processes of their own do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import forks
from support.processes import moldau
from support.waiting import eventually

MOLDAU = [sys.executable, "-m", "moldau.cli"]
SECONDS_MAX = 60.0


def test_a_command_has_its_words_environment_and_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(profiles))
    monkeypatch.chdir(tmp_path)
    for words in (["create", "here", "--set", "bootstrap.servers=127.0.0.1:1"], ["list"]):
        run = forks.start([*MOLDAU, "profile", *words], tmp_path / "log")
        assert isinstance(run, forks.Forked)
        assert run.wait(SECONDS_MAX) == 0, (tmp_path / "log").read_text()
    assert "here" in (tmp_path / "log").read_text()
    assert list(profiles.rglob("*"))


def test_a_failure_has_its_code_and_its_text(tmp_path: Path) -> None:
    run = forks.start([*MOLDAU, "nonsense"], tmp_path / "log")
    assert run.wait(SECONDS_MAX) == run.poll() == run.returncode == 1
    assert "nonsense" in (tmp_path / "log").read_text()
    # There is nobody to get it.
    run.kill()


def test_a_broker_stops_in_order_or_dies(tmp_path: Path) -> None:
    with moldau(tmp_path) as broker:
        first = broker.pid
        process = broker.process
        assert process is not None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        before = forks.ended_cpu_seconds()
        assert broker.stop() == 0
        assert forks.ended_cpu_seconds() > before
        broker.start()
        assert broker.pid != first
        broker.kill()
        assert broker.process is not None
        assert broker.process.returncode == -signal.SIGKILL


def test_what_python_reads_itself_needs_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    run = forks.start([*MOLDAU, "--version"], tmp_path / "log")
    assert isinstance(run, subprocess.Popen)
    assert run.wait(SECONDS_MAX) == 0


PROGRAM = """
import sys
from pathlib import Path
from support.processes import moldau
print(moldau(Path(sys.argv[1])).start().pid, flush=True)
sys.stdin.read()
"""


def test_brokers_end_with_tests_that_are_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        os.kill(pid, 0)
        tests.kill()
    eventually(lambda: not is_running(pid), what="the broker has ended")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_other_programs_are_no_forks(tmp_path: Path) -> None:
    sleeping = forks.start([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log")
    assert isinstance(sleeping, subprocess.Popen)
    sleeping.kill()
    sleeping.wait()
