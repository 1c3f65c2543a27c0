"""Values, JSON and transforms beside Kafka's own classes, on random cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.connect_answers import comparable, our_answer
from support.connect_random import RandomCases
from support.java import run_program
from support.processes import kafka_missing

COUNT = 1500
SEEDS = [1, pytest.param(2, marks=pytest.mark.long("more of the same"))]
#: Python's times end there, so that we refuse what Kafka takes.
NO_SUCH_TIME = "not in the years 1 to 9999"


@pytest.mark.skipif(kafka_missing() is not None, reason="Apache Kafka's classes are not here")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_cases_are_answered_as_kafka_answers_them(tmp_path: Path, seed: int) -> None:
    cases = RandomCases(seed)
    given = [cases.next() for _ in range(COUNT)]
    file = tmp_path / "cases"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in given))
    lines = run_program("ConnectAnswers.java", str(file)).split("\n")[:-1]
    assert len(lines) == COUNT
    wrong = []
    for case, line in zip(given, lines, strict=True):
        theirs, ours = json.loads(line), our_answer(case)
        is_known = NO_SUCH_TIME in ours.get("error", "")
        if comparable(theirs) != comparable(ours) and not is_known:
            wrong.append({"case": case, "Kafka": theirs, "Moldau": ours})
    assert not wrong, "\n".join(json.dumps(each) for each in wrong[:5])
