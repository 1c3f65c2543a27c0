"""What this node is to one partition: its leader, a follower, or neither.

The metadata log decides the role; `TRANSITIONS` has the possible changes, README.md shows them.

Invariants, checked with every change: the role changes only as the table allows; neither the leader
epoch nor the partition epoch goes back; a leader epoch has one leader, so a change between leader
and follower, or to another leader, comes with a later epoch. `error` is None exactly while this
node leads, `read_error` while it leads or follows: consumers may read what is committed from a
follower (KIP-392).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from moldau.broker.metadata.machine.model import NO_LEADER
from moldau.invariant import invariant
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ApiError, ErrorCode


class Role(Enum):
    NEW = "new"
    """The log is open, and the metadata has not been applied yet."""
    LEADER = "leader"
    FOLLOWER = "follower"
    OFFLINE = "offline"
    """The log directory or a change of its metadata has failed; only a restart brings it back."""
    REMOVED = "removed"
    """Deleted, or assigned to other nodes."""


TRANSITIONS: Final = {
    Role.NEW: frozenset({Role.LEADER, Role.FOLLOWER, Role.OFFLINE, Role.REMOVED}),
    Role.LEADER: frozenset({Role.LEADER, Role.FOLLOWER, Role.OFFLINE, Role.REMOVED}),
    Role.FOLLOWER: frozenset({Role.LEADER, Role.FOLLOWER, Role.OFFLINE, Role.REMOVED}),
    Role.OFFLINE: frozenset({Role.OFFLINE, Role.REMOVED}),
    Role.REMOVED: frozenset[Role](),
}


class PartitionRole:
    """The role of this node, and the errors that requests get because of it."""

    __slots__ = (
        "_name",
        "error",
        "leader_epoch",
        "leader_id",
        "partition_epoch",
        "read_error",
        "role",
    )

    def __init__(self, name: str) -> None:
        self._name = name
        self.role = Role.NEW
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.error: ErrorCode | None = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.read_error: ErrorCode | None = ErrorCode.NOT_LEADER_OR_FOLLOWER

    # Changes.

    def lead(self, node_id: int, *, leader_epoch: int, partition_epoch: int) -> bool:
        """Lead in `leader_epoch`; whether that is a new epoch."""
        is_new = self.role is not Role.LEADER or leader_epoch != self.leader_epoch
        if not is_new:
            # The controller's response may have been faster than the metadata log.
            partition_epoch = max(partition_epoch, self.partition_epoch)
        self._assign(Role.LEADER, node_id, leader_epoch, partition_epoch)
        self.error = self.read_error = None
        return is_new

    def follow(self, leader_id: int, *, leader_epoch: int, partition_epoch: int) -> bool:
        """Follow `leader_id`, NO_LEADER if there is none; whether that is a new epoch."""
        is_new = self.role is not Role.FOLLOWER or leader_epoch != self.leader_epoch
        self._assign(Role.FOLLOWER, leader_id, leader_epoch, partition_epoch)
        self.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.read_error = None
        return is_new

    def stop(self, error: ErrorCode) -> None:
        """Serve no longer; requests get `error`."""
        offline = error is ErrorCode.KAFKA_STORAGE_ERROR
        self._become(Role.OFFLINE if offline else Role.REMOVED)
        self.error = self.read_error = error

    def isr_changed(self, partition_epoch: int) -> None:
        """The controller accepted this leader's proposal, which made `partition_epoch`."""
        if partition_epoch > self.partition_epoch:
            self.partition_epoch = partition_epoch

    def _assign(self, role: Role, leader_id: int, leader_epoch: int, partition_epoch: int) -> None:
        invariant(
            leader_epoch >= self.leader_epoch and partition_epoch >= self.partition_epoch,
            f"{self._name} goes back from leader epoch {self.leader_epoch}, partition epoch"
            f" {self.partition_epoch} to {leader_epoch}, {partition_epoch}",
        )
        invariant(
            leader_epoch > self.leader_epoch or leader_id == self.leader_id,
            f"{self._name} has two leaders in epoch {leader_epoch}: {self.leader_id} and"
            f" {leader_id}",
        )
        self._become(role)
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch

    def _become(self, role: Role) -> None:
        invariant(
            role in TRANSITIONS[self.role],
            f"{self._name} is {self.role.value} and cannot become {role.value}",
        )
        self.role = role

    # Checks of requests.

    def check_online(self) -> None:
        """Raise unless this node leads the partition and its log can be used."""
        if self.error is not None:
            raise self.unavailable()

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raise unless this node leads, and in the leader epoch that the client knows."""
        if self.error is not None:
            raise self.unavailable()
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            raise self._wrong_epoch(current_leader_epoch)

    def check_readable(self, current_leader_epoch: int) -> None:
        """As `check_leader_epoch`, but a follower is enough."""
        if self.read_error is not None:
            raise self.unavailable()
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            raise self._wrong_epoch(current_leader_epoch)

    def unavailable(self) -> ApiError:
        code = self.error or self.read_error or ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ApiError(code, f"partition {self._name} is not served by this node")

    def _wrong_epoch(self, current_leader_epoch: int) -> ApiError:
        older = current_leader_epoch < self.leader_epoch
        return ApiError(
            ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch {current_leader_epoch} of {self._name} is"
            f" {'older' if older else 'newer'} than the current {self.leader_epoch}",
        )
