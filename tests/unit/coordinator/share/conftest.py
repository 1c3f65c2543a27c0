"""Stages for the share coordinator and for share groups: decisions are carried out at once, time is
virtual, and what is written goes through its encoded form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.share.events import InitializeShareState
from moldau.broker.coordinator.group.machine.share.groups import ShareGroups
from moldau.broker.coordinator.machine.decision import Act, Cancel, Decision, Outbox, Schedule
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.broker.coordinator.share.machine.config import ShareCoordinatorConfig
from moldau.broker.coordinator.share.machine.shard import PruneUpTo, ShareShard
from moldau.broker.coordinator.share.machine.values import SharePartitionKey, StateBatch
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from moldau.wire.record_values import decode_coordinator_record
from support.group_facts import FakeSettings, FakeTopics

START_MS = 1_700_000_000_000
CLIENT = ClientInfo("client", "/127.0.0.1")


class StateStage:
    """One shard of the share coordinator."""

    def __init__(self, *, topics: FakeTopics | None = None, **settings: int) -> None:
        self.config = ShareCoordinatorConfig(**settings)
        self.topics = topics or FakeTopics(t=3)
        self.shard = ShareShard(self.config, self.topics)
        self.now_ms = START_MS
        self.written: list[tuple[bytes, bytes | None]] = []
        self.pruned: list[int] = []
        self._timers = TimerQueue()
        self.perform(self.shard.on_loaded(self.now_ms))

    def key(self, partition: int = 0, *, group: str = "g", topic: str = "t") -> SharePartitionKey:
        return SharePartitionKey(group, self.topics.id(topic), partition)

    def perform(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            encoded = record.encode()
            self.shard.replay(
                len(self.written), NO_PRODUCER_ID, *decode_coordinator_record("share", *encoded)
            )
            self.written.append(encoded)
        for effect in decision.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self._timers.schedule(timer, self.now_ms + delay_ms)
                case Act(PruneUpTo(offset)):
                    # The shell acts once all that was appended is committed: superseded for good.
                    self.pruned.append(offset)
        return decision.response

    def advance(self, delay_ms: int) -> None:
        end_ms = self.now_ms + delay_ms
        while (at_ms := self._timers.next_at_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            timer = self._timers.pop_due(self.now_ms)
            if timer is not None:
                self.perform(self.shard.on_timer(timer, self.now_ms))
        self.now_ms = end_ms

    def replayed(self, from_offset: int = 0) -> ShareShard:
        shard = ShareShard(self.config, self.topics)
        for offset, (key, value) in enumerate(self.written):
            if offset >= from_offset:
                shard.replay(
                    offset, NO_PRODUCER_ID, *decode_coordinator_record("share", key, value)
                )
        return shard

    def initialize(
        self, key: SharePartitionKey, *, state_epoch: int = 1, start_offset: int = -1
    ) -> None:
        self.perform(
            self.shard.initialize_state(
                key, state_epoch=state_epoch, start_offset=start_offset, now_ms=self.now_ms
            )
        )

    def read(self, key: SharePartitionKey, leader_epoch: int = 0) -> Any:
        return self.perform(
            self.shard.read_state(key, leader_epoch=leader_epoch, now_ms=self.now_ms)
        )

    def write(
        self,
        key: SharePartitionKey,
        *batches: StateBatch,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = -1,
        delivery_complete_count: int = 0,
    ) -> None:
        self.perform(
            self.shard.write_state(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=batches,
                now_ms=self.now_ms,
            )
        )


class GroupStage:
    """The share groups of one shard, with a share coordinator that does what it is told later."""

    def __init__(self, *, topics: FakeTopics | None = None, **settings: Any) -> None:
        self.config = GroupConfig(**settings)
        self.topics = topics or FakeTopics(t=3)
        self.settings = FakeSettings()
        self.groups = ShareGroups(self.config, self.topics, self.settings)
        self.now_ms = START_MS
        self.written: list[tuple[bytes, bytes | None]] = []
        self.actions: list[InitializeShareState] = []
        self._timers = TimerQueue()

    def perform(self, out: Outbox) -> None:
        for record in out.records:
            encoded = record.encode()
            self.groups.replay(*decode_coordinator_record("group", *encoded))
            self.written.append(encoded)
        for effect in out.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self._timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self._timers.cancel(timer)
                case Act(InitializeShareState() as action):
                    self.actions.append(action)

    def advance(self, delay_ms: int) -> None:
        end_ms = self.now_ms + delay_ms
        while (at_ms := self._timers.next_at_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            timer: Any = self._timers.pop_due(self.now_ms)
            if timer is not None:
                out = Outbox(self.now_ms)
                self.groups.on_timer(timer, out)
                self.perform(out)
        self.now_ms = end_ms

    def heartbeat(
        self,
        member: str,
        epoch: int,
        topics: Sequence[str] | None = None,
        *,
        group: str = "g",
        rack: str | None = None,
    ) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=None if topics is None else list(topics),
        )
        out = Outbox(self.now_ms)
        response = self.groups.heartbeat(request, CLIENT, out)
        self.perform(out)
        return response

    def join(self, member: str, *topics: str, group: str = "g") -> ShareGroupHeartbeatResponse:
        return self.heartbeat(member, 0, topics or ("t",), group=group)

    def settle(self, *, fail: bool = False) -> None:
        """Let the share coordinator carry out, or refuse, everything it was asked for."""
        for action in self.actions:
            out = Outbox(self.now_ms)
            done, failed = ({}, action.topics) if fail else (action.topics, {})
            self.groups.settle_initialization(action.group_id, done, failed, out)
            self.perform(out)
        self.actions.clear()

    def replayed(self) -> ShareGroups:
        groups = ShareGroups(self.config, self.topics, self.settings)
        for key, value in self.written:
            groups.replay(*decode_coordinator_record("group", key, value))
        return groups

    def reload(self) -> None:
        self.groups = self.replayed()
        self._timers = TimerQueue()
        out = Outbox(self.now_ms)
        self.groups.on_loaded(out)
        self.perform(out)


@pytest.fixture(name="StateStage", scope="session")
def state_stage_class() -> type[StateStage]:
    return StateStage


@pytest.fixture
def states() -> StateStage:
    return StateStage()


@pytest.fixture(name="GroupStage", scope="session")
def group_stage_class() -> type[GroupStage]:
    return GroupStage


@pytest.fixture
def stage() -> GroupStage:
    return GroupStage()


@pytest.fixture(name="FakeTopics", scope="session")
def fake_topics_class() -> type[FakeTopics]:
    return FakeTopics


@pytest.fixture(name="FakeSettings", scope="session")
def fake_settings_class() -> type[FakeSettings]:
    return FakeSettings
