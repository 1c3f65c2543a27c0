"""Where the replicas of new partitions go.

Brokers form a ring in which neighbours sit in different racks as long as that is possible.
Partition p is led by the broker p steps after a random start, and its other replicas are the
following brokers whose rack has fewest replicas of it yet. The distance at which that search begins
grows with every turn of the ring, so that the partitions of one leader spread their followers over
all brokers. A broker never gets two replicas of one partition. Fenced brokers are used only when
there are not enough others, and then come last; brokers that are shutting down are not used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

from moldau.broker.metadata.machine.model import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    Broker,
)
from moldau.wire.errors import ApiError, ErrorCode


class RandomSource(Protocol):
    """What the controller needs of `random.Random`."""

    def randbytes(self, n: int, /) -> bytes: ...

    def randrange(self, stop: int, /) -> int: ...


def place_replicas(
    brokers: Iterable[Broker],
    *,
    partition_count: int,
    replication_factor: int,
    random: RandomSource,
) -> list[tuple[int, ...]]:
    """Replica lists for `partition_count` partitions; ApiError if the brokers do not suffice."""
    if replication_factor <= 0:
        raise _invalid_factor(
            f"Invalid replication factor {replication_factor}: the replication factor must be"
            " positive."
        )
    usable = [broker for broker in brokers if _has_room(broker) and not _is_leaving(broker)]
    unfenced = [broker for broker in usable if not broker.fenced]
    if not unfenced:
        raise _invalid_factor(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replication_factor > len(usable):
        raise _invalid_factor(
            f"The target replication factor of {replication_factor} cannot be reached because only"
            f" {len(usable)} broker(s) are registered or some brokers have all their log"
            " directories cordoned."
        )
    racks = {broker.id: broker.rack or "" for broker in usable}
    ring = _ring(unfenced, random)
    reserve = _ring([broker for broker in usable if broker.fenced], random)
    start = random.randrange(len(ring))
    return [
        _replicas_at(ring, reserve, racks, start + index, replication_factor)
        for index in range(partition_count)
    ]


def default_directory(broker: Broker) -> UUID:
    """The directory a new replica is written to, where the controller can know it."""
    if not broker.log_dirs:
        return DIRECTORY_MIGRATING
    if len(broker.log_dirs) == 1:
        return broker.log_dirs[0]
    return DIRECTORY_UNASSIGNED


def default_directories(replicas: Iterable[int], brokers: Mapping[int, Broker]) -> tuple[UUID, ...]:
    return tuple(default_directory(brokers[replica]) for replica in replicas)


def _has_room(broker: Broker) -> bool:
    return not broker.log_dirs or not set(broker.log_dirs) <= set(broker.cordoned_log_dirs)


def _is_leaving(broker: Broker) -> bool:
    # Once it has gone it is as good as any other fenced broker.
    return broker.in_controlled_shutdown and not broker.fenced


def _invalid_factor(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _ring(brokers: list[Broker], random: RandomSource) -> list[int]:
    racks: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(brokers, key=lambda item: item.id):
        racks[broker.rack or ""].append(broker.id)
    rotated = []
    for name in sorted(racks):
        ids = racks[name]
        turn = random.randrange(len(ids))
        rotated.append(ids[turn:] + ids[:turn])
    ring: list[int] = []
    while any(rotated):
        ring.extend(ids.pop(0) for ids in rotated if ids)
    return ring


def _replicas_at(
    ring: list[int],
    reserve: list[int],
    racks: Mapping[int, str],
    position: int,
    replication_factor: int,
) -> tuple[int, ...]:
    size = len(ring)
    first = position % size
    replicas = [ring[first]]
    wanted = min(replication_factor, size)
    if wanted > 1:
        others = ring[first + 1 :] + ring[:first]
        shift = position // size % len(others)
        replicas += _spread(others[shift:] + others[:shift], racks, replicas[0], wanted - 1)
    for index in range(replication_factor - wanted):
        replicas.append(reserve[(position + index) % len(reserve)])
    return tuple(replicas)


def _spread(candidates: list[int], racks: Mapping[int, str], leader: int, count: int) -> list[int]:
    """The first `count` candidates that keep the racks as even as they can be."""
    used = Counter({racks[leader]: 1})
    chosen: list[int] = []
    for _ in range(count):
        best = min(candidates, key=lambda broker_id: used[racks[broker_id]])
        candidates.remove(best)
        chosen.append(best)
        used[racks[best]] += 1
    return chosen
