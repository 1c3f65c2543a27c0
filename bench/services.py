"""Services of the platform as processes of their own, for benchmarks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


def store(name: str, rows: Sequence[object]) -> None:
    """Write a JSON file with the rows and the machine's load at the end, and say where."""
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{stamp}-{name}.json"
    load = os.getloadavg()[0]
    path.write_text(json.dumps({"load": load, "rows": rows}, indent=1))
    print(f"load {load:.1f}, written to {path}")


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
