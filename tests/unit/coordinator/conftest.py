"""A stage on which the pure group shard plays: decisions are carried out at once, time is virtual.

What is written goes through its encoded form, so every scenario also is a test of the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import Join
from moldau.broker.coordinator.group.machine.shard import GroupShard
from moldau.broker.coordinator.machine.decision import Answer, Cancel, Decision, Schedule, Ticket
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from moldau.wire.record_values import decode_coordinator_record, encode_versioned
from support.group_facts import FakeSettings, FakeTopics

START_MS = 1_700_000_000_000
Written = list[tuple[bytes, bytes | None]]


def subscription(*topics: str) -> bytes:
    from moldau.wire.messages import ConsumerProtocolSubscription

    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 1)


class Stage:
    def __init__(self, **settings: int) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.config = GroupConfig(**settings)
        self.shard = GroupShard(self.config, FakeTopics(t=2), FakeSettings())
        self.now_ms = START_MS
        self.written: Written = []
        self.answers: dict[int, Any] = {}
        self.write_error = ErrorCode.NONE
        self._timers = TimerQueue()
        self._tickets = 0
        self._ids = 0
        self.perform(self.shard.on_loaded(self.now_ms))

    # Carrying out decisions.

    def perform(self, decision: Decision[Any]) -> Any:
        if self.write_error is ErrorCode.NONE:
            for record in decision.records:
                encoded = record.encode()
                self.shard.replay(
                    len(self.written),
                    NO_PRODUCER_ID,
                    *decode_coordinator_record("group", *encoded),
                )
                self.written.append(encoded)
        failed = bool(decision.records) and self.write_error is not ErrorCode.NONE
        for effect in decision.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self._timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self._timers.cancel(timer)
                case Answer(ticket, response):
                    assert ticket not in self.answers, "a ticket is answered once"
                    self.answers[ticket] = self.write_error if failed else response
        if decision.continuation is not None:
            error = self.write_error if failed else ErrorCode.NONE
            self.perform(self.shard.on_written(decision.continuation, error, self.now_ms))
        return decision.response

    def advance(self, delay_ms: int) -> None:
        """Let time pass, firing every timer at its moment."""
        end_ms = self.now_ms + delay_ms
        while True:
            at_ms = self._timers.next_at_ms()
            if at_ms is None or at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            timer = self._timers.pop_due(self.now_ms)
            if timer is not None:
                self.perform(self.shard.on_timer(timer, self.now_ms))
        self.now_ms = end_ms

    def reload(self) -> None:
        """Forget all but the log, as a broker that restarts."""
        self.shard = replayed(self.written, self.config)
        self._timers = TimerQueue()
        self.perform(self.shard.on_loaded(self.now_ms))

    # Requests.

    def join(
        self,
        group: str = "g",
        member: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", subscription("t")),),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int = 9,
        client: str = "client",
    ) -> int:
        """Send JoinGroup; the ticket, whose answer is in `answers` once there is one."""
        self._tickets += 1
        self._ids += 1
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
        )
        event = Join(
            request=request,
            version=version,
            ticket=Ticket(self._tickets),
            client_id=client,
            client_host="/127.0.0.1",
            fresh_id=f"id{self._ids}",
        )
        self.perform(self.shard.join_group(event, self.now_ms))
        return self._tickets

    def new_member(self, group: str = "g", **options: Any) -> tuple[str, int]:
        """Join as a dynamic member with the round trip of KIP-394; its id and the ticket."""
        first = self.join(group, **options)
        assert self.answers[first].error_code == ErrorCode.MEMBER_ID_REQUIRED
        member = self.answers[first].member_id
        return member, self.join(group, member, **options)

    def sync(
        self,
        member: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol: str | None = None,
    ) -> int:
        self._tickets += 1
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ],
        )
        try:
            self.perform(self.shard.sync_group(request, Ticket(self._tickets), self.now_ms))
        except ApiError as error:
            self.answers[self._tickets] = error.code
        return self._tickets

    def heartbeat(
        self, member: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
        )
        return self._code(lambda: self.shard.heartbeat(request, self.now_ms))

    def leave(self, *members: tuple[str, str | None] | str, group: str = "g") -> list[ErrorCode]:
        request = LeaveGroupRequest(group_id=group)
        for each in members:
            member, instance = (each, None) if isinstance(each, str) else each
            request.members.append(
                LeaveGroupRequest.MemberIdentity(member_id=member, group_instance_id=instance)
            )
        response = self.perform(self.shard.leave_group(request, self.now_ms))
        return [ErrorCode(each.error_code) for each in response.members]

    def commit(
        self,
        offset: int = 5,
        *,
        group: str = "g",
        topic: str = "t",
        partition: int = 0,
        member: str = "",
        generation: int = -1,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 8,
        instance: str | None = None,
        **fields: Any,
    ) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                    **fields,
                )
            ],
        )
        try:
            response = self.perform(self.shard.commit_offsets(request, version, self.now_ms))
        except ApiError as error:
            return error.code
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def fetch(
        self, group: str = "g", topics: dict[str, list[int]] | None = None, stable: bool = False
    ) -> dict[tuple[str, int], Any]:
        """Committed offsets by partition; error codes where there are errors."""
        request = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        if topics is not None:
            request.topics = [
                OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        response = self.perform(self.shard.fetch_offsets(request, stable))
        return {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            if partition.error_code
            else partition.committed_offset
            for topic in response.topics
            for partition in topic.partitions
        }

    def state(self, group: str = "g") -> str:
        return self.shard.describe_group(group, 5).group_state

    def stable_group(self, size: int = 1, group: str = "g", **options: Any) -> list[str]:
        """A group of dynamic members in Stable, all with an assignment; the leader first."""
        joins = [self.new_member(group, **options) for _ in range(size)]
        self.advance(self.config.group_initial_rebalance_delay_ms)
        for member, ticket in joins:
            assert self.answers[ticket].error_code == ErrorCode.NONE, member
        generation = self.answers[joins[0][1]].generation_id
        members = [member for member, _ in joins]
        for member in members[1:]:
            self.sync(member, generation, group=group)
        self.sync(members[0], generation, {m: m.encode() for m in members}, group=group)
        assert self.state(group) == "Stable"
        return members

    def _code(self, decide: Callable[[], Decision[Any]]) -> ErrorCode:
        try:
            return ErrorCode(self.perform(decide()).error_code)
        except ApiError as error:
            return error.code


def replayed(written: Written, config: GroupConfig) -> GroupShard:
    shard = GroupShard(config, FakeTopics(t=2), FakeSettings())
    for offset, (key, value) in enumerate(written):
        shard.replay(offset, NO_PRODUCER_ID, *decode_coordinator_record("group", key, value))
    return shard


@pytest.fixture(name="Stage")
def stage_class() -> type[Stage]:
    return Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(name="subscription")
def subscription_function() -> Callable[..., bytes]:
    return subscription


@pytest.fixture(name="replayed")
def replayed_function() -> Callable[[Written, GroupConfig], GroupShard]:
    return replayed
