"""The course is data: complete, in order, and judged without a cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.learning.machine.checks import (
    Compacted,
    ConnectorRuns,
    GroupHasRead,
    HoldsRecords,
    LeaderMoved,
    PartitionSeen,
    SubjectHas,
    TopicHas,
    TopicSeen,
)
from moldau.learning.machine.course import COURSE, NAMES, find, number_of
from moldau.learning.machine.exercise import DEFAULT_PLACES, placed
from moldau.learning.machine.progress import Progress

ROOT = Path(__file__).parents[3]


def topic(*partitions: PartitionSeen, **configs: str) -> TopicSeen:
    return TopicSeen(partitions, configs)


ONE = PartitionSeen((1, 2, 3), (1, 2, 3))


@pytest.mark.parametrize(
    ("check", "seen", "missing"),
    [
        pytest.param(TopicHas(topic="t"), None, "no topic t", id="no topic"),
        pytest.param(TopicHas(topic="t", partitions=2), topic(ONE), "1 partition,", id="too few"),
        pytest.param(TopicHas(topic="t", replicas=3), topic(ONE), None, id="as asked"),
        pytest.param(
            TopicHas(topic="t", configs={"a": "1"}), topic(ONE, a="2"), "a=2, not 1", id="config"
        ),
        pytest.param(HoldsRecords(topic="t", count=2), 1, "1 record, not 2", id="too few records"),
        pytest.param(
            HoldsRecords(topic="t", count=1, values=("x",)), [("k", "y")], "no record 'x'", id="x"
        ),
        pytest.param(
            HoldsRecords(topic="t", count=1, pairs=(("k", "y"),)), [("k", "y")], None, id="pair"
        ),
        pytest.param(GroupHasRead(group="g", topic="t"), [0, 2], "2 records behind", id="lag"),
        pytest.param(GroupHasRead(group="g", topic="t"), None, "committed no", id="no commits"),
        pytest.param(LeaderMoved(topic="t"), topic(ONE), "not changed yet", id="same leader"),
        pytest.param(
            LeaderMoved(topic="t"),
            topic(PartitionSeen((1, 2, 3), (2,), 4)),
            "only 1 of 3",
            id="nodes are down",
        ),
        pytest.param(
            Compacted(topic="t", latest={"a": "2"}),
            (2, [("a", "1"), ("a", "2")]),
            "nothing is compacted yet",
            id="not compacted",
        ),
        pytest.param(Compacted(topic="t", latest={"a": "2"}), (2, [("a", "2")]), None, id="gone"),
        pytest.param(
            SubjectHas(subject="s", versions=2, field="f"), (1, "{}"), "1 version,", id="version"
        ),
        pytest.param(ConnectorRuns(name="c"), ["RUNNING", "FAILED"], "is FAILED", id="failed"),
    ],
)
def test_verdicts(check: Any, seen: Any, missing: str | None) -> None:
    verdict = check.verdict(seen)
    assert verdict is None if missing is None else missing in verdict


def test_progress_goes_on_to_what_is_open() -> None:
    progress = Progress().started("topics").checked("topics", passed=False)
    assert (progress.done, progress.state_of("topics")) == (frozenset(), "current")
    progress = progress.checked("topics", passed=True)
    assert progress.following(NAMES) == "console"
    progress = progress.started("perf").solved("perf").checked("perf", passed=True)
    assert progress.state_of("perf") == "solved for you"
    # After the last one it is the first that is open.
    assert progress.following(NAMES) == "console"
    assert Progress.from_json(progress.to_json()) == progress
    assert progress.forgotten("topics").following(NAMES) == "topics"
    everything = Progress(done=frozenset(NAMES))
    assert everything.following(NAMES) is None


@pytest.mark.parametrize("text", ["", "[]", '{"done": 3}'])
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Progress.from_json(text)


@pytest.mark.parametrize("exercise", COURSE, ids=lambda each: each.name)
def test_an_exercise_is_complete(exercise: Any) -> None:
    assert find(str(number_of(exercise))) is find(exercise.name) is exercise
    assert exercise.checks
    whole = placed(
        f"{exercise.text}{exercise.task}{exercise.hint}{exercise.solution}", DEFAULT_PLACES
    )
    # Every place has become an address.
    assert not re.search(r"\{[a-z_]+\}", whole)


def test_the_pages_are_those_of_the_course() -> None:
    command = [sys.executable, str(ROOT / "tools/generate_learn.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0
