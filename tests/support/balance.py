"""Made-up clusters for the balancer, and a solver that tries all placements."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import permutations, product

from moldau.balance.machine.model import (
    Broker,
    Cluster,
    Partition,
    Plan,
    Resource,
    replica_loads,
)
from moldau.balance.machine.planner import TOLERANCE

__all__ = ["EVEN", "carried_out", "exact", "loads", "made", "outside", "shared_racks"]

EVEN = (Resource.DISK, Resource.NETWORK_IN, Resource.NETWORK_OUT, Resource.REPLICAS)


def made(
    brokers: int, partitions: int, factor: int, seed: int, *, racks: int = 0, skew: float = 1.5
) -> Cluster:
    """A cluster whose first brokers have most of the replicas."""
    draw = random.Random(seed)
    listed = [Broker(each, f"rack-{each % racks}" if racks else None) for each in range(brokers)]
    found = []
    for number in range(partitions):
        replicas: list[int] = []
        while len(replicas) < factor:
            broker = int(brokers * draw.random() ** skew)
            if broker not in replicas:
                replicas.append(broker)
        into = draw.lognormvariate(0, 0.5) * 1e6
        found.append(
            Partition(
                f"topic-{number % 7}",
                number,
                tuple(replicas),
                disk=draw.lognormvariate(0, 0.5) * 1e9,
                bytes_in=into,
                bytes_out=into * draw.choice((1, 2)),
            )
        )
    return Cluster(listed, found)


def carried_out(cluster: Cluster, planned: Plan) -> Cluster:
    after = {(each.topic, each.partition): each.after for each in planned.reassignments}
    return Cluster(
        cluster.brokers,
        [
            replace(each, replicas=after.get((each.topic, each.number), each.replicas))
            for each in cluster.partitions
        ],
    )


def loads(cluster: Cluster) -> dict[int, list[float]]:
    found = {broker.id: [0.0] * len(Resource) for broker in cluster.brokers}
    for partition in cluster.partitions:
        leader, follower = replica_loads(partition)
        for place, broker in enumerate(partition.replicas):
            for resource, amount in enumerate(follower if place else leader):
                found[broker][resource] += amount
    return found


def shared_racks(cluster: Cluster) -> int:
    """Replicas that share a rack although there are racks without one."""
    rack = {broker.id: broker.rack or str(broker.id) for broker in cluster.brokers}
    excess = 0
    for partition in cluster.partitions:
        limit = math.ceil(len(partition.replicas) / len(set(rack.values())))
        counted = Counter(rack[each] for each in partition.replicas)
        excess += sum(max(0, count - limit) for count in counted.values())
    return excess


def outside(cluster: Cluster) -> float:
    """How far brokers are outside 10 % of even, all resources together; leaders count less."""
    counted = loads(cluster)
    total = 0.0
    for resource in (*EVEN, Resource.LEADERS):
        even = sum(load[resource] for load in counted.values()) / len(counted)
        if even == 0:
            continue
        low, high = even * (1 - TOLERANCE), even * (1 + TOLERANCE)
        if resource in (Resource.REPLICAS, Resource.LEADERS):
            low, high = min(low, math.floor(even)), max(high, math.ceil(even))
        for load in counted.values():
            off = max(0.0, load[resource] - high, low - load[resource]) / even
            if off > 1e-9:
                total += off * (1 + off) * (0.01 if resource is Resource.LEADERS else 1.0)
    return total


def exact(cluster: Cluster) -> tuple[float, float]:
    """By trying all placements: how even it can get, and the least bytes for that."""
    ids = [broker.id for broker in cluster.brokers]
    factor = len(cluster.partitions[0].replicas)
    places = list(permutations(ids, factor))
    best = (math.inf, math.inf)
    for chosen in product(places, repeat=len(cluster.partitions)):
        listed = [
            replace(each, replicas=replicas)
            for each, replicas in zip(cluster.partitions, chosen, strict=True)
        ]
        moved = sum(
            each.disk * len(set(replicas) - set(each.replicas))
            for each, replicas in zip(cluster.partitions, chosen, strict=True)
        )
        best = min(best, (round(outside(Cluster(cluster.brokers, listed)), 7), moved))
    return best
