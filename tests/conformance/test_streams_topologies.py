"""Random inputs on topologies of all kinds: Kafka Streams' own test driver writes the same bytes.

Compared are all records of all topics after each input: outputs, changelogs, repartition topics and
those of foreign-key joins; and the descriptions.
"""

from __future__ import annotations

import os
import random
import subprocess

import pytest

from support.java import program
from support.processes import kafka_missing
from support.streams_twins import PROGRAMS, Outcome, Step, commands, java_outcomes, our_outcome

#: `STREAMS_SEEDS=30` tries more.
SEEDS = range(int(os.environ.get("STREAMS_SEEDS", "4")))
CACHES = (0, 10 * 1024 * 1024)
RUNS = [(name, cache, seed) for name in PROGRAMS for cache in CACHES for seed in SEEDS]
pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


def steps(name: str, seed: int, count: int = 40) -> list[Step]:
    """Keys from a few, values with tombstones, times that go forth and sometimes back."""
    rng = random.Random(f"{name} {seed}")
    found: list[Step] = []
    time = rng.randrange(60)
    for _ in range(count):
        topic = rng.choice(("left", "right")) if _reads_right(name) else "left"
        key = rng.choice(("a", "b", "c", "é", "")) if rng.random() < 0.95 else None
        value = rng.choice(("a", "bc", "cd", "x", "ab,b,a", "é,é"))
        time = max(0, time + rng.choice((0, 1, 3, 7, 12, 25, 40, -5, -15, -60)))
        found.append((topic, key, None if rng.random() < 0.2 else value, time))
    return found


def _reads_right(name: str) -> bool:
    names = ("join", "table", "versioned", "foreign_key", "cogroup", "global", "suppressed")
    return any(each in name for each in names) and name not in ("derived_tables", "grouped_table")


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, int, int], Outcome]:
    lines = [line for run in RUNS for line in commands(run[0], run[1], steps(run[0], run[2]))]
    ended = subprocess.run(
        program("StreamsTopologies.java"),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return dict(zip(RUNS, java_outcomes(ended.stdout), strict=True))


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bytes(
    name: str, cache: int, answers: dict[tuple[str, int, int], Outcome]
) -> None:
    for seed in SEEDS:
        theirs = answers[name, cache, seed]
        ours = our_outcome(name, cache, steps(name, seed))
        assert ours.description == theirs.description
        for number, step in enumerate([None, *steps(name, seed)]):
            expected = theirs.written[number]
            assert ours.written[number] == expected, f"seed {seed}, step {number}: {step}"
