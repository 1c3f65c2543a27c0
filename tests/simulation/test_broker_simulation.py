"""The whole broker in the simulator: a few seeds of every kind of client, the same each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moldau.sim.cluster_scenario import PROFILES, ClusterScenario, Profile
from moldau.sim.runner import Outcome, run_seed

BOTH = "for s in (2, 4): o = run_seed(s, scenario='broker'); print(o.digest, o.invariant)"


def run(profile: Profile, seed: int) -> Outcome:
    return run_seed(seed, scenario=lambda world: ClusterScenario(world, profile=profile))


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_every_invariant_holds(profile: Profile) -> None:
    for seed in (1, 2):
        outcome = run(profile, seed)
        assert outcome.invariant is None, f"seed {seed}: {outcome.invariant}: {outcome.detail}"
        assert outcome.virtual_s > 15


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
