"""Cases of Kafka Streams 4.3's answers, run by `KafkaStreams` on a broker."""

from __future__ import annotations

from typing import Any

import pytest

from support import shared_vectors
from support.repeats import mostly_long
from support.streams_embedded import Case, Stage, comparable, expected, renamed
from unit.streams.vectors.program import Program

PER_FILE = 4


def chosen(*, single_input: bool) -> list[Any]:
    """Some cases of each file, spread over it."""
    folder = shared_vectors.FOLDER / "streams"
    found = []
    for path in sorted(folder.glob("*.json")):
        if path.stem in ("topologies", "wire"):
            continue
        cases = [case for case in shared_vectors.cases(f"streams/{path.name}") if usable(case)]
        cases = [case for case in cases if (len(inputs(case)) == 1) == single_input]
        step = max(1, len(cases) // PER_FILE)
        found += [
            pytest.param(case, id=f"{path.stem}: {case['name']}")
            for case in cases[::step][:PER_FILE]
        ]
    return found


MORE = "more cases; the test driver runs them all"


def usable(case: Case) -> bool:
    """Cases that end well, and need no wall clock of the test's."""
    steps = case.get("inputs") or ()
    return bool(steps) and not case.get("error") and all("topic" in step for step in steps)


def inputs(case: Case) -> list[str]:
    read = [
        op["topic"] for op in case["topology"] if op["op"] in ("stream", "table", "global_table")
    ]
    return list(dict.fromkeys(read))


def prepare(stage: Stage, case: Case) -> tuple[str, Case, Program, list[str]]:
    application_id = stage.new_id()
    case = renamed(case, f"{application_id}-")
    program = Program(case)
    sinks = list(dict.fromkeys(op["topic"] for op in case["topology"] if op["op"] == "to"))
    stage.create({*inputs(case), *sinks})
    return application_id, case, program, sinks


@pytest.mark.parametrize("case", mostly_long(chosen(single_input=True), MORE, keep=10))
def test_one_input_exactly_once(case: Case, stage: Stage) -> None:
    """All records are there at the start, or come while it runs: the cuts change nothing."""
    application_id, case, program, sinks = prepare(stage, case)
    steps = case["inputs"]
    cut = stage.random.randrange(len(steps) + 1)
    for step in steps[:cut]:
        stage.send(step)
    stage.producer.flush()
    wanted = expected(case, sinks)
    with stage.running(program.topology, application_id, commit_interval_ms=20):
        for step in steps[cut:]:
            stage.send(step)
        count = sum(map(len, wanted.values()))
        found = stage.outputs(program.topology, sinks, count)
    assert comparable(found, case) == comparable(wanted, case)


@pytest.mark.parametrize("case", mostly_long(chosen(single_input=False), MORE, keep=8))
def test_several_inputs_step_by_step(case: Case, stage: Stage) -> None:
    """Which topic is read first must be as in the case, so each step waits for the one before."""
    application_id, case, program, sinks = prepare(stage, case)
    wanted = expected(case, sinks)
    globals_ = [op["topic"] for op in case["topology"] if op["op"] == "global_table"]
    with stage.running(
        program.topology,
        application_id,
        commit_interval_ms=1,
        processing_guarantee="at_least_once",
        producer_linger_ms=0,
    ) as made:
        plan = made.instance.plan
        topics = {topic for each in plan.subtopologies for topic in each.inputs(())}
        for step in case["inputs"]:
            stage.send(step)
            stage.producer.flush()
            stage.wait_until_read(made, topics)
            stage.wait_for_globals(made, globals_)
        count = sum(map(len, wanted.values()))
        found = stage.outputs(program.topology, sinks, count)
    assert comparable(found, case) == comparable(wanted, case)
