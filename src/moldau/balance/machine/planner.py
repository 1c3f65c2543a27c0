"""Plan which replicas move for racks, capacity, evenness and leaders, with few bytes.

First what must move: replicas on brokers that are drained, and those that share a rack. Then the
search for evenness, and last every step that turned out not to be needed is taken back. Small
clusters are searched in several ways, and parts of the plan are undone and made again, to save
bytes. Nothing is random: the same cluster gives the same plan, and a cluster after its plan gives
an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, permutations, product

from moldau.balance.machine.model import (
    Cluster,
    Constraints,
    Impossible,
    Loads,
    Plan,
    Reassignment,
    Resource,
)
from moldau.balance.machine.placement import NOTHING, Lead, Move, Placement
from moldau.balance.machine.search import Effort, Search

__all__ = ["TOLERANCE", "plan"]

TOLERANCE = 0.10
_THOROUGH = Effort(replicas=1 << 30, partners=1 << 30, swapped=1 << 30)
_QUICK = Effort(replicas=12, partners=6, swapped=6)
_THOROUGH_SIZE_MAX = 2_000
"""Replicas times brokers up to which every step is weighed."""
_TINY_SIZE_MAX = 100
"""Replicas times brokers up to which a plan is varied: few large partitions leave little choice."""
_EXTRA_STEPS_MAX = 20_000
"""Candidates that are weighed for such variations."""
_AGAIN_MAX = 4
_STEPS_PER_REPLICA_MAX = 400
_EQUAL = 1e-9


def plan(
    cluster: Cluster, constraints: Constraints | None = None, tolerance: float = TOLERANCE
) -> Plan:
    limits = constraints or Constraints()
    _check(cluster, limits, tolerance)
    planner = _Planner(cluster, limits, tolerance)
    found = planner.plan()
    # What a step costs depends on where replicas were, so a search from the result may see further.
    for _ in range(_AGAIN_MAX):
        if not planner.is_small or not found.reassignments or not found.unmet:
            break
        more = _Planner(_after(cluster, found), limits, tolerance).plan()
        if not more.reassignments:
            break
        found = _joined(found, more)
    return found


def _after(cluster: Cluster, planned: Plan) -> Cluster:
    """The cluster once a plan has been carried out."""
    places = {(each.topic, each.partition): each.after for each in planned.reassignments}
    partitions = [
        replace(each, replicas=places.get((each.topic, each.number), each.replicas))
        for each in cluster.partitions
    ]
    return Cluster(cluster.brokers, partitions)


def _joined(first: Plan, second: Plan) -> Plan:
    """One plan that does what two do one after the other."""
    found = {(each.topic, each.partition): each for each in first.reassignments}
    for each in second.reassignments:
        key = (each.topic, each.partition)
        found[key] = replace(found[key], after=each.after) if key in found else each
    changed = [found[key] for key in sorted(found) if found[key].before != found[key].after]
    return replace(
        second,
        reassignments=tuple(changed),
        before=first.before,
        steps=first.steps + second.steps,
    )


class _Planner:
    def __init__(self, cluster: Cluster, constraints: Constraints, tolerance: float) -> None:
        self._at = Placement(cluster, constraints, tolerance)
        self._reasons: dict[int, str] = {}
        self._weighed = 0
        self._until = 0
        replicas = sum(map(len, self._at.original))
        self.is_small = replicas * len(self._at.brokers) <= _THOROUGH_SIZE_MAX
        self._tiny = replicas * len(self._at.brokers) <= _TINY_SIZE_MAX
        self._steps_max = max(200_000, replicas * _STEPS_PER_REPLICA_MAX)

    def plan(self) -> Plan:
        at = self._at
        before = self._loads()
        self._drain()
        self._spread_racks()
        if self.is_small:
            self._search_thoroughly()
        else:
            self._search(_QUICK)
        return Plan(
            reassignments=tuple(self._reassignments()),
            before=before,
            after=self._loads(),
            unmet=tuple(self._unmet()),
            steps=self._weighed + len(at.partitions),
        )

    # What must move.

    def _drain(self) -> None:
        at = self._at
        leaving = [
            (number, broker)
            for broker in sorted(at.drained)
            for number in at.hosted[broker]
            if at.free[number]
        ]
        # Large replicas first, while there is room everywhere.
        leaving.sort(key=lambda each: (-at.partitions[each[0]].disk, each))
        for number, broker in leaving:
            self._relocate(number, broker, f"broker {at.brokers[broker].id} is drained")

    def _spread_racks(self) -> None:
        at = self._at
        for number, replicas in enumerate(at.replicas):
            if not at.free[number] or at.drains_only:
                continue
            excess = at.rack_excess(replicas)
            # From the last replica, so that leaders stay if they can.
            for broker in replicas[::-1]:
                if excess == 0:
                    break
                others = [each for each in replicas if each != broker]
                if at.brokers[broker].alive and at.rack_excess_of(others, len(replicas)) < excess:
                    self._relocate(number, broker, "replicas share a rack", below=excess)
                    excess = at.rack_excess(replicas)

    def _relocate(self, number: int, source: int, reason: str, below: int | None = None) -> None:
        """Move a replica to the broker where it costs least; with `below`, only if racks gain."""
        at = self._at
        others = [each for each in at.replicas[number] if each != source]
        uses = at.used(number, source)
        ranked = []
        for target in at.receivers:
            if target in others or target == source:
                continue
            excess = at.rack_excess([*others, target])
            if below is not None and excess >= below:
                continue
            gained = at.cost_with(target, uses, NOTHING) - at.cost[target]
            fill = at.load[Resource.DISK][target] + uses[Resource.DISK]
            ranked.append((excess, gained, fill, at.load[Resource.REPLICAS][target], target))
        self._weighed += len(ranked)
        if ranked:
            at.apply((Move(number, source, min(ranked)[-1]),))
            self._reasons.setdefault(number, reason)
        elif below is None:
            partition = at.partitions[number]
            raise Impossible(
                f"{partition.topic}-{partition.number} has {len(partition.replicas)} replicas, and "
                f"no other broker is left for the one on broker {at.brokers[source].id}. Add a "
                "broker, or lower the topic's replication factor"
            )

    # What should move.

    def _search(self, effort: Effort) -> None:
        search = Search(self._at, effort, self._reasons)
        search.run(self._steps_max)
        if self._take_back():
            search.run(self._steps_max)
        self._weighed += search.steps

    def _search_thoroughly(self) -> None:
        start = self._snapshot()
        found = []
        for thrift in (1.0, 0.5, 0.0, 2.0):
            self._restore(start)
            self._search(replace(_THOROUGH, thrift=thrift))
            found.append((self._standing(), self._snapshot()))
        self._restore(min(found, key=lambda each: each[0])[1])
        if self._tiny and not self._at.drains_only:
            self._until = self._weighed + _EXTRA_STEPS_MAX
            while self._remake(1) or self._remake(2) or self._displace(1) or self._displace(2):
                pass

    def _remake(self, size: int) -> bool:
        """Undo some changes and search again; True if that is better."""
        at = self._at
        return any(
            self._retry([(number, at.original[number]) for number in chosen])
            for chosen in combinations(self._changed(), size)
        )

    def _displace(self, size: int) -> bool:
        """Put partitions somewhere else and search again; True if that is better."""
        at = self._at
        if size > 1 and at.total_cost <= _EQUAL:
            return False
        return any(
            self._retry(list(zip(chosen, placed, strict=True)))
            for chosen in combinations(range(len(at.replicas)), size)
            for placed in product(*map(self._other_places, chosen))
            if self._weighed < self._until
        )

    def _other_places(self, number: int) -> list[tuple[int, ...]]:
        at = self._at
        current = tuple(at.replicas[number])
        if not at.free[number] or not all(at.brokers[each].alive for each in current):
            return []
        pool = sorted({*at.receivers, *current})
        return [
            places
            for places in permutations(pool, len(current))
            if places != current and at.rack_excess(places) <= at.rack_excess(current)
        ]

    def _retry(self, placed: Iterable[tuple[int, tuple[int, ...]]]) -> bool:
        if self._weighed >= self._until:
            return False
        best, kept = self._standing(), self._snapshot()
        for number, places in placed:
            self._at.place(number, places)
            self._reasons.setdefault(number, "it makes room for others")
        self._drain()
        self._spread_racks()
        self._search(_THOROUGH)
        if self._standing() < best:
            return True
        self._restore(kept)
        return False

    def _take_back(self) -> bool:
        """Return what need not have moved; True if something did."""
        at = self._at
        returned = False
        for number in self._changed():
            for broker in list(at.replicas[number]):
                if broker in at.original[number] or not at.may_move(number, broker):
                    continue
                uses = at.used(number, broker)
                for home in at.original[number]:
                    if home in at.drained or not at.brokers[home].alive:
                        continue
                    if home in at.replicas[number] or not self._fits_home(number, broker, home):
                        continue
                    change = at.cost_with(home, uses, NOTHING) - at.cost[home]
                    change += at.cost_with(broker, NOTHING, uses) - at.cost[broker]
                    if change <= _EQUAL:
                        at.apply((Move(number, broker, home),))
                        returned = True
                        break
            first, led = at.original[number][0], at.replicas[number]
            if first in led and led[0] != first and at.brokers[first].alive:
                uses = at.lead_load(number)
                change = at.cost_with(first, uses, NOTHING) - at.cost[first]
                change += at.cost_with(led[0], NOTHING, uses) - at.cost[led[0]]
                if change <= _EQUAL:
                    at.apply((Lead(number, led[0], first),))
                    returned = True
        return returned

    def _fits_home(self, number: int, broker: int, home: int) -> bool:
        at = self._at
        now = at.replicas[number]
        back = [home if each == broker else each for each in now]
        return at.rack_excess(back) <= at.rack_excess(now)

    # Standing.

    def _changed(self) -> list[int]:
        at = self._at
        return [n for n, replicas in enumerate(at.replicas) if tuple(replicas) != at.original[n]]

    def _standing(self) -> tuple[float, float, int]:
        """What a better plan has less of: cost, bytes, changes."""
        cost, copied = self._at.total_cost, self._at.bytes_moved
        # Rounded, since sums of the same numbers in another order differ.
        return round(cost, 7), round(copied, 3), len(self._changed())

    def _snapshot(self) -> tuple[dict[int, list[int]], dict[int, str]]:
        at = self._at
        return {n: list(at.replicas[n]) for n in self._changed()}, dict(self._reasons)

    def _restore(self, snapshot: tuple[dict[int, list[int]], dict[int, str]]) -> None:
        at = self._at
        placed, reasons = snapshot
        for number in set(self._changed()) | set(placed):
            at.place(number, placed.get(number, at.original[number]))
        self._reasons.clear()
        self._reasons.update(reasons)

    # The result.

    def _loads(self) -> dict[int, Loads]:
        at = self._at
        rows = zip(*at.load, strict=True)
        return {broker.id: row for broker, row in zip(at.brokers, rows, strict=True)}

    def _reassignments(self) -> Iterable[Reassignment]:
        at = self._at
        for number in self._changed():
            partition = at.partitions[number]
            yield Reassignment(
                topic=partition.topic,
                partition=partition.number,
                before=partition.replicas,
                after=tuple(at.brokers[each].id for each in at.replicas[number]),
                disk=partition.disk,
                reason=self._reasons.get(number, "it makes room for others"),
            )

    def _unmet(self) -> Iterable[str]:
        at = self._at
        sharing = sum(at.rack_excess(each) > 0 for each in at.replicas)
        if sharing:
            yield f"{sharing} partitions have more replicas in one rack than they need"
        for number in at.usable:
            for violation in at.violations(number):
                much = "more" if violation.amount > 0 else "less"
                label = Resource(violation.resource).label
                yield f"broker {at.brokers[number].id} still has {much} than its share of {label}"


def _check(cluster: Cluster, constraints: Constraints, tolerance: float) -> None:
    known = {each.id for each in cluster.brokers}
    named = constraints.drained | constraints.added
    unknown = sorted(named - known)
    if unknown:
        shown = ", ".join(map(str, unknown))
        raise Impossible(
            f"no broker {shown} is in the cluster, which has {sorted(known)}. Start it first"
        )
    down = [each.id for each in cluster.brokers if each.id in constraints.added and not each.alive]
    if down:
        raise Impossible(f"broker {down[0]} is not up and can receive nothing. Start it first")
    if not 0 < tolerance < 1:
        raise Impossible(f"the tolerance must be between 0 and 1, not {tolerance}")
    for partition in cluster.partitions:
        strange = sorted(set(partition.replicas) - known)
        if strange or len(set(partition.replicas)) != len(partition.replicas):
            raise Impossible(
                f"{partition.topic}-{partition.number} has replicas on {list(partition.replicas)}; "
                f"the cluster has brokers {sorted(known)}"
            )
