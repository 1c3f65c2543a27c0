"""Where all replicas are while a plan is made, and what that placement costs.

Each broker has a band around its even share of each resource. A broker's cost is how far it is
outside its bands, with capacity far above evenness and evenness above leaders, so that goals are
met in their order. Changing one replica changes the cost of two brokers only.

Invariants: a partition keeps its number of replicas, on different brokers; no step raises the
number of replicas that share a rack beyond what the racks require.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.balance.machine.model import (
    Cluster,
    Constraints,
    Impossible,
    Loads,
    Resource,
    replica_loads,
)
from moldau.invariant import invariant

__all__ = ["LED_RESOURCES", "NOTHING", "Lead", "Move", "Placement", "Step", "Violation"]

NOTHING: Loads = (0.0,) * len(Resource)
_CAPACITY_WEIGHT = 1e4
_EVENNESS_WEIGHT = 1.0
_LEADERS_WEIGHT = 0.01
LED_RESOURCES = frozenset({Resource.NETWORK_OUT, Resource.CPU, Resource.LEADERS})
"""What moves with leadership alone."""
_COUNTS = (Resource.REPLICAS, Resource.LEADERS)


class Move(NamedTuple):
    """Move a replica, with leadership if it is the leader."""

    partition: int
    source: int
    target: int


class Lead(NamedTuple):
    """Let another replica lead."""

    partition: int
    source: int
    target: int


Step = Move | Lead


class Violation(NamedTuple):
    cost: float
    resource: int
    amount: float
    """How much too much there is; negative if there is too little."""


class _Band(NamedTuple):
    resource: int
    amounts: list[float]
    """What each broker has of the resource."""
    low: float
    high: float
    capacity: float
    scale: float


class Placement:
    """Brokers and partitions are numbered in the order of their names."""

    def __init__(self, cluster: Cluster, constraints: Constraints, tolerance: float) -> None:
        self.brokers = sorted(cluster.brokers, key=lambda each: each.id)
        self.partitions = sorted(cluster.partitions, key=lambda each: (each.topic, each.number))
        index = {broker.id: number for number, broker in enumerate(self.brokers)}
        self.drained = frozenset(index[each] for each in constraints.drained)
        self.drains_only = bool(self.drained) and not constraints.others_too
        self.usable = [
            number
            for number, broker in enumerate(self.brokers)
            if broker.alive and number not in self.drained
        ]
        if not self.usable:
            raise Impossible("no broker is left that could hold replicas")
        added = {index[each] for each in constraints.added}
        self.receivers = [each for each in self.usable if not added or each in added]
        self.receives = frozenset(self.receivers)
        self.original = [tuple(index[each] for each in p.replicas) for p in self.partitions]
        self.replicas = [list(each) for each in self.original]
        loads = [replica_loads(each) for each in self.partitions]
        self.leader_loads = [each[0] for each in loads]
        self.follower_loads = [each[1] for each in loads]
        self._lead_loads = [
            tuple(one - other for one, other in zip(leader, follower, strict=True))
            for leader, follower in loads
        ]
        # Only these partitions may change.
        self.free = [
            not p.fixed
            and (not self.drains_only or not self.drained.isdisjoint(self.original[number]))
            for number, p in enumerate(self.partitions)
        ]
        # A broker without a rack is one of its own.
        names = [each.id if each.rack is None else each.rack for each in self.brokers]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self._rack = [numbers[each] for each in names]
        self._mates: dict[int, list[int]] = {}
        for each in self.usable:
            self._mates.setdefault(self._rack[each], []).append(each)
        self._receiving_mates = {
            rack: [each for each in mates if each in self.receives]
            for rack, mates in self._mates.items()
        }
        #: By resource, then by broker.
        self.load = [[0.0] * len(self.brokers) for _ in Resource]
        self.hosted: list[set[int]] = [set() for _ in self.brokers]
        for number, replicas in enumerate(self.replicas):
            for broker in replicas:
                self._add(broker, self.used(number, broker))
                self.hosted[broker].add(number)
        sizes = [p.disk for p in self.partitions]
        self.mean_size = (sum(sizes) / len(sizes) if sizes else 0.0) or 1.0
        self._bands = self._make_bands(tolerance)
        self.cost = [self.cost_with(each, NOTHING, NOTHING) for each in range(len(self.brokers))]

    # Goals.

    def _make_bands(self, tolerance: float) -> list[list[_Band]]:
        """Even shares follow capacities where all brokers have one, otherwise all are equal."""
        bands: list[list[_Band]] = [[] for _ in self.brokers]
        for resource in Resource:
            # What is on brokers that are down stays there; what is on drained ones will come.
            staying = sum(
                self.load[resource][each]
                for each, broker in enumerate(self.brokers)
                if broker.alive or each in self.drained
            )
            if staying <= 0:
                continue
            limits = [self.brokers[each].capacity.get(resource, math.inf) for each in self.usable]
            whole = sum(limits)
            for broker, limit in zip(self.usable, limits, strict=True):
                share = limit / whole if math.isfinite(whole) else 1 / len(self.usable)
                even = staying * share
                low, high = even * (1 - tolerance), even * (1 + tolerance)
                weight = _EVENNESS_WEIGHT
                if resource in _COUNTS:
                    low, high = min(low, math.floor(even)), max(high, math.ceil(even))
                if resource is Resource.LEADERS:
                    weight = _LEADERS_WEIGHT
                bands[broker].append(
                    _Band(int(resource), self.load[resource], low, high, limit, weight / even)
                )
        return bands

    def cost_with(self, broker: int, more: Loads, less: Loads) -> float:
        """What a broker would cost with some load added and some taken away."""
        total = 0.0
        for resource, amounts, low, high, capacity, scale in self._bands[broker]:
            used = amounts[broker] + more[resource] - less[resource]
            if used > high:
                outside = (used - high) * scale
            elif used < low:
                outside = (low - used) * scale
            else:
                outside = 0.0
            if outside > 1e-9:
                total += outside * (1 + outside)
            if used > capacity:
                total += (used - capacity) / capacity * _CAPACITY_WEIGHT
        return total

    def cost_after(self, broker: int, uses: Loads, sign: float) -> float:
        """What a broker would cost with one load added (1.0) or taken away (-1.0): what is asked
        most often, so it is kept short."""
        total = 0.0
        for resource, amounts, low, high, capacity, scale in self._bands[broker]:
            used = amounts[broker] + sign * uses[resource]
            if low <= used <= high and used <= capacity:
                continue
            outside = (used - high if used > high else low - used) * scale
            if outside > 1e-9:
                total += outside * (1 + outside)
            if used > capacity:
                total += (used - capacity) / capacity * _CAPACITY_WEIGHT
        return total

    def violations(self, broker: int) -> list[Violation]:
        """What a broker has too much or too little of, the worst first."""
        found = []
        for resource, amounts, low, high, capacity, scale in self._bands[broker]:
            used = amounts[broker]
            if used > capacity:
                over = used - min(capacity, high)
                found.append(Violation(_CAPACITY_WEIGHT * over / capacity, resource, over))
            elif (used - high) * scale > 1e-9:
                found.append(Violation((used - high) * scale, resource, used - high))
            elif (low - used) * scale > 1e-9:
                found.append(Violation((low - used) * scale, resource, used - low))
        return sorted(found, key=lambda each: (-each.cost, each.resource))

    @property
    def total_cost(self) -> float:
        return sum(self.cost)

    @property
    def bytes_moved(self) -> float:
        return sum(
            self.partitions[number].disk * len(set(replicas) - set(self.original[number]))
            for number, replicas in enumerate(self.replicas)
        )

    # Questions.

    def used(self, partition: int, broker: int) -> Loads:
        """What a partition's replica uses of its broker."""
        leads = self.replicas[partition][0] == broker
        return self.leader_loads[partition] if leads else self.follower_loads[partition]

    def lead_load(self, partition: int) -> Loads:
        """What moves with leadership."""
        return self._lead_loads[partition]

    def may_move(self, partition: int, source: int) -> bool:
        """When brokers are drained and nothing else is wanted, only replicas that have to move
        do."""
        if not self.free[partition]:
            return False
        if self.drains_only:
            return source in self.drained or source not in self.original[partition]
        return self.brokers[source].alive or source in self.drained

    def fits(self, partition: int, source: int, target: int) -> bool:
        """Whether a replica may take another's place, by racks."""
        replicas = self.replicas[partition]
        if target in replicas or target not in self.receives:
            return False
        rack = self._rack[target]
        return self._rack[source] == rack or rack not in self.closed_racks(partition, source)

    def closed_racks(self, partition: int, source: int) -> list[int]:
        """The racks that have as many replicas of a partition as they may have, for one that
        leaves a broker."""
        replicas, racks = self.replicas[partition], self._rack
        limit = self.rack_limit(len(replicas))
        listed, own = [racks[each] for each in replicas], racks[source]
        if listed.count(own) > limit:
            return []
        return [each for each in listed if each != own and listed.count(each) >= limit]

    def rack(self, broker: int) -> int:
        return self._rack[broker]

    def rack_mates(self, rack: int, *, receiving: bool) -> list[int]:
        """The usable brokers of a rack, or those of them that receive replicas."""
        return (self._receiving_mates if receiving else self._mates).get(rack, [])

    def rack_limit(self, replication_factor: int) -> int:
        """How many replicas of a partition one rack has at most, if they are spread."""
        return -(-replication_factor // len(self._mates))

    def rack_excess(self, replicas: Iterable[int]) -> int:
        """How many replicas would have to change racks."""
        listed = list(replicas)
        return self.rack_excess_of(listed, len(listed))

    def rack_excess_of(self, replicas: Iterable[int], replication_factor: int) -> int:
        """The same for some of a partition's replicas."""
        listed = [self._rack[each] for each in replicas]
        limit = self.rack_limit(replication_factor)
        return sum(max(0, listed.count(rack) - limit) for rack in set(listed))

    def bytes_of(self, step: Step) -> float:
        """How many more bytes have to be copied; negative if a replica returns."""
        if isinstance(step, Lead):
            return 0.0
        original = self.original[step.partition]
        change = (step.target not in original) - (step.source not in original)
        return self.partitions[step.partition].disk * change

    # Changes.

    def apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            replicas = self.replicas[step.partition]
            if isinstance(step, Move):
                invariant(step.target not in replicas, "a partition has one replica per broker")
                uses = self.used(step.partition, step.source)
                replicas[replicas.index(step.source)] = step.target
                self.hosted[step.source].discard(step.partition)
                self.hosted[step.target].add(step.partition)
            else:
                uses = self.lead_load(step.partition)
                other = replicas.index(step.target)
                replicas[0], replicas[other] = replicas[other], replicas[0]
            self._add(step.target, uses)
            self._add(step.source, uses, -1.0)
            for broker in (step.source, step.target):
                self.cost[broker] = self.cost_with(broker, NOTHING, NOTHING)

    def place(self, partition: int, replicas: Sequence[int]) -> None:
        """Put all replicas of a partition where they are said to be."""
        for broker in self.replicas[partition]:
            self._add(broker, self.used(partition, broker), -1.0)
            self.hosted[broker].discard(partition)
        touched = {*self.replicas[partition], *replicas}
        self.replicas[partition] = list(replicas)
        for broker in replicas:
            self._add(broker, self.used(partition, broker))
            self.hosted[broker].add(partition)
        for broker in touched:
            self.cost[broker] = self.cost_with(broker, NOTHING, NOTHING)

    def _add(self, broker: int, uses: Loads, sign: float = 1.0) -> None:
        for amounts, amount in zip(self.load, uses, strict=True):
            amounts[broker] += sign * amount
