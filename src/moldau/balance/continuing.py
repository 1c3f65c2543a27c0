"""Balance a cluster again and again, a little at a time, until stopped.

Invariants: nothing moves while partitions lack replicas (those on drained brokers do not count,
such a broker may be down) or others reassign; each round is within its bounds, and the next one
begins `interval_s` after it began at the earliest; drained brokers receive nothing, in any round;
an error ends a round, not the run; who cancels a round's reassignments ends the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from moldau.balance.executing import Progress, carry_out
from moldau.balance.machine.continuous import Bounds, Chosen, Rounds
from moldau.balance.machine.model import Cluster, Constraints, Impossible, Reassignment
from moldau.balance.machine.planner import TOLERANCE, plan
from moldau.balance.machine.report import bytes_text
from moldau.balance.reading import read_cluster, read_load
from moldau.client.admin import Admin
from moldau.client.errors import KafkaError

__all__ = ["RunSettings", "Stopped", "balance_on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    interval_s: float = 300.0
    bounds: Bounds = field(default_factory=Bounds)
    throttle: int | None = None
    batch: int = 10
    tolerance: float = TOLERANCE
    drained: frozenset[int] = frozenset()
    """Brokers that are emptied and kept empty, while the others are balanced."""
    pages: Sequence[str] = ()
    sample_s: float = 5.0
    rounds_max: int | None = None
    seconds_max: float = float("inf")


class Stopped(Exception):
    """Somebody cancelled what this run had started; the message says what."""


def balance_on(
    admin: Admin, settings: RunSettings, *, stop: threading.Event, say: Callable[[str], None]
) -> int:
    """Blocks until `stop` is set, or the rounds or the time are over; how many rounds moved
    something. Raises Stopped."""
    rounds = Rounds(settings.bounds)
    deadline = time.monotonic() + settings.seconds_max
    moved = number = 0
    drains = _Drains(settings.drained, say)
    while not stop.is_set() and time.monotonic() < deadline:
        began = time.monotonic()
        number += 1
        try:
            moved += _round(admin, settings, rounds, drains, stop=stop, say=say, deadline=deadline)
        except (KafkaError, Impossible) as error:
            say(f"This round failed, the next one tries again: {error}")
        if number == settings.rounds_max:
            break
        left = min(began + settings.interval_s, deadline) - time.monotonic()
        stop.wait(max(0.0, left))
    return moved


def _round(
    admin: Admin,
    settings: RunSettings,
    rounds: Rounds,
    drains: _Drains,
    *,
    stop: threading.Event,
    say: Callable[[str], None],
    deadline: float,
) -> bool:
    """Whether something moved."""
    reason = _waits_for(admin, settings.drained)
    if reason is not None:
        say(f"Nothing moves: {reason}.")
        return False
    measured = read_load(settings.pages, settings.sample_s, stop) if settings.pages else None
    if stop.is_set():
        return False
    cluster = read_cluster(admin, measured)
    limits = drains.constraints(cluster)
    planned = plan(cluster, limits, settings.tolerance)
    chosen = rounds.choose(
        cluster, planned, time.monotonic(), constraints=limits, tolerance=settings.tolerance
    )
    say(_described(chosen))
    if not chosen.reassignments:
        return False
    outcome = carry_out(
        admin,
        chosen.reassignments,
        throttle=settings.throttle,
        batch=settings.batch,
        seconds_max=max(0.0, deadline - time.monotonic()),
        stop=stop,
        report=lambda progress: _report(progress, say),
    )
    for line in outcome.skipped:
        say(f"Skipped: {line}")
    there = _there(admin, chosen.reassignments)
    rounds.moved(there, time.monotonic())
    if len(there) < outcome.done:
        raise Stopped(
            f"{outcome.done - len(there)} partitions are not where they were moved to: somebody "
            "cancelled the reassignments (moldau balance stop), so this run ends"
        )
    return bool(there)


class _Drains:
    """The brokers that are drained, and what was said about each."""

    def __init__(self, brokers: Collection[int], say: Callable[[str], None]) -> None:
        self._brokers = frozenset(brokers)
        self._say = say
        self._said: dict[int, str] = {}

    def constraints(self, cluster: Cluster) -> Constraints:
        """A broker that has left the cluster after it was drained is no error."""
        held = {each for partition in cluster.partitions for each in partition.replicas}
        known = {each.id for each in cluster.brokers}
        for broker in sorted(self._brokers):
            if broker not in known:
                words = f"Broker {broker} is not in the cluster and holds nothing."
            elif broker in held:
                words = f"Broker {broker} is being drained."
            else:
                words = f"Broker {broker} is drained and holds nothing: it may be stopped."
            if self._said.get(broker) != words:
                self._said[broker] = words
                self._say(words)
        return Constraints(drained=self._brokers & known, others_too=True)


def _waits_for(admin: Admin, drained: Collection[int]) -> str | None:
    """What keeps replicas from being moved now."""
    ongoing = admin.list_partition_reassignments()
    if ongoing:
        return f"{len(ongoing)} partitions are being reassigned by others"
    names = sorted(admin.list_topics(list_internal=True))
    described = admin.describe_topics(names, check=False).values_by_key if names else {}
    lacking = sum(
        not {node.id for node in each.replicas} <= {node.id for node in each.isr} | {*drained}
        for topic in described.values()
        for each in topic.partitions
    )
    return f"{lacking} partitions have replicas that are not in sync" if lacking else None


def _there(admin: Admin, wanted: Sequence[Reassignment]) -> list[Reassignment]:
    """Those whose partitions are where they should be."""
    names = sorted({each.topic for each in wanted})
    described = admin.describe_topics(names, check=False).values_by_key
    found = {
        (topic.name, each.partition): tuple(node.id for node in each.replicas)
        for topic in described.values()
        for each in topic.partitions
    }
    # A topic that has been deleted meanwhile needs no move.
    return [
        each for each in wanted if found.get((each.topic, each.partition), each.after) == each.after
    ]


def _described(chosen: Chosen) -> str:
    parts = []
    if chosen.cooling:
        parts.append(f"{chosen.cooling} moved a short time ago and stay")
    if chosen.too_large:
        parts.append(f"{chosen.too_large} are larger than a round may copy")
    if chosen.later:
        parts.append(f"{chosen.later} are left for later rounds")
    rest = f" ({', '.join(parts)})" if parts else ""
    if not chosen.reassignments:
        return f"Nothing to move now{rest}."
    return (
        f"{len(chosen.reassignments)} partitions move, "
        f"{bytes_text(chosen.bytes_moved)} to copy{rest}."
    )


def _report(progress: Progress, say: Callable[[str], None]) -> None:
    if progress.done == progress.total:
        say(f"{progress.done} partitions are done.")
