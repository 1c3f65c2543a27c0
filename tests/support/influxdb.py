"""InfluxDB 1.8, built from its Go module (`make parts`), for a run of tests, on 127.0.0.1."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.ports import free_port
from support.waiting import eventually

PROGRAM = Path(__file__).parents[2] / ".cache/parts/bin/influxd"
_numbers = itertools.count(1)


def influxdb_missing() -> str | None:
    return None if PROGRAM.exists() else f"{PROGRAM} is not here: `make parts` builds it"


@dataclass(frozen=True)
class Influx:
    url: str

    def database(self) -> str:
        """The name of a new, empty database."""
        name = f"db{next(_numbers)}"
        self.query("", f"CREATE DATABASE {name}")
        return name

    def query(self, database: str, text: str) -> list[dict[str, Any]]:
        """The series of an answer, with times in nanoseconds."""
        words = urllib.parse.urlencode({"db": database, "q": text, "epoch": "ns"}).encode()
        with urllib.request.urlopen(f"{self.url}/query", data=words, timeout=10) as answer:
            series: list[dict[str, Any]] = json.load(answer)["results"][0].get("series", [])
        return series

    def write(self, database: str, *lines: str) -> None:
        words = urllib.parse.urlencode({"db": database, "precision": "ns"})
        data = "\n".join(lines).encode()
        urllib.request.urlopen(f"{self.url}/write?{words}", data=data, timeout=10).close()


@contextlib.contextmanager
def running_influxdb() -> Iterator[Influx]:
    folder = Path(tempfile.mkdtemp(prefix="moldau-influxdb-"))
    server = Influx(f"http://127.0.0.1:{free_port()}")
    file = folder / "influxdb.conf"
    file.write_text(
        f"""reporting-disabled = true
bind-address = "127.0.0.1:{free_port()}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "{server.url.removeprefix("http://")}"
"""
    )
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PROGRAM, "run", "-config", str(file)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(folder)},
        )
    try:
        eventually(
            lambda: process.poll() is None and answers(server),
            what=f"InfluxDB answers: {log.read_text()}",
        )
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def answers(server: Influx) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/ping", timeout=5) as answer:
            return bool(answer.status == 204)
    except (OSError, urllib.error.URLError):
        return False
