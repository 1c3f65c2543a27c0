"""Running seeds: one gives an outcome, many give a summary."""

from __future__ import annotations

import logging
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from moldau.sim.cluster_scenario import ClusterScenario
from moldau.sim.logs.scenario import LogScenario
from moldau.sim.metadata import MetadataScenario
from moldau.sim.quorum import QuorumScenario
from moldau.sim.replicated_scenario import ReplicatedScenario
from moldau.sim.streams.scenario import streams_scenario
from moldau.sim.world import Invariant, Violation, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one seed went. Two runs of one seed have equal outcomes."""

    seed: int
    digest: str
    steps: int
    virtual_s: float
    faults: Counter[str]
    invariant: str | None = None
    detail: str = ""
    last_steps: tuple[str, ...] = ()


@dataclass(slots=True)
class Summary:
    seeds: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.virtual_s += outcome.virtual_s
        self.faults += outcome.faults
        if outcome.invariant is not None:
            self.failures.append(outcome)


class Scenario(Protocol):
    async def run(self) -> None: ...


ScenarioFactory: TypeAlias = Callable[[World], Scenario]

#: By name. The number of a seed chooses one of `_TURNS`.
SCENARIOS: dict[str, ScenarioFactory] = {
    "metadata": MetadataScenario,
    "logs": LogScenario,
    "broker": ClusterScenario,
    "quorum": QuorumScenario,
    "cluster": ReplicatedScenario,
    "streams": streams_scenario,
}
_TURNS = ("metadata", "logs", "broker", "quorum", "cluster", "streams")


def scenario_of(seed: int) -> str:
    return _TURNS[seed % len(_TURNS)]


def run_seed(
    seed: int,
    tell: Callable[[str], None] | None = None,
    *,
    scenario: ScenarioFactory | str | None = None,
) -> Outcome:
    """Run one seed to its end or to the first invariant that does not hold.

    Without `scenario` the seed chooses one.
    """
    world = World(seed, tell=tell)
    if scenario is None:
        scenario = scenario_of(seed)
    factory = SCENARIOS[scenario] if isinstance(scenario, str) else scenario
    failed: Violation | None = None
    disabled = logging.root.manager.disable
    # What the code under test logs is expected here and would bury the report.
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # Whoever is killed between making a coroutine and awaiting it never does.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            world.loop.run(factory(world).run())
    except Violation as violation:
        failed = violation
    except Exception as error:
        failed = Violation(Invariant.NO_SURPRISE, f"{error!r} at {_where(error)}")
    finally:
        logging.disable(disabled)
    if failed is not None:
        world.note(f"VIOLATED {failed}")
    return Outcome(
        seed=seed,
        digest=world.trace.digest,
        steps=world.steps,
        virtual_s=world.loop.time(),
        faults=world.faults,
        invariant=None if failed is None else failed.invariant.value,
        detail="" if failed is None else failed.detail,
        last_steps=tuple(world.trace.last),
    )


def _where(error: BaseException) -> str:
    """The innermost place that is not of the simulator."""
    places = traceback.extract_tb(error.__traceback__)
    foreign = [place for place in places if "/sim/" not in place.filename] or places
    return f"{foreign[-1].filename}:{foreign[-1].lineno}" if foreign else "nowhere"


def run_seeds(
    seeds: Iterable[int], *, jobs: int = 1, scenario: str | None = None
) -> Iterator[Outcome]:
    """Outcomes in the order of the seeds."""
    run = partial(run_seed, scenario=scenario)
    if jobs <= 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(run, seeds, chunksize=4)
