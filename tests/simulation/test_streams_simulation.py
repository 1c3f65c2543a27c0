"""Applications of Streams in the simulator: the result is right, and the same each time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from moldau.sim.runner import run_seed
from moldau.sim.streams.application import INPUT, OVERALL, WITHIN, bucket, check_result
from moldau.sim.streams.scenario import streams_scenario
from moldau.sim.world import Violation

TOLD = "o = run_seed(1, scenario='streams'); print(o.digest, o.invariant)"
GROUPS = {"classic": {"group.protocol": "classic"}, "streams": {"group.protocol": "streams"}}


def check_seed(seed: int, *, replicated: bool, settings: Mapping[str, Any] | None = None) -> None:
    outcome = run_seed(
        seed,
        scenario=lambda world: streams_scenario(world, replicated=replicated, settings=settings),
    )
    assert outcome.invariant is None, f"seed {seed}: {outcome.invariant}: {outcome.detail}"
    assert any(kind.startswith("instance ") for kind in outcome.faults)


@pytest.mark.parametrize("settings", GROUPS.values(), ids=GROUPS)
def test_the_result_is_that_of_a_recomputation(settings: Mapping[str, Any]) -> None:
    check_seed(2, replicated=False, settings=settings)


@pytest.mark.parametrize("seed", [9006, 9019, 9081])
def test_a_static_member_that_starts_again_while_tasks_change_hands(seed: int) -> None:
    # It came back to the assignment in which it had tasks to give up, and nobody got them.
    outcome = run_seed(seed, scenario="streams")
    assert outcome.invariant is None, outcome.detail


@pytest.mark.long("seconds of computing per seed")
@pytest.mark.parametrize("seed", range(1, 6))
def test_it_is_on_three_nodes(seed: int) -> None:
    check_seed(seed, replicated=True)


@pytest.mark.long("the same seed twice, in processes of their own")
def test_a_seed_tells_the_same_story_in_another_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", f"from moldau.sim.runner import run_seed\n{TOLD}"],
            env={"PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(told) == 1


def test_the_check_tells_a_wrong_result_from_a_right_one() -> None:
    values = [b"producer/0", b"producer/1", b"producer/2", b"producer/3"]
    names = [bucket(value.decode()) for value in values]
    inputs = {(INPUT, 0): values}

    def outputs(prefix: str) -> list[bytes]:
        return [
            f"{prefix}{name}|{names[: place + 1].count(name)}".encode()
            for place, name in enumerate(names)
        ]

    right = {WITHIN: outputs("0."), OVERALL: outputs("")}
    check_result(inputs, right, every_update=True)
    for wrong in ([*right[OVERALL], right[OVERALL][0]], right[OVERALL][1:]):
        with pytest.raises(Violation):
            check_result(inputs, {**right, OVERALL: wrong}, every_update=True)
