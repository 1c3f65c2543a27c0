"""Which of a server's processes are ended, and which are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from moldau.spark.runtime.processes import end_idle_daemons, start_mark
from support.waiting import eventually

# Like Spark's: a leader, a daemon with a worker, one without, and a process of another kind.
SERVER = """
import subprocess, sys
def start(code, *words):
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process.pid
SLEEP = "print(flush=True); import time; time.sleep(600)"
FORK = "import os, time; os.fork(); print(flush=True); time.sleep(600)"
pids = start(SLEEP, "pyspark.daemon"), start(FORK, "pyspark.daemon"), start(SLEEP, "other")
print(*pids, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[tuple[int, list[int]]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        yield process.pid, [int(word) for word in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGKILL)


def test_only_daemons_without_workers_are_ended(server: tuple[int, list[int]]) -> None:
    leader, (idle, busy, other) = server
    assert end_idle_daemons(leader, seconds_min=3600) == []
    assert end_idle_daemons(leader, seconds_min=0) == [idle]
    eventually(lambda: start_mark(idle) is None, what="the daemon ends")
    assert start_mark(busy) is not None
    assert start_mark(other) is not None
    assert end_idle_daemons(leader, seconds_min=0) == []
