"""The classic groups of one shard: the stored half of each, and its machine.

Replicated state is the stored groups, which only `replay` changes. The volatile group machines are
rebuilt from them after a restart or a move, as in Kafka: Stable with members, Empty without.
Invariants: a group with a machine has a stored group, once its first record is replayed; a
tombstone removes both halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, assert_never

from moldau.broker.coordinator.group.machine import rebalance
from moldau.broker.coordinator.group.machine.classic import DEAD, ClassicGroup, Phase
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import (
    UNKNOWN_MEMBER_ID,
    AssignmentWritten,
    GroupContinuation,
    Join,
    JoinTimer,
    SessionTimer,
    StaticMemberWritten,
    SyncTimer,
)
from moldau.broker.coordinator.group.machine.join import join, on_static_member_written
from moldau.broker.coordinator.group.machine.stored import StoredGroup
from moldau.broker.coordinator.group.machine.sync import (
    heartbeat,
    leave,
    on_assignment_written,
    sync,
)
from moldau.broker.coordinator.machine.decision import Outbox, Ticket
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DescribeGroupsResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)

_DESCRIBE_GROUP_NOT_FOUND_FROM = 6

ClassicTimer = SessionTimer | JoinTimer | SyncTimer


class ClassicGroups:
    TIMERS: ClassVar[tuple[type, ...]] = (SessionTimer, JoinTimer, SyncTimer)

    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self.stored: dict[str, StoredGroup] = {}
        self._machines: dict[str, ClassicGroup] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self.stored or group_id in self._machines

    def __iter__(self) -> Iterator[ClassicGroup]:
        """Every group that the log knows of."""
        for group_id in list(self.stored):
            group = self.get(group_id)
            if group is not None:
                yield group

    def get(self, group_id: str) -> ClassicGroup | None:
        """The machine of a group, woken from its stored half if need be."""
        machine = self._machines.get(group_id)
        if machine is None:
            stored = self.stored.get(group_id)
            if stored is not None:
                machine = ClassicGroup.from_stored(group_id, stored)
                self._machines[group_id] = machine
        return machine

    # Replay.

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        if value is None:
            self.forget(key.group)
        else:
            self.stored[key.group] = StoredGroup.from_value(value)

    def replay_simple(self, group_id: str) -> None:
        """Offsets that were committed without a member create a group without members."""
        self.stored.setdefault(group_id, StoredGroup())

    def forget(self, group_id: str) -> None:
        self.stored.pop(group_id, None)
        self._machines.pop(group_id, None)

    # Life of the shard.

    def on_loaded(self, out: Outbox) -> None:
        for group_id, stored in list(self.stored.items()):
            if stored.members:
                self.wake(group_id, out)

    def wake(self, group_id: str, out: Outbox) -> ClassicGroup | None:
        """Start a full session for each member of a group that was just loaded."""
        group = self.get(group_id)
        if group is not None:
            for member in group.members.values():
                rebalance.restart_session(group, member, out)
            # The limit was lowered: a rebalance lets members commit before some must go.
            too_large = len(group.members) > self._config.group_max_size
            # Without a leader: the group was made of one of another kind, and lost members.
            stored = self.stored.get(group_id)
            incomplete = stored is not None and stored.leader is None
            if group.phase is Phase.STABLE and (too_large or incomplete):
                rebalance.prepare_rebalance(group, self._config, out)
        return group

    def on_timer(self, timer: ClassicTimer, out: Outbox) -> None:
        group = self._machines.get(timer.group_id)
        if group is None:
            return
        match timer:
            case SessionTimer():
                rebalance.on_session_timer(group, timer.member_id, self._config, out)
            case JoinTimer():
                rebalance.on_join_timer(group, self._config, out)
            case SyncTimer():
                rebalance.on_sync_timer(group, self._config, out)
            case _:
                assert_never(timer)

    def on_written(self, continuation: GroupContinuation, error: ErrorCode, out: Outbox) -> None:
        group = self._machines.get(continuation.group_id)
        if group is None:
            return
        match continuation:
            case AssignmentWritten():
                on_assignment_written(group, continuation, error, self._config, out)
            case StaticMemberWritten():
                on_static_member_written(group, continuation, error, out)
            case _:
                assert_never(continuation)

    # Requests.

    def join(self, event: Join, out: Outbox) -> None:
        group_id = event.request.group_id
        group = self.get(group_id)
        if group is None:
            if event.request.member_id != UNKNOWN_MEMBER_ID:
                out.answer(
                    event.ticket,
                    JoinGroupResponse(
                        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                        member_id=event.request.member_id,
                    ),
                )
                return
            group = ClassicGroup(group_id, state_timestamp_ms=out.now_ms)
            self._machines[group_id] = group
        if group_id not in self.stored:
            # The group exists from now on, for every coordinator that comes after.
            out.write(StoredGroup(state_timestamp_ms=out.now_ms).to_record(group_id))
        join(group, event, self._config, out)

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, ticket: Ticket, out: Outbox
    ) -> None:
        sync(group, request, ticket, out)

    def heartbeat(
        self, group: ClassicGroup, request: HeartbeatRequest, out: Outbox
    ) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=heartbeat(group, request, out))

    def leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, out: Outbox
    ) -> LeaveGroupResponse:
        return leave(group, request, self._config, out)

    def restart_session(self, group: ClassicGroup, member_id: str, out: Outbox) -> None:
        """A consumer that commits is alive."""
        member = group.members.get(member_id)
        if member is not None:
            rebalance.restart_session(group, member, out)

    def describe(
        self, group_id: str, version: int, *, other_kind: bool
    ) -> DescribeGroupsResponse.DescribedGroup:
        """`other_kind`: the id is taken by a group of a newer protocol."""
        group = self.get(group_id)
        if group is not None:
            return group.described()
        missing = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=DEAD)
        if version >= _DESCRIBE_GROUP_NOT_FOUND_FROM:
            missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            missing.error_message = (
                f"Group {group_id} is not a classic group."
                if other_kind
                else f"Group {group_id} not found."
            )
        return missing
