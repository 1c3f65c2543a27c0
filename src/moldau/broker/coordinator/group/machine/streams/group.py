"""One streams group as replay has made it: members, their tasks, and the topology they run.

Invariants: `owners` has the processes of each task, including those that have not yet confirmed its
revocation; only replay changes a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from moldau.broker.coordinator.group.machine.group import (
    CommitCaller,
    PartitionCheck,
    any_partition,
)
from moldau.broker.coordinator.group.machine.offsets import CommittedOffset
from moldau.broker.coordinator.group.machine.streams import records
from moldau.broker.coordinator.group.machine.streams.internal_topics import ConfiguredTopology
from moldau.broker.coordinator.group.machine.streams.members import StreamsMember
from moldau.broker.coordinator.group.machine.streams.tasks import (
    NO_TASKS,
    AssignedTasks,
    TaskMap,
    Tasks,
)
from moldau.broker.coordinator.group.machine.streams.topology import StreamsTopology
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupDescribeResponse

_INITIAL_EPOCH = 1
_REMOVED_EPOCH = -1
# From this version on OffsetCommit speaks of member epochs.
_COMMIT_MEMBER_EPOCH_FROM = 9


@dataclass(slots=True)
class TaskOwners:
    """Process ids by subtopology and partition."""

    active: dict[tuple[str, int], str] = field(default_factory=dict)
    standby: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    warmup: dict[tuple[str, int], set[str]] = field(default_factory=dict)

    def add(self, tasks: AssignedTasks, process_id: str) -> None:
        for subtopology, epochs in tasks.active.items():
            for partition in epochs:
                self.active[subtopology, partition] = process_id
        for owners, kind in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
            for subtopology, partitions in kind.items():
                for partition in partitions:
                    owners.setdefault((subtopology, partition), set()).add(process_id)

    def remove(self, tasks: AssignedTasks, process_id: str) -> None:
        for subtopology, epochs in tasks.active.items():
            for partition in epochs:
                if self.active.get((subtopology, partition)) == process_id:
                    del self.active[subtopology, partition]
        for owners, kind in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
            _discard(owners, kind, process_id)


def _discard(owners: dict[tuple[str, int], set[str]], tasks: TaskMap, process_id: str) -> None:
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            processes = owners.get((subtopology, partition))
            if processes is not None:
                processes.discard(process_id)
                if not processes:
                    del owners[subtopology, partition]


@dataclass(slots=True)
class StreamsGroup:
    """Implements `Group`."""

    group_type: ClassVar[str] = "streams"

    group_id: str
    group_epoch: int = _INITIAL_EPOCH
    metadata_hash: int = 0
    """Of all topics that the topology needs, as they were when the epoch was bumped last."""
    validated_topology_epoch: int = 0
    """The topology whose topics were all there and well partitioned; -1 while some are not."""
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    assignment_epoch: int = _INITIAL_EPOCH
    assignment_timestamp_ms: int = 0
    """When the target assignment was computed; 0 if there is none."""
    topology: StreamsTopology | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, Tasks] = field(default_factory=dict)
    owners: TaskOwners = field(default_factory=TaskOwners)

    # Replay.

    def put_member(self, member: StreamsMember) -> None:
        self._disown(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.owners.add(member.assigned, member.process_id)
        self.owners.add(member.pending_revocation, member.process_id)

    def remove_member(self, member_id: str) -> None:
        self._disown(self.members.pop(member_id, None))

    def _disown(self, member: StreamsMember | None) -> None:
        if member is not None:
            self.owners.remove(member.assigned, member.process_id)
            self.owners.remove(member.pending_revocation, member.process_id)

    def remove_assignment_metadata(self) -> None:
        self.assignment_epoch = _REMOVED_EPOCH
        self.assignment_timestamp_ms = 0

    # Views.

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def listed_protocol_type(self) -> str:
        return "streams"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def target(self, member_id: str) -> Tasks:
        return self.targets.get(member_id, NO_TASKS)

    def member(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.group_id} has no member {member_id}",
            )
        return member

    def described(
        self, configured: ConfiguredTopology | None
    ) -> StreamsGroupDescribeResponse.DescribedGroup:
        topology = None if self.topology is None else self.topology.described()
        if configured is not None and configured.is_ready:
            topology = configured.described()
        return StreamsGroupDescribeResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            group_epoch=self.group_epoch,
            assignment_epoch=self.assignment_epoch,
            topology=topology,
            members=[
                member.described(self.targets.get(member_id))
                for member_id, member in self.members.items()
            ],
        )

    # Offsets and deletion.

    def check_commit(self, caller: CommitCaller) -> PartitionCheck:
        if caller.epoch < 0 and not self.members:
            # An administrator, or a consumer that manages itself.
            return any_partition
        anonymous = caller.epoch == -1 and not caller.member_id and caller.instance_id is None
        if caller.transactional and anonymous:
            # TxnOffsetCommit need not name a member.
            return any_partition
        member = self.member(caller.member_id)
        if not caller.transactional and caller.version < _COMMIT_MEMBER_EPOCH_FROM:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"members of streams groups commit with OffsetCommit {_COMMIT_MEMBER_EPOCH_FROM} "
                f"or later, not {caller.version}",
            )
        if caller.epoch == member.member_epoch:
            return any_partition
        if caller.epoch > member.member_epoch:
            raise ApiError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"member {member.member_id} is in epoch {member.member_epoch}, not yet in "
                f"{caller.epoch}",
            )
        return self._check_older_epoch(member, caller.epoch)

    def _check_older_epoch(self, member: StreamsMember, epoch: int) -> PartitionCheck:
        """A member that does not have its new epoch yet may commit for the tasks that it kept."""
        topology = self.topology
        if topology is None:
            raise ApiError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"group {self.group_id} has no topology to check an older epoch against",
            )

        def check(topic: str, topic_id: UUID, partition: int) -> ErrorCode:
            subtopology = topology.subtopology_of_source.get(topic, "")
            for tasks in (member.assigned, member.pending_revocation):
                assigned_in = tasks.active.get(subtopology, {}).get(partition)
                if assigned_in is not None:
                    stale = epoch < assigned_in
                    return ErrorCode.STALE_MEMBER_EPOCH if stale else ErrorCode.NONE
            return ErrorCode.STALE_MEMBER_EPOCH

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise ApiError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"member {member_id} is in epoch {member.member_epoch}, not {member_epoch}",
            )

    def check_delete_offsets(self) -> None:
        """Offsets of topics that no member reads may be deleted at any time."""

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has members")

    def is_subscribed_to(self, topic: str) -> bool:
        if not self.members or self.topology is None:
            return False
        return topic in self.topology.subtopology_of_source

    def offsets_expire_from(self, offset: CommittedOffset) -> int | None:
        return offset.commit_timestamp_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return records.group_tombstones(self.group_id, list(self.members))
