"""The use cases of examples/use_cases run to their end and find their own checks satisfied."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.elasticsearch import elasticsearch_missing
from support.postgres import postgres_missing
from support.processes import ROOT
from support.redis import redis_missing

FOLDER = ROOT / "examples" / "use_cases"
# What `make test` runs: one that kills its application, and one with a worker of Connect.
SHORT = {"card_fraud", "log_aggregation"}
LONG = "a broker, an application and often a service for each; `make examples` runs all"
MISSING = {
    "shop_search": (elasticsearch_missing,),
    "change_data_capture": (elasticsearch_missing, postgres_missing, redis_missing),
}
SECONDS_MAX = 400


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "stage")


def cases() -> Iterator[object]:
    for name in names():
        marks = [] if name in SHORT else [pytest.mark.long(LONG)]
        yield pytest.param(name, id=name, marks=marks)


@pytest.mark.long("whole programs; `make examples` runs them")
@pytest.mark.parametrize("name", list(cases()))
def test_a_use_case_runs(name: str, tmp_path: Path) -> None:
    for missing in MISSING.get(name, ()):
        if reason := missing():
            pytest.skip(reason)
    with subprocess.Popen(
        [sys.executable, str(FOLDER / f"{name}.py"), "--short"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        try:
            out, _ = program.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            # Not killed: it stops the services that it started, Spark among them.
            program.send_signal(signal.SIGINT)
            out, _ = program.communicate(timeout=60)
            pytest.fail(f"not done within {SECONDS_MAX} s:\n{out}")
    assert program.returncode == 0, out
    assert "\nok     " in out
    assert "FAILED" not in out
    assert list(tmp_path.iterdir()) == []


def test_every_use_case_is_listed() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert [name for name in names() if f"]({name}.py)" not in readme] == []
