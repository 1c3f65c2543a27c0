"""All groups of one `__consumer_offsets` partition: requests in, decisions out.

Replicated state is what `replay` has made: stored groups and committed offsets.
Nothing else touches it. Beside it live the volatile group machines, which are
rebuilt from the stored groups after a restart or a move, exactly as a restarted
Kafka would: Stable with members, Empty without. What always holds: every group
with a machine or with offsets has a stored group, once its first record is
replayed; tombstoning a group removes both halves.
"""

from __future__ import annotations

from typing import assert_never

from moldau.broker.coordinator.decision import Decision, Outbox, Ticket
from moldau.broker.coordinator.group import commits, rebalance
from moldau.broker.coordinator.group.classic import DEAD, GROUP_TYPE, ClassicGroup, Phase
from moldau.broker.coordinator.group.config import GroupConfig
from moldau.broker.coordinator.group.events import (
    UNKNOWN_MEMBER_ID,
    AssignmentWritten,
    ExpiryTimer,
    GroupContinuation,
    GroupTimer,
    Join,
    JoinTimer,
    SessionTimer,
    StaticMemberWritten,
    SyncTimer,
)
from moldau.broker.coordinator.group.join import join, on_static_member_written
from moldau.broker.coordinator.group.offsets import OffsetStore
from moldau.broker.coordinator.group.stored import StoredGroup, tombstone
from moldau.broker.coordinator.group.sync import heartbeat, leave, on_assignment_written, sync
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LegacyOffsetCommitKey,
    ListGroupsRequest,
    ListGroupsResponse,
    Message,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitValue,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
)

# From this version on a commit to a group that does not exist says so.
_COMMIT_GROUP_NOT_FOUND_FROM = 9
_DESCRIBE_GROUP_NOT_FOUND_FROM = 6


class GroupShard:
    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self._stored: dict[str, StoredGroup] = {}
        self._offsets = OffsetStore()
        self._machines: dict[str, ClassicGroup] = {}

    # Replay: the only mutator of replicated state.

    def replay(self, offset: int, producer_id: int, key: Message, value: Message | None) -> None:
        match key, value:
            case GroupMetadataKey(), GroupMetadataValue():
                self._stored[key.group] = StoredGroup.from_value(value)
            case GroupMetadataKey(), None:
                self._stored.pop(key.group, None)
                self._machines.pop(key.group, None)
            case OffsetCommitKey(), OffsetCommitValue():
                # Offsets committed by hand make a group that nobody ever joined.
                self._stored.setdefault(key.group, StoredGroup())
                self._offsets.replay(offset, producer_id, key, value)
            case OffsetCommitKey(), None:
                self._offsets.replay_tombstone(key)
            case LegacyOffsetCommitKey(), _:
                # The same in an older spelling, found in data folders of old.
                modern = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
                self.replay(offset, producer_id, modern, value)
            case _:
                # Groups of the newer protocols are kept in the log and left alone here.
                pass

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        self._offsets.replay_end_transaction(producer_id, committed)

    @property
    def stored(self) -> dict[str, StoredGroup]:
        return self._stored

    @property
    def offsets(self) -> OffsetStore:
        return self._offsets

    def group(self, group_id: str) -> ClassicGroup | None:
        """The machine of a group, woken from its stored half if need be."""
        machine = self._machines.get(group_id)
        if machine is None:
            stored = self._stored.get(group_id)
            if stored is not None:
                machine = ClassicGroup.from_stored(group_id, stored)
                self._machines[group_id] = machine
        return machine

    # Life of the shard.

    def on_loaded(self, now_ms: int) -> Decision[None]:
        out = Outbox(now_ms)
        for group_id, stored in list(self._stored.items()):
            if not stored.members:
                continue
            group = self._existing(group_id)
            for member in group.members.values():
                rebalance.restart_session(group, member, out)
            if len(group.members) > self._config.group_max_size:
                # The limit was lowered: a rebalance lets members commit before some must go.
                rebalance.prepare_rebalance(group, self._config, out)
        out.schedule(ExpiryTimer(), self._config.offsets_retention_check_interval_ms)
        return out.decision(None)

    def on_timer(self, timer: GroupTimer, now_ms: int) -> Decision[None]:
        if isinstance(timer, ExpiryTimer):
            return self._expire(now_ms)
        out = Outbox(now_ms)
        group = self._machines.get(timer.group_id)
        if group is not None:
            match timer:
                case SessionTimer():
                    rebalance.on_session_timer(group, timer.member_id, self._config, out)
                case JoinTimer():
                    rebalance.on_join_timer(group, self._config, out)
                case SyncTimer():
                    rebalance.on_sync_timer(group, self._config, out)
                case _:
                    assert_never(timer)
        return out.decision(None)

    def on_written(
        self, continuation: GroupContinuation, error: ErrorCode, now_ms: int
    ) -> Decision[None]:
        out = Outbox(now_ms)
        group = self._machines.get(continuation.group_id)
        if group is not None:
            match continuation:
                case AssignmentWritten():
                    on_assignment_written(group, continuation, error, self._config, out)
                case StaticMemberWritten():
                    on_static_member_written(group, continuation, error, out)
                case _:
                    assert_never(continuation)
        return out.decision(None)

    # Membership.

    def join_group(self, event: Join, now_ms: int) -> Decision[None]:
        out = Outbox(now_ms)
        group_id = event.request.group_id
        group = self.group(group_id)
        if group is None:
            if event.request.member_id != UNKNOWN_MEMBER_ID:
                out.answer(
                    event.ticket,
                    JoinGroupResponse(
                        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                        member_id=event.request.member_id,
                    ),
                )
                return out.decision(None)
            group = ClassicGroup(group_id, state_timestamp_ms=now_ms)
            self._machines[group_id] = group
        if group_id not in self._stored:
            # The group exists from now on, for every coordinator that comes after.
            out.write(StoredGroup(state_timestamp_ms=now_ms).to_record(group_id))
        join(group, event, self._config, out)
        return out.decision(None)

    def sync_group(self, request: SyncGroupRequest, ticket: Ticket, now_ms: int) -> Decision[None]:
        out = Outbox(now_ms)
        sync(self._member_group(request.group_id), request, ticket, out)
        return out.decision(None)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        out = Outbox(now_ms)
        error = heartbeat(self._member_group(request.group_id), request, out)
        return out.decision(HeartbeatResponse(error_code=error))

    def leave_group(self, request: LeaveGroupRequest, now_ms: int) -> Decision[LeaveGroupResponse]:
        out = Outbox(now_ms)
        response = leave(self._member_group(request.group_id), request, self._config, out)
        return out.decision(response)

    # Offsets.

    def commit_offsets(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[OffsetCommitResponse]:
        out = Outbox(now_ms)
        group = self.group(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch >= 0:
                raise ApiError(
                    ErrorCode.GROUP_ID_NOT_FOUND
                    if version >= _COMMIT_GROUP_NOT_FOUND_FROM
                    else ErrorCode.ILLEGAL_GENERATION,
                    f"group {request.group_id} not found",
                )
        else:
            commits.check_commit(group, request)
            member = group.members.get(request.member_id)
            if member is not None:
                # A consumer that commits is alive.
                rebalance.restart_session(group, member, out)
        out.records, response = commits.commit(request, self._config, now_ms)
        return out.decision(response)

    def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> Decision[OffsetFetchResponse.OffsetFetchResponseGroup]:
        response = commits.fetch(self._offsets, request, require_stable=require_stable)
        return Decision(response, barrier=True)

    def delete_offsets(
        self, request: OffsetDeleteRequest, now_ms: int
    ) -> Decision[OffsetDeleteResponse]:
        out = Outbox(now_ms)
        group = self._existing(request.group_id)
        commits.check_delete_offsets(group)
        out.records, response = commits.delete(self._offsets, group, request)
        return out.decision(response)

    def delete_offsets_of(self, partitions: set[tuple[str, int]], now_ms: int) -> Decision[None]:
        """Topics were deleted: a later topic of the same name must not inherit offsets."""
        out = Outbox(now_ms)
        out.records = commits.of_partitions(self._offsets, partitions)
        return out.decision(None, atomic=False)

    def _expire(self, now_ms: int) -> Decision[None]:
        out = Outbox(now_ms)
        for group_id in list(self._stored):
            group = self._existing(group_id)
            records, nothing_left = commits.expire(self._offsets, group, self._config, now_ms)
            out.records.extend(records)
            if nothing_left and group.phase is Phase.EMPTY and not group.pending_joins:
                out.records.append(tombstone(group_id))
        out.schedule(ExpiryTimer(), self._config.offsets_retention_check_interval_ms)
        return out.decision(None, atomic=False)

    # Views and deletion of whole groups.

    def list_groups(self, request: ListGroupsRequest) -> list[ListGroupsResponse.ListedGroup]:
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        if types and GROUP_TYPE not in types:
            return []
        return [
            group.listed()
            for group in (self._existing(group_id) for group_id in self._stored)
            if not states or group.phase.value.lower() in states
        ]

    def describe_group(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        group = self.group(group_id)
        if group is not None:
            return group.described()
        missing = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=DEAD)
        if version >= _DESCRIBE_GROUP_NOT_FOUND_FROM:
            missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            missing.error_message = f"Group {group_id} not found."
        return missing

    def delete_groups(
        self, group_ids: list[str], now_ms: int
    ) -> Decision[list[DeleteGroupsResponse.DeletableGroupResult]]:
        out = Outbox(now_ms)
        results = []
        for group_id in group_ids:
            group = self.group(group_id)
            error = ErrorCode.NONE
            if group is None:
                error = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.phase is not Phase.EMPTY:
                error = ErrorCode.NON_EMPTY_GROUP
            else:
                out.records.extend(commits.delete_all(self._offsets, group_id))
                out.records.append(tombstone(group_id))
            results.append(
                DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            )
        return out.decision(results)

    def _existing(self, group_id: str) -> ClassicGroup:
        group = self.group(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} not found")
        return group

    def _member_group(self, group_id: str) -> ClassicGroup:
        """The group of a request that only members send: no group, no member."""
        group = self.group(group_id)
        if group is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} not found")
        return group
