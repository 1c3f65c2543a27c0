"""The demo of examples/orders with everything: services, Spark, pipelines, checks, clean-up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.postgres import postgres_missing, running_postgres

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "orders"
SECONDS_MAX = 840


def of_folder(folder: Path) -> list[psutil.Process]:
    """Processes that work in this folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in part for part in process.info["cmdline"] or ())
    ]


@pytest.fixture
def database() -> Iterator[tuple[str, list[str]]]:
    """PostgreSQL where it is installed, else SQLite: its name and the demo's arguments."""
    if postgres_missing() is not None:
        yield "SQLite", []
        return
    with running_postgres() as postgres:
        address = f"postgresql://moldau@127.0.0.1:{postgres.port}/{postgres.database()}"
        yield "PostgreSQL", ["--database", address]


# On a busy machine Spark alone takes minutes to start.
@pytest.mark.long("the whole demo; its parts have tests in conformance/test_examples_orders.py")
@pytest.mark.timeout(SECONDS_MAX + 60)
def test_every_order_is_counted_and_loaded_once(
    tmp_path: Path, database: tuple[str, list[str]]
) -> None:
    name, arguments = database
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "orders.demo", "--plain", "--folder", str(folder),
               "--seconds", "5", "--rate", "30", "--disorder", "0.3", "--chaos", "2",
               *arguments]  # fmt: skip
    environment = dict(os.environ, PYTHONPATH=str(PROJECT / "src"))
    ran = subprocess.run(
        command,
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    checked = re.findall(r"✓ +(.*?)(?:  |$)", ran.stdout, re.MULTILINE)
    assert len(checked) == 13
    assert {
        "revenue per minute is the sum over the validated orders",
        f"{name} holds every order once",
        "Parquet holds every order once",
    } <= set(checked)
    assert "2 services killed: all is well" in ran.stdout
    assert of_folder(folder) == []
