"""A shard with classic and consumer groups, and clients of both protocols that talk to it.

Decisions are carried out at once, records pass through their encoded form, time is virtual.
Clients do what real ones do: give up partitions when told to, join again when told to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.classic_groups import ClassicGroups
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer.groups import ConsumerGroups
from moldau.broker.coordinator.group.machine.events import Join
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.migration.classic_members import ClassicMembers
from moldau.broker.coordinator.group.machine.migration.downgrade import (
    Downgraded,
    on_downgraded,
    release_empty,
)
from moldau.broker.coordinator.group.machine.migration.online import OnlineMigration
from moldau.broker.coordinator.machine.decision import Answer, Cancel, Outbox, Schedule, Ticket
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from moldau.wire.record_values import decode_coordinator_record, decode_versioned, encode_versioned
from support.group_facts import FakeSettings, FakeTopics

START_MS = 1_700_000_000_000
GROUP = "g"
Partitions = set[tuple[str, int]]


class MigrationStage:
    def __init__(self, topics: FakeTopics | None = None, **settings: Any) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.config = GroupConfig(**settings)
        self.topics = topics or FakeTopics(t=12, u=5)
        self.now_ms = START_MS
        self.written: list[tuple[bytes, bytes | None]] = []
        self.answers: dict[int, Any] = {}
        self.write_error = ErrorCode.NONE
        self.commits = True
        self.uncommitted: list[tuple[Any, ErrorCode]] = []
        self.timers = TimerQueue()
        self.tickets = 0
        self._make_groups()

    def _make_groups(self) -> None:
        self.classic = ClassicGroups(self.config)
        self.consumers = ConsumerGroups(
            self.config,
            self.topics,
            FakeSettings(consumer_assignment_interval_ms=0),
            OnlineMigration(self.config, self.topics),
        )
        self.members = ClassicMembers(self.consumers)

    # The shard.

    @property
    def group(self) -> Any:
        return self.consumers.groups.get(GROUP) or self.classic.get(GROUP)

    @property
    def kind(self) -> str:
        return "" if self.group is None else str(self.group.group_type)

    def _is_consumer(self) -> bool:
        return GROUP in self.consumers.groups

    def _replay(self, key: Any, value: Any) -> None:
        if isinstance(key, GroupMetadataKey):
            self.classic.replay(key, value)
            return
        self.consumers.replay(key, value)
        if value is not None and key.group_id in self.consumers.groups:
            self.classic.forget(key.group_id)

    def decide(self, act: Callable[[Outbox], Any]) -> Any:
        out = Outbox(self.now_ms)
        response = act(out)
        failed = bool(out.records) and self.write_error is not ErrorCode.NONE
        if not failed:
            for record in out.records:
                encoded = record.encode()
                self.written.append(encoded)
                self._replay(*decode_coordinator_record("group", *encoded))
        for effect in out.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self.timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self.timers.cancel(timer)
                case Answer(ticket, answer):
                    self.answers[ticket] = self.write_error if failed else answer
        if out.continuation is not None:
            error = self.write_error if failed else ErrorCode.NONE
            self.uncommitted.append((out.continuation, error))
            if self.commits:
                self.commit()
        return response

    def commit(self) -> None:
        """What was written is on all replicas now."""
        while self.uncommitted:
            written, error = self.uncommitted.pop(0)
            self._decide_on_written(written, error)

    def _decide_on_written(self, written: Any, error: ErrorCode) -> None:
        self.decide(lambda out: self._on_written(written, error, out))

    def _on_written(self, written: Any, error: ErrorCode, out: Outbox) -> None:
        if isinstance(written, Downgraded):
            on_downgraded(self.classic, written, error, out)
        else:
            self.classic.on_written(written, error, out)

    def advance(self, delay_ms: int) -> None:
        end_ms = self.now_ms + delay_ms
        while (at_ms := self.timers.next_at_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            timer: Any = self.timers.pop_due(self.now_ms)
            if timer is not None:
                mine = isinstance(timer, self.consumers.TIMERS)
                self._on_timer(self.consumers if mine else self.classic, timer)
        self.now_ms = end_ms

    def _on_timer(self, section: Any, timer: Any) -> None:
        self.decide(lambda out: section.on_timer(timer, out))

    def reload(self) -> None:
        self._make_groups()
        self.timers = TimerQueue()
        for key, value in self.written:
            self._replay(*decode_coordinator_record("group", key, value))
        for ticket in range(1, self.tickets + 1):
            self.answers.setdefault(ticket, ErrorCode.NOT_COORDINATOR)
        self.decide(self.classic.on_loaded)
        self.decide(self.consumers.on_loaded)

    # Requests, routed as the real shard does.

    def join(self, request: JoinGroupRequest, version: int = 9) -> int:
        self.tickets += 1
        event = Join(
            request=request,
            version=version,
            ticket=Ticket(self.tickets),
            client_id="client",
            client_host="/127.0.0.1",
            fresh_id=f"id{self.tickets}",
        )

        def act(out: Outbox) -> None:
            if self._is_consumer():
                group = self.consumers.groups[GROUP]
                if group.members:
                    self.members.join(group, event, out)
                    return
                release_empty(group, out)
            self.classic.join(event, out)

        self.decide(act)
        return self.tickets

    def sync(self, request: SyncGroupRequest) -> int:
        self.tickets += 1
        ticket = Ticket(self.tickets)
        try:
            if self._is_consumer():
                group = self.consumers.groups[GROUP]
                self.decide(lambda out: self.members.sync(group, request, ticket, out))
            else:
                self.decide(lambda out: self.classic.sync(self.group, request, ticket, out))
        except ApiError as error:
            self.answers[ticket] = error.code
        return ticket

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        section: Any = self.members if self._is_consumer() else self.classic
        try:
            response = self.decide(lambda out: section.heartbeat(self.group, request, out))
        except ApiError as error:
            return error.code
        return ErrorCode(response.error_code)

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[
                LeaveGroupRequest.MemberIdentity(member_id=each, group_instance_id=instance)
                for each, instance in members
            ],
        )
        section: Any = self.members if self._is_consumer() else self.classic
        response = self.decide(lambda out: section.leave(self.group, request, out))
        return [ErrorCode(each.error_code) for each in response.members]

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> Any:
        other = None if self._is_consumer() else self.classic.get(GROUP)
        client = ClientInfo("client", "/127.0.0.1")
        return self.decide(
            lambda out: self.consumers.heartbeat(request, 1, client, "fresh", out, other=other)
        )

    # Clients.

    def classic_client(self, **options: Any) -> ClassicClient:
        return ClassicClient(self, **options)

    def consumer_client(self, name: str, **options: Any) -> ConsumerClient:
        return ConsumerClient(self, name, **options)

    def settle(self, *clients: ClassicClient | ConsumerClient, rounds: int = 40) -> None:
        """Let all clients act until they have everything, each partition once at any time."""
        for _ in range(rounds):
            for client in clients:
                client.step()
                owned = [each for one in clients for each in one.owned]
                assert len(owned) == len(set(owned)), "a partition has one owner at a time"
            self.advance(1_000)
        wanted = {
            (name, partition)
            for name in {topic for client in clients for topic in client.topics}
            for partition in range(self.topics.partition_count(name))
        }
        assert {each for client in clients for each in client.owned} == wanted
        assert self.group.state_name == "Stable"


class ClassicClient:
    """A consumer of the classic protocol; the leader deals partitions out in turn."""

    def __init__(
        self,
        stage: MigrationStage,
        *,
        topics: tuple[str, ...] = ("t",),
        instance: str | None = None,
        eager: bool = False,
        protocols: tuple[str, ...] = ("cooperative-sticky", "range"),
        session_ms: int = 30_000,
        rebalance_ms: int = 60_000,
    ) -> None:
        self.stage = stage
        self.topics = topics
        self.instance = instance
        self.eager = eager
        self.protocols = protocols
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.member_id = ""
        self.generation = -1
        self.owned: Partitions = set()
        self.joining: int | None = None
        self.syncing: int | None = None
        self.errors: list[ErrorCode] = []

    def subscription(self) -> bytes:
        owned: dict[str, list[int]] = {}
        for topic, partition in sorted(self.owned):
            owned.setdefault(topic, []).append(partition)
        return encode_versioned(
            ConsumerProtocolSubscription(
                topics=list(self.topics),
                owned_partitions=[
                    ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=each)
                    for topic, each in owned.items()
                ],
            ),
            1,
        )

    def join(self) -> None:
        if self.eager:
            self.owned = set()
        self.syncing = None
        self.joining = self.stage.join(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=self.rebalance_ms,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(
                        name=name, metadata=self.subscription()
                    )
                    for name in self.protocols
                ],
            )
        )

    def step(self) -> None:
        if self.joining is not None:
            if self.joining in self.stage.answers:
                self._on_joined(self.stage.answers[self.joining])
        elif self.syncing is not None:
            if self.syncing in self.stage.answers:
                self._on_synced(self.stage.answers[self.syncing])
        elif self.generation < 0:
            self.join()
        else:
            self._rejoin_on(self.heartbeat())

    def heartbeat(self) -> ErrorCode:
        return self.stage.heartbeat(
            HeartbeatRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
            )
        )

    def _rejoin_on(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            return
        self.errors.append(error)
        if error not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            self.owned = set()
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        self.join()

    def _on_joined(self, response: Any) -> None:
        self.joining = None
        error = response if isinstance(response, ErrorCode) else ErrorCode(response.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.join()
        elif error is not ErrorCode.NONE:
            self._rejoin_on(error)
        else:
            self.member_id = response.member_id
            self.generation = response.generation_id
            self.syncing = self.stage.sync(self.sync_request(response))

    def sync_request(self, joined: Any) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._deal(joined),
        )

    def _deal(self, joined: Any) -> list[Any]:
        """Everybody keeps what it has; what nobody has goes to those with least."""
        if not joined.members or joined.leader != self.member_id:
            return []
        dealt: dict[str, Partitions] = {}
        for each in joined.members:
            said: Any = decode_versioned(ConsumerProtocolSubscription, each.metadata)
            dealt[each.member_id] = {
                (one.topic, partition)
                for one in said.owned_partitions
                for partition in one.partitions
            }
        free = {
            (name, partition)
            for name in self.topics
            for partition in range(self.stage.topics.partition_count(name))
        }.difference(*dealt.values())
        for each in sorted(free):
            min(dealt.values(), key=len).add(each)
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_assignment(each)
            )
            for member_id, each in dealt.items()
        ]

    def _on_synced(self, response: Any) -> None:
        self.syncing = None
        error = response if isinstance(response, ErrorCode) else ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            self._rejoin_on(error)
            return
        assigned = decode_assignment(response.assignment)
        gave_up = self.owned - assigned
        self.owned = assigned
        if gave_up and not self.eager:
            self.join()


class ConsumerClient:
    """A consumer of the consumer protocol."""

    def __init__(
        self,
        stage: MigrationStage,
        member_id: str,
        *,
        topics: tuple[str, ...] = ("t",),
        instance: str | None = None,
    ) -> None:
        self.stage = stage
        self.member_id = member_id
        self.topics = topics
        self.instance = instance
        self.epoch = 0
        self.owned: Partitions = set()

    def step(self) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(self.owned):
            by_topic.setdefault(topic, []).append(partition)
        response = self.stage.consumer_heartbeat(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                instance_id=self.instance,
                member_epoch=self.epoch,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=list(self.topics),
                topic_partitions=[
                    ConsumerGroupHeartbeatRequest.TopicPartitions(
                        topic_id=self.stage.topics.id(topic), partitions=each
                    )
                    for topic, each in by_topic.items()
                ],
            )
        )
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {
                (facts.name, partition)
                for each in response.assignment.topic_partitions
                for facts in (self.stage.topics.topic_by_id(each.topic_id),)
                if facts is not None
                for partition in each.partitions
            }

    def leave(self, epoch: int = -1) -> None:
        self.owned = set()
        self.stage.consumer_heartbeat(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                instance_id=self.instance,
                member_epoch=epoch,
            )
        )


def encode_assignment(partitions: Partitions, user_data: bytes | None = None) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=each)
            for topic, each in by_topic.items()
        ],
        user_data=user_data,
    )
    return encode_versioned(message, 1)


def decode_assignment(data: bytes) -> Partitions:
    if not data:
        return set()
    message: Any = decode_versioned(ConsumerProtocolAssignment, data)
    return {
        (each.topic, partition)
        for each in message.assigned_partitions
        for partition in each.partitions
    }


@pytest.fixture(name="Stage")
def stage_class() -> type[MigrationStage]:
    return MigrationStage


@pytest.fixture
def stage() -> MigrationStage:
    return MigrationStage()


@pytest.fixture(name="encode_assignment")
def encode_assignment_function() -> Callable[..., bytes]:
    return encode_assignment
