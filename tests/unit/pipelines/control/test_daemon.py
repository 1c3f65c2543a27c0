"""The control loop's process ends when it is asked to, and nothing of it is left behind."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

from moldau.cli.brokers import start_with_spark
from moldau.pipelines import daemon
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.control.machine import events
from moldau.pipelines.control.machine.decisions import Reconciler
from moldau.pipelines.control.rounds import Published, Rounds
from moldau.pipelines.errors import PipelineError
from moldau.spark.runtime.server import ConnectServer
from support.waiting import eventually

NOBODY = "127.0.0.1:1"
#: Holds the lock and writes one heartbeat, as a loop that hangs does.
HANGING = """
import os, signal, sys, time
from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.spark.runtime.processes import start_mark
signal.signal(signal.SIGTERM, signal.SIG_IGN)
folder = ControlFolder(sys.argv[1])
lock = folder.lock()
pid = os.getpid()
folder.beat(Heartbeat(pid=pid, mark=start_mark(pid), at_ms=0, round_at_ms=0, started_at_ms=0,
                      bootstrap_servers="127.0.0.1:1", deployment="d"))
time.sleep(600)
"""
FAILING = """
import sys
from moldau.pipelines import daemon
from moldau.pipelines.control.shell import ControlLoop
def fail(loop):
    raise RuntimeError("planted")
ControlLoop.run = fail
daemon._FAULT_PAUSE_SECONDS = float(sys.argv[2])
sys.exit(daemon.main([sys.argv[1]]))
"""


@contextmanager
def program(text: str, *words: object) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", text, *map(str, words)]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_signal_in_a_round_does_not_make_the_loop_wait_for_ever(tmp_path: Path) -> None:
    ending = threading.Event()
    rounds = Rounds(
        ControlFolder(tmp_path),
        {"bootstrap.servers": NOBODY},
        server=None,
        registry=None,  # type: ignore[arg-type]
        reconciler=Reconciler(Random(1), str),
        ending=ending,
        published=Published(round_at_ms=0),
    )

    def slow(number: int, frame: FrameType | None) -> None:
        # As on a busy machine: when the handler is done the time of the wait is over.
        time.sleep(0.5)

    rescue = threading.Timer(30, rounds._events.put, [events.Tick()])
    rescue.start()
    before = signal.signal(signal.SIGALRM, slow)
    began_s = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert not rounds._take_all()
        assert time.monotonic() - began_s < 20
    finally:
        signal.signal(signal.SIGALRM, before)
        rescue.cancel()
        rounds.close()


def test_a_loop_that_does_not_end_is_killed_and_that_is_raised(tmp_path: Path) -> None:
    with program(HANGING, tmp_path):
        eventually(lambda: daemon.status(tmp_path).pid is not None, what="a loop that hangs")
        with pytest.raises(PipelineError, match=r"did not end in 0\.5 s and was killed"):
            daemon.stop(tmp_path, timeout=0.5)
        assert not daemon.status(tmp_path).alive


def test_a_second_signal_kills_a_loop_that_does_not_end(tmp_path: Path) -> None:
    """`moldau start --spark` is interrupted while it waits for the loop."""

    class StoppedBroker:
        def kill(self) -> None: ...

        def stop(self) -> None: ...

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with program(HANGING, tmp_path):
        eventually(lambda: daemon.status(tmp_path).pid is not None, what="a loop that hangs")
        # As where it has started Spark: what stops it is imported, which may take longer.
        importlib.import_module("moldau.cli.pipelines.spark")
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            in_order = start_with_spark._stop(ConnectServer(tmp_path), StoppedBroker())  # type: ignore[arg-type]
        finally:
            signal.signal(signal.SIGALRM, before)
        assert not in_order
        assert not daemon.status(tmp_path).alive


def test_a_start_that_is_interrupted_leaves_no_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop has no lock yet, so that `stop` would not find it."""
    spawned: list[subprocess.Popen[bytes]] = []

    def interrupted(_folder: Any, process: subprocess.Popen[bytes], _deadline: float) -> None:
        spawned.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(daemon, "_wait_for_beat", interrupted)
    with pytest.raises(KeyboardInterrupt):
        daemon.ensure_running(tmp_path, NOBODY)
    assert [process.poll() for process in spawned] == [-signal.SIGKILL]


def test_a_failed_loop_that_is_stopped_does_not_start_again(tmp_path: Path) -> None:
    folder = ControlFolder(tmp_path)
    folder.set_cluster({"bootstrap.servers": NOBODY})
    with program(FAILING, tmp_path, 600) as process:
        eventually(lambda: has_failed(folder), what="the planted fault")
        process.terminate()
        assert process.wait(60) == 0
    assert not folder.is_locked()


def test_a_failed_loop_holds_its_lock_while_it_starts_again(tmp_path: Path) -> None:
    """A stop that finds the lock free takes the loop for ended."""
    folder = ControlFolder(tmp_path)
    folder.set_cluster({"bootstrap.servers": NOBODY})
    with program(FAILING, tmp_path, 0.1) as process:
        eventually(lambda: has_failed(folder), what="the planted fault")
        locked: list[bool] = []

        def runs_again() -> bool:
            locked.append(folder.is_locked())
            return folder.heartbeat() is not None

        eventually(runs_again, what="a heartbeat of the loop that started again")
        assert all(locked)
        assert daemon.status(tmp_path).pid == process.pid


def has_failed(folder: ControlFolder) -> bool:
    return folder.output.exists() and "planted" in folder.output.read_text()
