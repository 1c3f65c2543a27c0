"""Stores with headers: Kafka Streams' own test driver finds and writes the same, changelogs too."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from moldau.streams.stores.disk import open_state
from support.java import program
from support.processes import kafka_missing
from support.streams_headers import Run, Step, java_runs

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

CACHE_BYTES = (0, 10 * 1024 * 1024)
SEEDS = range(4)


def steps(seed: int, count: int = 40) -> list[Step]:
    """Keys from a few, tombstones, up to three headers, times that go back and forth."""
    chance = random.Random(f"headers {seed}")
    found: list[Step] = []
    time = 100
    for _ in range(count):
        time = max(0, time + chance.choice((0, 1, 3, 7, 25, 40, -5, -60)))
        names = chance.choices(("trace", "é", "", "trace"), k=chance.choice((0, 0, 1, 2, 3)))
        headers = tuple(
            (name, chance.choice((None, b"", b"7", b"x" * 100, b"\x00\xff"))) for name in names
        )
        key = chance.choice(("a", "b", "é", "", "ab"))
        value = chance.choice((None, None, "a", "abc", "b", "", "x" * 90))
        found.append((key, value, time, headers))
    return found


RUNS = [
    Run(place, caching, size, steps(seed))
    for place in ("memory", "disk")
    for caching in (False, True)
    for size in CACHE_BYTES
    for seed in SEEDS
]


@pytest.fixture(scope="module")
def theirs() -> list[list[list[str]]]:
    ended = subprocess.run(
        program("StreamsHeaders.java"),
        input="".join(f"{line}\n" for run in RUNS for line in run.commands()),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return list(java_runs(ended.stdout, RUNS))


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_the_same_headers(number: int, theirs: list[list[list[str]]], tmp_path: Path) -> None:
    run = RUNS[number]
    state = open_state(tmp_path, batch_bytes=0) if run.place == "disk" else None
    ours = run.ours(state=state)
    for step, expected, found in zip(run.steps, theirs[number], ours, strict=True):
        assert found == expected, step
