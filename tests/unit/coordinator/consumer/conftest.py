"""A stage on which the pure section of consumer groups plays, in virtual time.

Whatever is written goes through its encoded form. After every step a fresh section that
replays the whole log must be in the same state as the live one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.groups import ConsumerGroups
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.migration.online import OnlineMigration
from moldau.broker.coordinator.machine.decision import Cancel, CoordinatorRecord, Outbox, Schedule
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from moldau.wire.record_values import decode_coordinator_record
from support.group_facts import FakeSettings, FakeTopics

CLIENT = ClientInfo("client", "/127.0.0.1")
START_MS = 1_700_000_000_000
Partitions = dict[str, list[int]]
Written = list[tuple[bytes, bytes | None]]


def snapshot(group: ConsumerGroup) -> dict[str, Any]:
    """All that is replicated of a group, and all that is derived from that."""
    subscriptions = group.subscriptions
    return {
        "epoch": group.group_epoch,
        "hash": group.metadata_hash,
        "assignment": (group.assignment_epoch, group.assignment_timestamp_ms),
        "members": group.members,
        "static": group.static_members,
        "target": group.target,
        "names": subscriptions.by_name,
        "regexes": subscriptions.by_regex,
        "resolved": subscriptions.resolved,
        "regex_topics": subscriptions.regex_topics,
        "owners": group.owners,
        "assignors": group.assignors,
        "classic": group.classic_member_count,
        "partition_metadata": group.has_partition_metadata,
    }


class Stage:
    def __init__(self, **config: Any) -> None:
        self.config = GroupConfig(**config)
        self.topics = FakeTopics()
        self.settings = FakeSettings(consumer_assignment_interval_ms=0)
        self.section = self._new_section()
        self.now_ms = START_MS
        self.written: Written = []
        self.last: list[CoordinatorRecord] = []
        """The records of the last step."""
        self.check_reload = True
        self.timers = TimerQueue()

    # Carrying out.

    def _new_section(self) -> ConsumerGroups:
        migration = OnlineMigration(self.config, self.topics)
        return ConsumerGroups(self.config, self.topics, self.settings, migration)

    def perform(self, out: Outbox) -> None:
        self.last = list(out.records)
        for record in out.records:
            encoded = record.encode()
            self.section.replay(*decode_coordinator_record("group", *encoded))
            self.written.append(encoded)
        for effect in out.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self.timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self.timers.cancel(timer)
        if self.check_reload and out.records:
            assert self.state() == {
                group_id: snapshot(group)
                for group_id, group in self.replayed(self.written).groups.items()
            }

    def state(self) -> dict[str, Any]:
        return {each: snapshot(group) for each, group in self.section.groups.items()}

    def replayed(self, written: Iterable[tuple[bytes, bytes | None]]) -> ConsumerGroups:
        section = self._new_section()
        for key, value in written:
            section.replay(*decode_coordinator_record("group", key, value))
        return section

    def reload(self) -> None:
        """Forget all but the log, as a broker that restarts."""
        self.section = self.replayed(self.written)
        self.timers = TimerQueue()
        out = Outbox(self.now_ms)
        self.section.on_loaded(out)
        self.perform(out)

    def advance(self, delay_ms: int) -> list[CoordinatorRecord]:
        """Let time pass, firing every timer at its moment; what was written meanwhile."""
        end_ms = self.now_ms + delay_ms
        written: list[CoordinatorRecord] = []
        while True:
            at_ms = self.timers.next_at_ms()
            if at_ms is None or at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            timer = self.timers.pop_due(self.now_ms)
            if timer is not None:
                out = Outbox(self.now_ms)
                self.section.on_timer(timer, out)  # type: ignore[arg-type]
                self.perform(out)
                written += out.records
        self.now_ms = end_ms
        self.last = written
        return written

    # Requests.

    def heartbeat(
        self,
        member: str = "m1",
        epoch: int = 0,
        *,
        group: str = "g",
        owned: Mapping[Any, Iterable[int]] | None = None,
        version: int = 1,
        client: ClientInfo = CLIENT,
        other: Any = None,
        names: list[str] | None = None,
        regex: str | None = None,
        timeout_ms: int = -1,
        assignor: str | None = None,
        instance: str | None = None,
        rack: str | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None if owned is None else self._partitions(owned),
        )
        return self.send(request, version=version, client=client, other=other)

    def send(
        self,
        request: ConsumerGroupHeartbeatRequest,
        *,
        version: int = 1,
        client: ClientInfo = CLIENT,
        other: Any = None,
    ) -> ConsumerGroupHeartbeatResponse:
        out = Outbox(self.now_ms)
        response = self.section.heartbeat(request, version, client, "fresh", out, other=other)
        self.perform(out)
        return response

    def join(
        self,
        member: str = "m1",
        names: list[str] | None = None,
        *,
        timeout_ms: int = 60_000,
        **options: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        if names is None and "regex" not in options:
            names = ["t"]
        return self.heartbeat(member, 0, owned={}, names=names, timeout_ms=timeout_ms, **options)

    def refusal(self, *args: Any, **options: Any) -> ErrorCode:
        """The error of a heartbeat, which must leave nothing behind."""
        before = len(self.written)
        with pytest.raises(ApiError) as raised:
            self.heartbeat(*args, **options)
        assert len(self.written) == before
        return raised.value.code

    # Looking.

    def group(self, group: str = "g") -> ConsumerGroup:
        return self.section.groups[group]

    def shown(self, response: ConsumerGroupHeartbeatResponse) -> Partitions | None:
        """The assignment of a response, with names."""
        if response.assignment is None:
            return None
        shown = {}
        for topic in response.assignment.topic_partitions:
            facts = self.topics.topic_by_id(topic.topic_id)
            shown["?" if facts is None else facts.name] = topic.partitions
        return shown

    def kinds(self) -> list[str]:
        """The kinds of the last step's records, in order; a minus before tombstones."""
        return [
            ("-" if record.value is None else "")
            + type(record.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
            for record in self.last
        ]

    def _partitions(
        self, owned: Mapping[Any, Iterable[int]]
    ) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
        """By name or id."""
        topics = []
        for topic, partitions in owned.items():
            facts = self.topics.topic(topic)
            topic_id = UUID(int=999) if facts is None else facts.id
            if isinstance(topic, UUID):
                topic_id = topic
            topics.append(
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=topic_id, partitions=list(partitions)
                )
            )
        return topics


@pytest.fixture(name="Stage")
def stage_class() -> type[Stage]:
    return Stage


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.topics.create("t", 4)
    return stage


@pytest.fixture(name="snapshot")
def snapshot_function() -> Any:
    return snapshot
