"""Carry out a plan: reassign some partitions at a time, with throttles, until done or stopped.

Invariants: at most `batch` reassignments of the plan are in progress; however it ends, throttles
are removed; when it is stopped, what is in progress is cancelled and what is complete stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from moldau.balance.machine.model import Impossible, Reassignment
from moldau.balance.machine.moves import moves
from moldau.balance.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    clear_throttles,
    set_throttles,
)
from moldau.client.admin import Admin, ConfigResource, ElectionType
from moldau.client.errors import (
    ElectionNotNeededError,
    KafkaError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from moldau.client.topics import TopicPartition

__all__ = ["Copying", "Outcome", "Progress", "carry_out", "copied", "stop_all"]

POLL_SECONDS = 0.5
_TOPICS_PER_REQUEST = 500


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    moving: int
    total: int


@dataclass(frozen=True, slots=True)
class Outcome:
    done: int
    cancelled: int
    not_started: int
    skipped: tuple[str, ...]
    """Partitions that could not be reassigned, each with the reason."""


def carry_out(
    admin: Admin,
    reassignments: Sequence[Reassignment],
    *,
    throttle: int | None,
    batch: int,
    seconds_max: float,
    stop: threading.Event,
    report: Callable[[Progress], None],
) -> Outcome:
    """Blocks until all is done, `stop` is set, or the time is over, which stops it too."""
    ongoing = admin.list_partition_reassignments()
    if ongoing:
        raise Impossible(
            f"{len(ongoing)} partitions are being reassigned already. Wait for them (`moldau "
            "balance status`) or cancel them (`moldau balance stop`)"
        )
    work = _Work(admin, reassignments, batch, report)
    try:
        if throttle is not None:
            set_throttles(admin, moves({}, work.wanted, work.current), throttle)
        finished = work.run(stop, time.monotonic() + seconds_max)
        if not finished:
            work.cancel()
    except BaseException:
        # What went wrong matters more than a cancellation that fails as well.
        with suppress(KafkaError):
            work.cancel()
        raise
    finally:
        if throttle is not None:
            brokers = {node.id for node in admin.describe_cluster().nodes}
            topics = {key.topic for key in work.wanted}
            clear_throttles(admin, brokers, topics, check=False)
    work.elect_leaders()
    return work.outcome()


class _Work:
    """What of a plan waits, is in progress, and is done."""

    def __init__(
        self,
        admin: Admin,
        reassignments: Sequence[Reassignment],
        batch: int,
        report: Callable[[Progress], None],
    ) -> None:
        self._admin = admin
        self._batch = batch
        self._report = report
        keys = [TopicPartition(each.topic, each.partition) for each in reassignments]
        self.wanted = {key: each.after for key, each in zip(keys, reassignments, strict=True)}
        self.current = {key: each.before for key, each in zip(keys, reassignments, strict=True)}
        self._waiting = list(reversed(keys))
        self._moving: set[TopicPartition] = set()
        self._done: list[TopicPartition] = []
        self._skipped: dict[TopicPartition, KafkaError] = {}
        self._cancelled = 0

    def run(self, stop: threading.Event, deadline: float) -> bool:
        """True once nothing is left."""
        reported = None
        while self._waiting or self._moving:
            if stop.is_set() or time.monotonic() >= deadline:
                return False
            self._start()
            self._settle()
            state = Progress(len(self._done), len(self._moving), len(self.wanted))
            if state != reported:
                self._report(state)
                reported = state
            if self._moving:
                stop.wait(POLL_SECONDS)
        return True

    def _start(self) -> None:
        chosen: list[TopicPartition] = []
        while self._waiting and len(self._moving) + len(chosen) < self._batch:
            chosen.append(self._waiting.pop())
        if not chosen:
            return
        # In progress from here on: if the response is lost, they are cancelled too.
        self._moving.update(chosen)
        results = self._admin.alter_partition_reassignments(
            {key: self.wanted[key] for key in chosen}, check=False
        )
        for key, error in results.errors.items():
            self._moving.discard(key)
            self._skipped[key] = error

    def _settle(self) -> None:
        if not self._moving:
            return
        ongoing = self._admin.list_partition_reassignments(self._moving)
        for key in sorted(self._moving - ongoing.keys()):
            self._moving.discard(key)
            self._done.append(key)

    def cancel(self) -> None:
        if not self._moving:
            return
        results = self._admin.alter_partition_reassignments(
            dict.fromkeys(sorted(self._moving)), check=False
        )
        for key, error in results.errors.items():
            if isinstance(error, NoReassignmentInProgressError | UnknownTopicOrPartitionError):
                self._done.append(key)
            else:
                self._skipped[key] = error
        self._cancelled = len(self._moving) - len(results.errors)
        self._moving.clear()

    def elect_leaders(self) -> None:
        """A reassignment changes which replica is preferred, not which one leads."""
        if not self._done:
            return
        results = self._admin.elect_leaders(ElectionType.PREFERRED, self._done, check=False)
        for key, error in results.errors.items():
            if not isinstance(error, ElectionNotNeededError | UnknownTopicOrPartitionError):
                self._skipped[key] = error

    def outcome(self) -> Outcome:
        skipped = tuple(f"{key}: {error}" for key, error in sorted(self._skipped.items()))
        return Outcome(len(self._done), self._cancelled, len(self._waiting), skipped)


class Copying(NamedTuple):
    """A reassignment in progress, with the bytes of its new replicas so far and in the end."""

    topic: str
    partition: int
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    copied: int
    size: int


def copied(admin: Admin) -> list[Copying]:
    """The reassignments in progress, also those that others started."""
    ongoing = admin.list_partition_reassignments()
    if not ongoing:
        return []
    brokers = {node.id for node in admin.describe_cluster().nodes}
    involved = brokers & {each for one in ongoing.values() for each in one.replicas}
    sizes: dict[TopicPartition, dict[int, int]] = {}
    folders = admin.describe_log_dirs(sorted(involved), check=False).values_by_key
    for broker, described in folders.items():
        for folder in described.values():
            for key in ongoing.keys() & folder.replica_infos.keys():
                sizes.setdefault(key, {})[broker] = folder.replica_infos[key].size
    found = []
    for key, one in sorted(ongoing.items()):
        known = sizes.get(key, {})
        whole = max((known.get(each, 0) for each in one.replicas), default=0)
        so_far = sum(known.get(each, 0) for each in one.adding_replicas)
        found.append(
            Copying(
                *key,
                removing=one.removing_replicas,
                adding=one.adding_replicas,
                copied=so_far,
                size=whole * len(one.adding_replicas),
            )
        )
    return found


def stop_all(admin: Admin) -> int:
    """Cancel all reassignments of the cluster and remove their throttles; how many there were."""
    ongoing = sorted(admin.list_partition_reassignments())
    if ongoing:
        results = admin.alter_partition_reassignments(dict.fromkeys(ongoing), check=False)
        for error in results.errors.values():
            if not isinstance(error, NoReassignmentInProgressError | UnknownTopicOrPartitionError):
                raise error
    brokers = {node.id for node in admin.describe_cluster().nodes}
    clear_throttles(admin, brokers, _throttled_topics(admin), check=False)
    return len(ongoing)


def _throttled_topics(admin: Admin) -> list[str]:
    names = sorted(admin.list_topics(list_internal=True))
    found = []
    for begin in range(0, len(names), _TOPICS_PER_REQUEST):
        resources = [
            ConfigResource.topic(name) for name in names[begin : begin + _TOPICS_PER_REQUEST]
        ]
        described = admin.describe_configs(resources, check=False).values_by_key
        for resource, entries in described.items():
            keys = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
            if any(key in entries and entries[key].value for key in keys):
                found.append(resource.name)
    return found
