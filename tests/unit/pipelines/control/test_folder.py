"""What a deployment folder holds: lock, heartbeat, settings and logs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.pipelines import daemon
from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.pipelines.control.logs import FILES_MAX, PipelineLogs, follow, is_headline, tail
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import State, StatusRecord

BEAT = Heartbeat(
    pid=1,
    mark="m",
    at_ms=100_000,
    round_at_ms=100_000,
    started_at_ms=0,
    bootstrap_servers="127.0.0.1:9092",
    deployment="d",
    pipelines={
        "a": StatusRecord(name="a", state=State.RUNNING).to_json(),
        "odd": {"state": "dancing"},
    },
)


def test_one_has_the_lock_and_looking_does_not_take_it(tmp_path: Path) -> None:
    folder = ControlFolder(tmp_path / "new")
    assert not folder.is_locked()
    lock = folder.lock()
    assert lock is not None
    assert folder.is_locked()
    assert folder.lock() is None
    lock.release()
    assert not folder.is_locked()


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    program = (
        "import sys; from moldau.pipelines.control.folder import ControlFolder; "
        "lock = ControlFolder(sys.argv[1]).lock(); print('has it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"has it\n"
        assert ControlFolder(tmp_path).is_locked()
        process.kill()
        process.wait()
        assert not ControlFolder(tmp_path).is_locked()


def test_a_heartbeat_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = ControlFolder(tmp_path)
    assert folder.heartbeat() is None
    folder.beat(BEAT)
    found = folder.heartbeat()
    assert found is not None
    assert replace(found, pipelines={}) == replace(BEAT, pipelines={})
    assert found.statuses() == {"a": StatusRecord(name="a", state=State.RUNNING)}
    (tmp_path / "control.json").write_text("{")
    assert folder.heartbeat() is None


def test_a_loop_that_does_not_go_round_hangs(tmp_path: Path) -> None:
    assert not daemon.DaemonStatus(True, BEAT, 0).hangs
    assert daemon.DaemonStatus(True, replace(BEAT, round_at_ms=0), 0).hangs
    assert not daemon.DaemonStatus(False, replace(BEAT, round_at_ms=0), 0).hangs
    assert daemon.DaemonStatus(False, BEAT, 0).pid is None


def test_a_deployment_keeps_its_id_and_settings(tmp_path: Path) -> None:
    folder = ControlFolder(tmp_path / "d")
    first = folder.deployment
    assert not folder.keep_server
    folder.set_keep_server(True)
    assert ControlFolder(tmp_path / "d").deployment == first
    assert ControlFolder(tmp_path / "d").keep_server
    assert ControlFolder(tmp_path / "e").deployment != first


def test_only_its_owner_reads_how_to_reach_the_cluster(tmp_path: Path) -> None:
    folder = ControlFolder(tmp_path)
    folder.set_cluster({"bootstrap.servers": "h:1", "sasl.jaas.config": "secret"})
    assert folder.cluster == {"bootstrap.servers": "h:1", "sasl.jaas.config": "secret"}
    assert (tmp_path / "cluster.json").stat().st_mode & 0o077 == 0


def test_a_loop_of_another_cluster_is_not_taken_for_this_one_s(tmp_path: Path) -> None:
    folder = ControlFolder(tmp_path)
    folder.set_cluster({"bootstrap.servers": "127.0.0.1:9092"})
    lock = folder.lock()
    assert lock is not None
    with pytest.raises(PipelineError, match="works with the cluster at"):
        daemon.ensure_running(tmp_path, "elsewhere:9092")
    lock.release()
    assert not daemon.stop(tmp_path)


# Logs.


def logs_in(folder: Path, size_max: int = 1000) -> PipelineLogs:
    return PipelineLogs(folder, size_max=size_max, now=lambda: 1794822755.8419)


def test_an_entry_has_its_time_and_its_further_lines_are_indented(tmp_path: Path) -> None:
    logs = logs_in(tmp_path)
    logs.write("a", "ERROR", "it failed\n  at x\nat y\n")
    lines = list(tail(logs.path("a"), None))
    assert lines == [
        "2026-11-16T09:52:35.841Z ERROR it failed",
        "      at x",
        "    at y",
    ]
    assert [is_headline(line) for line in lines] == [True, False, False]


def test_logs_have_a_size_and_the_last_lines_are_kept(tmp_path: Path) -> None:
    logs = logs_in(tmp_path)
    for number in range(500):
        logs.write("a", "INFO", f"line {number}")
    files = sorted(tmp_path.iterdir())
    assert len(files) == FILES_MAX
    assert all(file.stat().st_size <= 1000 for file in files)
    last = [line.split()[-1] for line in tail(logs.path("a"), 30)]
    assert last == [str(number) for number in range(470, 500)]
    logs.remove("a")
    assert list(tmp_path.iterdir()) == []
    assert list(tail(logs.path("a"), None)) == []


def test_following_loses_nothing_when_the_file_is_replaced(tmp_path: Path) -> None:
    logs = logs_in(tmp_path)
    logs.write("a", "INFO", "before 0")
    written = iter(range(1, 100))

    def write_more() -> bool:
        """Called between two looks at the file; the end comes when all is written."""
        for number in (next(written, None) for _ in range(5)):
            if number is None:
                return True
            logs.write("a", "INFO", f"line {number}")
        return False

    lines = [line.split()[-1] for line in follow(logs.path("a"), None, until=write_more)]
    assert lines == [str(number) for number in range(100)]


def test_following_begins_before_there_is_a_file(tmp_path: Path) -> None:
    logs = logs_in(tmp_path)
    rounds = iter(range(3))

    def until() -> bool:
        if next(rounds) == 1:
            logs.write("a", "INFO", "here")
            return False
        return (tmp_path / "a.log").exists()

    assert [line.split()[-1] for line in follow(logs.path("a"), 10, until=until)] == ["here"]
