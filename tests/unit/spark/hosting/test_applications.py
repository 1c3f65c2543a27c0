"""Slots, identities and reports of hosted applications."""

from __future__ import annotations

import pytest

from moldau.spark.hosting.machine.application import HostedApplication, process_id
from moldau.spark.hosting.machine.beats import InstanceBeat, InstanceState, summary_of
from moldau.spark.hosting.machine.slots import refusal, slots_of
from moldau.spark.runtime.errors import SparkRuntimeError


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local", 1),
        ("local[*]", 2),
        ("local[16,4]", 16),
        ("local[3]", 3),
        ("local-cluster[2,3,1024]", 6),
        ("spark://127.0.0.1:7077", None),
    ],
)
def test_slots_of_a_master(master: str, slots: int | None) -> None:
    assert slots_of(master, cores=2) == slots


def test_slots_of_a_cluster_are_its_limit() -> None:
    assert slots_of("spark://127.0.0.1:7077", cores=2, cores_max=12) == 12


@pytest.mark.parametrize(
    ("wanted", "total", "taken", "fits"),
    [
        pytest.param(4, 6, {}, True, id="just enough"),
        pytest.param(5, 6, {}, False, id="micro-batches keep two"),
        pytest.param(3, 4, {}, True, id="of few slots micro-batches keep one"),
        pytest.param(2, 6, {"other": 3}, False, id="another application has them"),
        pytest.param(4, 6, {"app": 4}, True, id="its own are free when it starts again"),
        pytest.param(500, None, {}, True, id="not known"),
    ],
)
def test_instances_that_do_not_fit_are_refused(
    wanted: int, total: int | None, taken: dict[str, int], fits: bool
) -> None:
    assert (refusal("app", wanted, total=total, taken=taken) is None) is fits


def test_a_refusal_says_who_has_the_slots_and_what_to_do() -> None:
    found = refusal("app", 4, total=6, taken={"words": 3})
    assert found is not None
    message, hint = found
    assert message == (
        "app: 4 instances need a slot each. Spark has 6, of which 1 is free (words uses 3) and 2 "
        "are kept for micro-batches"
    )
    assert "moldau spark start --master 'local[9,4]'" in hint


def test_an_identity_is_that_of_the_application_and_the_number() -> None:
    assert process_id("a", 1) == process_id("a", 1)
    assert len({process_id("a", 1), process_id("a", 2), process_id("b", 1)}) == 3


@pytest.mark.parametrize("program", ["module", ":run", "module:not a name"])
def test_a_program_that_cannot_be_one_is_refused(program: str) -> None:
    with pytest.raises(SparkRuntimeError, match=r"package\.module:function"):
        HostedApplication(name="a", program=program, instances=1)


def beat(instance: int, state: InstanceState, **fields: int | str) -> InstanceBeat:
    known = {"run": "r", "pid": 1, "mark": "m", "at_ms": 100_000, "since_ms": 0} | fields
    return InstanceBeat(instance=instance, state=state, **known)  # type: ignore[arg-type]


def test_reports_together() -> None:
    beats = [
        beat(0, InstanceState.RUNNING),
        beat(1, InstanceState.WAITING, failures=3, error="no topic", error_at_ms=99_000),
        beat(2, InstanceState.RUNNING, at_ms=60_000),
        beat(3, InstanceState.RUNNING, run="an earlier one"),
    ]
    assert [InstanceBeat.from_json(each.to_json()) for each in beats] == beats
    summary = summary_of(beats, instances=4, run="r", now_ms=100_000)
    assert (summary.running, summary.failures) == (1, 3)
    assert summary.error == "instance 1: no topic"
    assert summary.activity == (
        "1 of 4 instances run, 1 failing, no report from 2 for 30 s, 1 not started"
    )
