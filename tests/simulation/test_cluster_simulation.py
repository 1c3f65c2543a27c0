"""Quorums and whole clusters in the simulator: a few seeds of each kind, the same each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moldau.sim.cluster import APART, THREE, THREE_STATIC, Layout
from moldau.sim.cluster_scenario import LOGS, PIPELINE, PROFILES, Profile
from moldau.sim.replicated_scenario import ReplicatedScenario
from moldau.sim.runner import Outcome, run_seed

BOTH = (
    "for name, seed in (('quorum', 2), ('cluster', 2)):\n"
    "    outcome = run_seed(seed, scenario=name)\n"
    "    print(outcome.digest, outcome.invariant)"
)


def check(outcome: Outcome) -> None:
    assert outcome.invariant is None, f"{outcome.invariant}: {outcome.detail}"
    assert outcome.virtual_s > 10
    assert outcome.faults


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_clients_of_every_kind_use_a_cluster(profile: Profile) -> None:
    check(run_seed(1, scenario=lambda world: ReplicatedScenario(world, profile=profile)))


@pytest.mark.parametrize(
    ("layout", "profile"),
    [(THREE, PIPELINE), (THREE_STATIC, LOGS), (APART, LOGS)],
    ids=lambda value: value.name,
)
def test_clusters_of_every_layout(layout: Layout, profile: Profile) -> None:
    check(
        run_seed(
            2,
            scenario=lambda world: ReplicatedScenario(
                world, profile=profile, layout=layout, operator=True
            ),
        )
    )


def test_any_power_may_fail_where_everything_is_synced_first() -> None:
    weights = {"power failure of all": 10, "power failure": 5, "isolation": 5, "slow disk": 5}
    outcome = run_seed(
        3,
        scenario=lambda world: ReplicatedScenario(
            world, profile=LOGS, flushed=True, weights=weights, operator=False
        ),
    )
    check(outcome)
    assert outcome.faults["power failure of all"] > 0


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_quorum_commits_what_it_says(seed: int) -> None:
    check(run_seed(seed, scenario="quorum"))


def test_a_seed_tells_the_same_story_in_another_process() -> None:
    """Hashes of strings differ between processes; nothing may depend on them."""
    told = {
        subprocess.run(
            [sys.executable, "-c", f"from moldau.sim.runner import run_seed\n{BOTH}"],
            env={"PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(told) == 1
    assert "None" in told.pop()
