"""Services of the platform as processes of their own, for benchmarks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent


@contextmanager
def service(
    name: str, bootstrap_servers: str, *options: str
) -> Iterator[tuple[str, int, psutil.Process]]:
    """Host and port of a `moldau NAME start` that runs, and its process."""
    started = subprocess.Popen(
        [sys.executable, "-m", "moldau.cli", name, "start", "--port", "0",
         "--bootstrap-server", bootstrap_servers, *options],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    try:
        found = None
        assert started.stdout is not None
        while found is None:
            line = started.stdout.readline()
            if not line:
                raise RuntimeError(f"moldau {name} start ended with {started.wait()}")
            found = re.search(r"listening +\w+://([^:]+):(\d+)", line)
        yield found[1], int(found[2]), psutil.Process(started.pid)
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(30)
