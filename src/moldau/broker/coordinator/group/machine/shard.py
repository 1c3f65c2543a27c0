"""All groups of one `__consumer_offsets` partition: requests in, decisions out.

Each kind of group has its section; this module routes records, timers and requests to them, and
handles committed offsets, which groups of all kinds have alike. Invariants: only `replay` changes
replicated state; a group id names at most one group, of one kind; every group with offsets exists.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from moldau.broker.coordinator.group.machine import commits
from moldau.broker.coordinator.group.machine.classic import ClassicGroup
from moldau.broker.coordinator.group.machine.classic_groups import ClassicGroups
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.groups import ConsumerGroups
from moldau.broker.coordinator.group.machine.events import (
    UNKNOWN_MEMBER_ID,
    ExpiryTimer,
    GroupContinuation,
    Join,
)
from moldau.broker.coordinator.group.machine.group import (
    ClientInfo,
    CommitCaller,
    Group,
    PartitionCheck,
    Section,
    any_partition,
)
from moldau.broker.coordinator.group.machine.migration.classic_members import ClassicMembers
from moldau.broker.coordinator.group.machine.migration.downgrade import (
    Downgraded,
    on_downgraded,
    release_empty,
)
from moldau.broker.coordinator.group.machine.migration.online import OnlineMigration
from moldau.broker.coordinator.group.machine.offsets import OffsetStore
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.group.machine.share.group import ShareGroup
from moldau.broker.coordinator.group.machine.share.groups import ShareGroups
from moldau.broker.coordinator.group.machine.stored import StoredGroup
from moldau.broker.coordinator.group.machine.streams.group import StreamsGroup
from moldau.broker.coordinator.group.machine.streams.groups import StreamsGroups
from moldau.broker.coordinator.group.machine.transactional_commits import commit_transactional
from moldau.broker.coordinator.machine.decision import Decision, Outbox, ProducerStamp, Ticket
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
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
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

# From this version on, a commit to a group that does not exist gets GROUP_ID_NOT_FOUND.
_COMMIT_GROUP_NOT_FOUND_FROM = 9


class GroupShard:
    def __init__(self, config: GroupConfig, topics: ClusterTopics, settings: GroupSettings) -> None:
        self._config = config
        self._offsets = OffsetStore()
        self.classic = ClassicGroups(config)
        self.consumer = ConsumerGroups(config, topics, settings, OnlineMigration(config, topics))
        self.share = ShareGroups(config, topics, settings)
        self.streams = StreamsGroups(config, topics, settings)
        self._classic_members = ClassicMembers(self.consumer)
        self._sections: tuple[Section, ...] = (self.consumer, self.share, self.streams)
        self._section_of_key: dict[type, Section] = {
            key: each for each in self._sections for key in each.KEYS
        }
        self._section_of_timer: dict[type, Section] = {
            kind: each for each in self._sections for kind in each.TIMERS
        }

    @property
    def offset_count(self) -> int:
        return self._offsets.count

    # Replay: the only mutator of replicated state.

    def replay(self, offset: int, producer_id: int, key: Message, value: Message | None) -> None:
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue():
                if self._sectioned(key.group) is None:
                    self.classic.replay_simple(key.group)
                self._offsets.replay(offset, producer_id, key, value)
            case OffsetCommitKey(), None:
                self._offsets.replay_tombstone(key)
            case GroupMetadataKey(), GroupMetadataValue() | None:
                self.classic.replay(key, value)
            case LegacyOffsetCommitKey(), _:
                # The same in an older format, found in old log directories.
                modern = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
                self.replay(offset, producer_id, modern, value)
            case _:
                section = self._section_of_key.get(type(key))
                # Records of types that this release does not know stay in the log unchanged.
                if section is not None:
                    self._replay_in(section, key, value)

    def _replay_in(self, section: Section, key: Any, value: Message | None) -> None:
        section.replay(key, value)
        if value is not None and key.group_id in section.groups:
            # Its offsets were read first and made a simple group, which it replaces.
            self.classic.forget(key.group_id)

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        self._offsets.replay_end_transaction(producer_id, committed)

    @property
    def stored(self) -> dict[str, StoredGroup]:
        return self.classic.stored

    @property
    def offsets(self) -> OffsetStore:
        return self._offsets

    # Groups of all kinds.

    def group(self, group_id: str) -> Group | None:
        return self._sectioned(group_id) or self.classic.get(group_id)

    def _sectioned(self, group_id: str) -> Group | None:
        """The group with this id, unless it is a classic one."""
        for section in self._sections:
            group = section.groups.get(group_id)
            if group is not None:
                return group
        return None

    def _all(self) -> Iterator[Group]:
        yield from self.classic
        for section in self._sections:
            yield from list(section.groups.values())

    def _existing(self, group_id: str) -> Group:
        group = self.group(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    # Events.

    def on_loaded(self, now_ms: WallMs) -> Decision[None]:
        out = Outbox(now_ms)
        self.classic.on_loaded(out)
        for section in self._sections:
            section.on_loaded(out)
        out.schedule(ExpiryTimer(), self._config.offsets_retention_check_interval_ms)
        return out.decision(None)

    def on_timer(self, timer: Any, now_ms: WallMs) -> Decision[None]:
        if isinstance(timer, ExpiryTimer):
            return self._expire(now_ms)
        out = Outbox(now_ms)
        section = self._section_of_timer.get(type(timer))
        if section is not None:
            section.on_timer(timer, out)
        else:
            self.classic.on_timer(timer, out)
        return out.decision(None)

    def on_written(
        self, continuation: GroupContinuation | Downgraded, error: ErrorCode, now_ms: WallMs
    ) -> Decision[None]:
        out = Outbox(now_ms)
        if isinstance(continuation, Downgraded):
            on_downgraded(self.classic, continuation, error, out)
        else:
            self.classic.on_written(continuation, error, out)
        return out.decision(None)

    # Members of the classic protocol.

    def join_group(self, event: Join, now_ms: WallMs) -> Decision[None]:
        out = Outbox(now_ms)
        group = self.group(event.request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            self._classic_members.join(group, event, out)
        elif group is None or isinstance(group, ClassicGroup):
            self.classic.join(event, out)
        elif isinstance(group, ConsumerGroup | StreamsGroup) and group.is_empty:
            if event.request.member_id == UNKNOWN_MEMBER_ID:
                release_empty(group, out)
            self.classic.join(event, out)
        else:
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            out.answer(event.ticket, JoinGroupResponse(error_code=error, member_id=""))
        return out.decision(None)

    def sync_group(
        self, request: SyncGroupRequest, ticket: Ticket, now_ms: WallMs
    ) -> Decision[None]:
        out = Outbox(now_ms)
        group = self._member_group(request.group_id)
        if group.is_empty:
            raise _no_member(request.group_id)
        if isinstance(group, ConsumerGroup):
            self._classic_members.sync(group, request, ticket, out)
        else:
            self.classic.sync(group, request, ticket, out)
        return out.decision(None)

    def heartbeat(self, request: HeartbeatRequest, now_ms: WallMs) -> Decision[HeartbeatResponse]:
        out = Outbox(now_ms)
        group = self._member_group(request.group_id)
        if isinstance(group, ConsumerGroup):
            response = self._classic_members.heartbeat(group, request, out)
        else:
            response = self.classic.heartbeat(group, request, out)
        return out.decision(response)

    def leave_group(
        self, request: LeaveGroupRequest, now_ms: WallMs
    ) -> Decision[LeaveGroupResponse]:
        out = Outbox(now_ms)
        group = self._member_group(request.group_id)
        if isinstance(group, ConsumerGroup):
            response = self._classic_members.leave(group, request, out)
        else:
            response = self.classic.leave(group, request, out)
        return out.decision(response)

    def _member_group(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """The group of a request that only members send: no group, no member."""
        group = self.group(group_id)
        if not isinstance(group, ClassicGroup | ConsumerGroup):
            raise _no_member(group_id)
        return group

    # Members of the newer protocols; those of share groups have a service of their own.

    def consumer_group_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client: ClientInfo,
        fresh_member_id: str,
        now_ms: WallMs,
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        out = Outbox(now_ms)
        other = self._other(request.group_id, ConsumerGroup)
        response = self.consumer.heartbeat(
            request, version, client, fresh_member_id, out, other=other
        )
        return out.decision(response)

    def streams_group_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: ClientInfo, now_ms: WallMs
    ) -> Decision[StreamsGroupHeartbeatResponse]:
        out = Outbox(now_ms)
        other = self._other(request.group_id, StreamsGroup)
        response = self.streams.heartbeat(request, client, out, other)
        return out.decision(response)

    def describe_consumer_group(
        self, group_id: str
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        return self.consumer.describe(group_id, self._other(group_id, ConsumerGroup))

    def describe_streams_group(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        if self._other(group_id, StreamsGroup) is not None:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group."
            )
        return self.streams.describe(group_id)

    def _other(self, group_id: str, kind: type) -> Group | None:
        """The group with this id, if it is not of the kind."""
        group = self.group(group_id)
        return None if isinstance(group, kind) else group

    # Offsets.

    def commit_offsets(
        self, request: OffsetCommitRequest, version: int, now_ms: WallMs
    ) -> Decision[OffsetCommitResponse]:
        out = Outbox(now_ms)
        group = self.group(request.group_id)
        epoch = request.generation_id_or_member_epoch
        check: PartitionCheck = any_partition
        if group is not None:
            caller = CommitCaller(
                request.member_id,
                request.group_instance_id,
                epoch,
                transactional=False,
                version=version,
            )
            check = group.check_commit(caller)
            if isinstance(group, ClassicGroup):
                self.classic.restart_session(group, request.member_id, out)
        elif epoch >= 0:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND
                if version >= _COMMIT_GROUP_NOT_FOUND_FROM
                else ErrorCode.ILLEGAL_GENERATION,
                f"Group {request.group_id} not found.",
            )
        out.records, response = commits.commit(request, check, self._config, now_ms)
        return out.decision(response)

    def commit_transactional_offsets(
        self,
        request: TxnOffsetCommitRequest,
        topic_ids: Mapping[str, uuid.UUID],
        producer: ProducerStamp,
        version: int,
        now_ms: WallMs,
    ) -> Decision[TxnOffsetCommitResponse]:
        out = Outbox(now_ms)
        out.records, response = commit_transactional(
            self.group(request.group_id),
            request,
            topic_ids,
            version=version,
            config=self._config,
            now_ms=now_ms,
        )
        return out.decision(response, producer=producer)

    def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> Decision[OffsetFetchResponse.OffsetFetchResponseGroup]:
        group = self.group(request.group_id)
        if group is not None:
            group.check_fetch(request.member_id, request.member_epoch)
        response = commits.fetch(self._offsets, request, require_stable=require_stable)
        return Decision(response)

    def delete_offsets(
        self, request: OffsetDeleteRequest, now_ms: WallMs
    ) -> Decision[OffsetDeleteResponse]:
        out = Outbox(now_ms)
        group = self._existing(request.group_id)
        group.check_delete_offsets()
        out.records, response = commits.delete(self._offsets, group, request)
        return out.decision(response)

    def delete_offsets_of(self, topics: Mapping[str, UUID], now_ms: WallMs) -> Decision[None]:
        """Topics were deleted: a later topic of the same name must not inherit offsets."""
        out = Outbox(now_ms)
        out.records = commits.of_topics(self._offsets, topics)
        return out.decision(None, atomic=False)

    def _expire(self, now_ms: WallMs) -> Decision[None]:
        out = Outbox(now_ms)
        for group in self._all():
            records, nothing_left = commits.expire(self._offsets, group, self._config, now_ms)
            out.records.extend(records)
            if nothing_left and _may_vanish(group):
                out.records.extend(group.tombstones())
        out.schedule(ExpiryTimer(), self._config.offsets_retention_check_interval_ms)
        return out.decision(None, atomic=False)

    # Views and deletion of whole groups.

    def list_groups(self, request: ListGroupsRequest) -> list[ListGroupsResponse.ListedGroup]:
        states = {state.lower().strip() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        return [
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.listed_protocol_type,
                group_state=group.state_name,
                group_type=group.group_type,
            )
            for group in self._all()
            if (not types or group.group_type in types)
            and (not states or group.state_name.lower() in states)
        ]

    def describe_group(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        group = self.group(group_id)
        other_kind = group is not None and not isinstance(group, ClassicGroup)
        return self.classic.describe(group_id, version, other_kind=other_kind)

    def delete_groups(
        self, group_ids: list[str], now_ms: WallMs
    ) -> Decision[list[DeleteGroupsResponse.DeletableGroupResult]]:
        out = Outbox(now_ms)
        results = []
        for group_id in group_ids:
            error = ErrorCode.NONE
            try:
                group = self._existing(group_id)
                group.check_delete()
                out.records.extend(commits.delete_all(self._offsets, group_id))
                out.records.extend(group.tombstones())
            except ApiError as refusal:
                error = refusal.code
            results.append(
                DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            )
        return out.decision(results)


def _no_member(group_id: str) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")


def _may_vanish(group: Group) -> bool:
    # A client that got its id with MEMBER_ID_REQUIRED is about to join.
    awaited = isinstance(group, ClassicGroup) and group.pending_joins
    # The offsets of a share group are with the share coordinator: only who deletes the group
    # deletes them, so it stays.
    return group.is_empty and not awaited and not isinstance(group, ShareGroup)
