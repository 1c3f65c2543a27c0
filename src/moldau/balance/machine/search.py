"""Steps that bring brokers into their bands: leadership first, since it moves no bytes, then
moves, then swaps.

The broker that costs most is served first, for the resource it is furthest off in. Of all
candidates the one with the most gain for its bytes is taken. In large clusters only the most
promising replicas and partners are weighed (`Effort`). The search ends when no broker finds a step
that lowers the cost, so a search that starts where another one ended finds nothing.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from moldau.balance.machine.model import Loads, Resource
from moldau.balance.machine.placement import (
    LED_RESOURCES,
    NOTHING,
    Lead,
    Move,
    Placement,
    Step,
    Violation,
)

__all__ = ["Effort", "Search"]

_GAIN_MIN = 1e-9
_FREE_BYTES = 0.02
"""What a step counts that copies nothing, in mean partitions: fewer steps are better too."""
_TRADED = 10
"""Partitions with little traffic of which pairs are weighed against one with more."""


@dataclass(frozen=True, slots=True)
class Effort:
    replicas: int
    """Replicas of a broker that are weighed for one step."""
    partners: int
    """Brokers that are weighed as the other side."""
    swapped: int
    """Replicas of each side that are weighed for a swap."""
    thrift: float = 1.0
    """How much bytes count against gain; 0 takes the largest gain."""


class _Best:
    """The best of the steps that were offered; ties go to the first by number."""

    __slots__ = ("score", "steps")

    def __init__(self) -> None:
        self.score = 0.0
        self.steps: tuple[Step, ...] = ()

    def offer(self, score: float, steps: tuple[Step, ...]) -> None:
        if score > self.score or (score == self.score and steps < self.steps):
            self.score, self.steps = score, steps


class _Ranking:
    """Brokers with the least of a resource first, or with the most; kept in order while few of
    them change between two questions."""

    __slots__ = ("_amounts", "_known", "_order", "_seen", "_sign")

    def __init__(self, amounts: list[float], brokers: Sequence[int], *, least: bool) -> None:
        self._amounts = amounts
        self._sign = 1.0 if least else -1.0
        self._known = {each: self._sign * amounts[each] for each in brokers}
        self._order = sorted((amount, each) for each, amount in self._known.items())
        self._seen = 0

    def first(self, count: int, touched: Sequence[int]) -> list[int]:
        """`touched` are all brokers that have changed since the first question, in turn."""
        known, order = self._known, self._order
        for each in touched[self._seen :]:
            before = known.get(each)
            if before is None:
                continue
            now = known[each] = self._sign * self._amounts[each]
            if now != before:
                del order[bisect_left(order, (before, each))]
                insort(order, (now, each))
        self._seen = len(touched)
        return [each for _, each in order[:count]]


class Search:
    def __init__(self, placement: Placement, effort: Effort, reasons: dict[int, str]) -> None:
        self._at = placement
        self._effort = effort
        self._reasons = reasons
        self._usable = frozenset(placement.usable)
        self._lists: dict[tuple[int, int, bool], list[int]] = {}
        """Replicas chosen before: choosing them again for each step would take most of the time."""
        self._stale = False
        """Whether replicas have moved since the lists were made."""
        self._rankings: dict[tuple[int, bool, int | None], _Ranking] = {}
        self._touched: list[int] = []
        """The brokers of all steps of a run."""
        self.steps = 0

    def run(self, steps_max: int) -> None:
        """Take steps until none helps, or so many candidates have been weighed."""
        at = self._at
        self._forget_lists()
        self._rankings.clear()
        self._touched.clear()
        stuck: set[int] = set()
        moved = False
        heap = [(-at.cost[each], each) for each in at.usable if at.cost[each] > _GAIN_MIN]
        heapq.heapify(heap)
        while self.steps < steps_max:
            if not heap:
                if not moved:
                    return
                # Those that were stuck may have new partners.
                moved = False
                stuck.clear()
                self._forget_lists()
                heap = [(-at.cost[each], each) for each in at.usable if at.cost[each] > _GAIN_MIN]
                heapq.heapify(heap)
                continue
            cost, broker = heapq.heappop(heap)
            if broker in stuck or -cost != at.cost[broker]:
                continue
            taken = self._improve(broker)
            if taken is None:
                stuck.add(broker)
                continue
            moved = True
            for each in {side for step in taken for side in (step.source, step.target)}:
                stuck.discard(each)
                if at.cost[each] > _GAIN_MIN:
                    heapq.heappush(heap, (-at.cost[each], each))

    def _improve(self, broker: int) -> tuple[Step, ...] | None:
        steps = self._step_of(broker)
        if steps is None and self._stale and self._lists:
            self._forget_lists()
            steps = self._step_of(broker)
        if steps is not None:
            self._at.apply(steps)
            self._touched += [side for step in steps for side in (step.source, step.target)]
            self._stale = True
        return steps

    def _forget_lists(self) -> None:
        self._lists.clear()
        self._stale = False

    def _step_of(self, broker: int) -> tuple[Step, ...] | None:
        for violation in self._at.violations(broker):
            best = _Best()
            self._weigh_leads(broker, violation, best)
            self._weigh_moves(broker, violation, best)
            if not best.steps:
                self._weigh_lead_chains(broker, violation, best)
                self._weigh_swaps(broker, violation, best)
            if not best.steps and violation.resource == Resource.LEADERS:
                self._weigh_lead_trades(broker, gives=violation.amount > 0, best=best)
            if best.steps:
                self._explain(broker, violation, best.steps)
                return best.steps
        return None

    def _explain(self, broker: int, violation: Violation, steps: Sequence[Step]) -> None:
        much = "more" if violation.amount > 0 else "less"
        label = Resource(violation.resource).label
        words = f"broker {self._at.brokers[broker].id} has {much} than its share of {label}"
        for step in steps:
            self._reasons.setdefault(step.partition, words)

    # Candidates.

    def _weigh_one(self, step: Step, uses: Loads, best: _Best) -> None:
        """Offer a step that takes load from one broker and gives it to another."""
        self.steps += 1
        at, source, target = self._at, step.source, step.target
        gain = at.cost[target] - at.cost_after(target, uses, 1.0)
        if gain + at.cost[source] <= _GAIN_MIN:
            return
        gain += at.cost[source] - at.cost_after(source, uses, -1.0)
        if gain > _GAIN_MIN:
            best.offer(gain / self._price(at.bytes_of(step)), (step,))

    def _weigh_two(
        self, steps: tuple[Step, Step], changes: Sequence[tuple[int, Loads, Loads]], best: _Best
    ) -> None:
        self.steps += 1
        at = self._at
        gain = 0.0
        for broker, more, less in changes:
            gain += at.cost[broker] - at.cost_with(broker, more, less)
        if gain > _GAIN_MIN:
            copied = at.bytes_of(steps[0]) + at.bytes_of(steps[1])
            best.offer(gain / self._price(copied), steps)

    def _prices(self, partition: int, source: int) -> tuple[float, float]:
        """What it counts to move a replica away, and back to where the partition was."""
        at = self._at
        size = at.partitions[partition].disk
        home = self._price(0.0)
        return (self._price(size) if source in at.original[partition] else home), home

    def _price(self, copied: float) -> float:
        whole: float = max(0.0, copied) / self._at.mean_size + _FREE_BYTES
        return whole if self._effort.thrift == 1.0 else math.pow(whole, self._effort.thrift)

    def _weigh_leads(self, broker: int, violation: Violation, best: _Best) -> None:
        at = self._at
        if violation.resource not in LED_RESOURCES:
            return
        gives = violation.amount > 0
        for partition in self._led(broker, violation, self._effort.replicas * 4, gives=gives):
            replicas, uses = at.replicas[partition], at.lead_load(partition)
            if not gives:
                self._weigh_one(Lead(partition, replicas[0], broker), uses, best)
                continue
            for other in replicas[1:]:
                if other in self._usable:
                    self._weigh_one(Lead(partition, broker, other), uses, best)

    def _weigh_lead_chains(self, broker: int, violation: Violation, best: _Best) -> None:
        """A broker between two that takes leadership of one partition and gives that of another."""
        at, width = self._at, self._effort.swapped
        if violation.amount < 0:
            return
        for first in self._led(broker, violation, width, gives=True):
            one = at.lead_load(first)
            for middle in at.replicas[first][1:]:
                if middle not in self._usable:
                    continue
                for second in self._led(middle, violation, width, gives=True):
                    two = at.lead_load(second)
                    for end in at.replicas[second][1:]:
                        if end != broker and end in self._usable:
                            self._weigh_two(
                                (Lead(first, broker, middle), Lead(second, middle, end)),
                                ((broker, NOTHING, one), (middle, one, two), (end, two, NOTHING)),
                                best,
                            )

    def _weigh_lead_trades(self, broker: int, *, gives: bool, best: _Best) -> None:
        """Leadership of two partitions with little traffic against that of one with as much as
        both: the number of leaders changes, and traffic, which counts more, hardly does."""
        at = self._at

        def traffic(partition: int) -> tuple[float, int]:
            return at.lead_load(partition)[Resource.NETWORK_OUT], partition

        led: list[int] = []
        followed: list[int] = []
        for partition in at.hosted[broker]:
            if at.free[partition]:
                (led if at.replicas[partition][0] == broker else followed).append(partition)
        many, few = (led, followed) if gives else (followed, led)
        single = sorted(few, key=traffic)
        amounts = [traffic(each)[0] for each in single]
        for pair in combinations(heapq.nsmallest(_TRADED, many, key=traffic), 2):
            near = bisect_left(amounts, sum(traffic(each)[0] for each in pair))
            for other in single[max(0, near - 1) : near + 1]:
                given, taken = (pair, (other,)) if gives else ((other,), pair)
                self._weigh_trade(broker, given, taken, best)

    def _weigh_trade(
        self, broker: int, given: Sequence[int], taken: Sequence[int], best: _Best
    ) -> None:
        """Offer that a broker gives leadership of some partitions and takes that of others; each
        goes to the replica where it costs least."""
        at = self._at
        self.steps += 1
        steps: list[Step] = [Lead(each, at.replicas[each][0], broker) for each in taken]
        for each in given:
            uses = at.lead_load(each)
            others = [one for one in at.replicas[each][1:] if one in self._usable]
            if not others:
                return
            costs = [(at.cost_with(one, uses, NOTHING) - at.cost[one], one) for one in others]
            steps.append(Lead(each, broker, min(costs)[1]))
        if any(step.source not in self._usable for step in steps):
            return
        more: dict[int, Loads] = {}
        less: dict[int, Loads] = {}
        for step in steps:
            uses = at.lead_load(step.partition)
            more[step.target] = _sum(more.get(step.target, NOTHING), uses)
            less[step.source] = _sum(less.get(step.source, NOTHING), uses)
        gain = sum(
            at.cost[each] - at.cost_with(each, more.get(each, NOTHING), less.get(each, NOTHING))
            for each in sorted(more.keys() | less.keys())
        )
        if gain > _GAIN_MIN:
            best.offer(gain / _FREE_BYTES, tuple(steps))

    def _weigh_moves(self, broker: int, violation: Violation, best: _Best) -> None:
        if violation.amount > 0:
            self._weigh_given(broker, violation, best)
        else:
            self._weigh_taken(broker, violation, best)

    def _weigh_given(self, source: int, violation: Violation, best: _Best) -> None:
        """Offer replicas of a broker to others. What it gains by each is the same for all of them,
        and what they gain is at most their cost: most are passed over by that."""
        at, cost = self._at, self._at.cost
        leaving = []
        for partition in self._chosen(source, violation, self._effort.replicas):
            if at.may_move(partition, source):
                uses = at.used(partition, source)
                freed = cost[source] - at.cost_after(source, uses, -1.0)
                closed = at.closed_racks(partition, source)
                far, home = self._prices(partition, source)
                leaving.append((partition, uses, freed, closed, far, home))
        leaving.sort(key=lambda each: -each[2] / each[4])
        for target in self._partners(source, violation):
            at_most, rack = cost[target], at.rack(target)
            for partition, uses, freed, closed, far, home in leaving:
                if rack in closed or target in at.replicas[partition]:
                    continue
                self.steps += 1
                price = home if target in at.original[partition] else far
                if (at_most + freed) / price < best.score:
                    continue
                gain = at_most - at.cost_after(target, uses, 1.0) + freed
                if gain > _GAIN_MIN and gain / price >= best.score:
                    best.offer(gain / price, (Move(partition, source, target),))

    def _weigh_taken(self, target: int, violation: Violation, best: _Best) -> None:
        """Offer a broker replicas of others; what they gain is at most their cost."""
        at, cost = self._at, self._at.cost
        for source in self._partners(target, violation):
            at_most = cost[source]
            for partition in self._chosen(source, violation, self._effort.replicas):
                if not at.may_move(partition, source) or not at.fits(partition, source, target):
                    continue
                self.steps += 1
                uses = at.used(partition, source)
                far, home = self._prices(partition, source)
                price = home if target in at.original[partition] else far
                gain = cost[target] - at.cost_after(target, uses, 1.0)
                most = gain + at_most
                if most <= _GAIN_MIN or most / price < best.score:
                    continue
                gain += at_most - at.cost_after(source, uses, -1.0)
                if gain > _GAIN_MIN:
                    best.offer(gain / price, (Move(partition, source, target),))

    def _weigh_swaps(self, broker: int, violation: Violation, best: _Best) -> None:
        at, width = self._at, self._effort.swapped
        if broker not in at.receives:
            return
        mine = [p for p in self._chosen(broker, violation, width) if at.may_move(p, broker)]
        for partner in self._partners(broker, violation)[:width]:
            if partner not in at.receives:
                continue
            theirs = [p for p in self._chosen(partner, violation, width) if at.may_move(p, partner)]
            for one in mine:
                if not at.fits(one, broker, partner):
                    continue
                given = at.used(one, broker)
                for two in theirs:
                    if not at.fits(two, partner, broker):
                        continue
                    taken = at.used(two, partner)
                    self._weigh_two(
                        (Move(one, broker, partner), Move(two, partner, broker)),
                        ((broker, taken, given), (partner, given, taken)),
                        best,
                    )

    def _partners(self, broker: int, violation: Violation) -> list[int]:
        """The brokers with the least of a resource to give to, or with the most to take from.

        As many again of the broker's own rack: where each rack has one replica of a partition,
        replicas move within racks only.
        """
        at, resource, count = self._at, violation.resource, self._effort.partners
        gives = violation.amount > 0
        if not gives and broker not in at.receives:
            return []
        pool = at.receivers if gives else at.usable
        amounts = at.load[resource]
        if len(pool) <= count:
            # Of brokers with the same amount the first in the pool comes first.
            by_amount = sorted(pool, key=amounts.__getitem__, reverse=not gives)
            return [each for each in by_amount if each != broker]
        found = []
        for rack in (at.rack(broker), None):
            key = (resource, gives, rack)
            if key not in self._rankings:
                brokers = pool if rack is None else at.rack_mates(rack, receiving=gives)
                self._rankings[key] = _Ranking(amounts, brokers, least=gives)
            found += self._rankings[key].first(count, self._touched)
        return [each for each in dict.fromkeys(found) if each != broker]

    def _led(self, broker: int, violation: Violation, count: int, *, gives: bool) -> list[int]:
        """Partitions that a broker leads, or follows and could lead, the most useful first."""
        at, resource = self._at, violation.resource
        replicas, needed = at.replicas, abs(violation.amount)
        found = [p for p in at.hosted[broker] if (replicas[p][0] == broker) is gives and at.free[p]]
        if len(found) <= count:
            return sorted(found)

        def off(partition: int) -> tuple[float, float, int]:
            # All count one leader; those that move the least traffic disturb the least.
            uses = at.lead_load(partition)
            return abs(uses[resource] - needed), uses[Resource.NETWORK_OUT], partition

        return heapq.nsmallest(count, found, key=off)

    def _chosen(self, broker: int, violation: Violation, count: int) -> list[int]:
        """Replicas of a broker, those first that bring most of what is missing for their bytes."""
        at, resource = self._at, violation.resource
        hosted = at.hosted[broker]
        if len(hosted) <= count:
            return sorted(hosted)
        key = (broker, resource, violation.amount > 0)
        if key in self._lists:
            kept = [each for each in self._lists[key] if each in hosted]
            if len(kept) >= count:
                return kept[:count]
        needed = abs(violation.amount)
        leaders, followers, parts = at.leader_loads, at.follower_loads, at.partitions
        replicas = at.replicas

        def worth(partition: int) -> tuple[float, int]:
            table = leaders if replicas[partition][0] == broker else followers
            brought = table[partition][resource]
            # What overshoots by much only moves the trouble.
            useful = brought if brought <= needed * 2 else needed * needed / brought
            return -useful / (parts[partition].disk + 1.0), partition

        most = 4 * max(self._effort.replicas, self._effort.swapped)
        self._lists[key] = heapq.nsmallest(most, hosted, key=worth)
        return self._lists[key][:count]


def _sum(one: Loads, other: Loads) -> Loads:
    return tuple(a + b for a, b in zip(one, other, strict=True))
