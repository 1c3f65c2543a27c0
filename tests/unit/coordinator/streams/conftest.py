"""A stage for streams groups: decisions are carried out at once, time is virtual.

What is written goes through its encoded form, and after every step a section that only
replays the log must equal the live one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.group import ClientInfo, Group
from moldau.broker.coordinator.group.machine.streams.events import CreateInternalTopics
from moldau.broker.coordinator.group.machine.streams.groups import StreamsGroups
from moldau.broker.coordinator.machine.decision import Act, Cancel, Outbox, Schedule
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Request
from moldau.wire.messages import StreamsGroupHeartbeatResponse as Response
from moldau.wire.record_values import decode_coordinator_record
from support.group_facts import FakeSettings, FakeTopics

START_MS = 1_700_000_000_000
CLIENT = ClientInfo("client", "/127.0.0.1")


def subtopology(
    key: str = "0",
    *,
    sources: tuple[str, ...] = (),
    repartition_sources: tuple[tuple[str, int], ...] = (),
    sinks: tuple[str, ...] = (),
    changelogs: tuple[str, ...] = (),
    copartitions: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (),
) -> Request.Subtopology:
    return Request.Subtopology(
        subtopology_id=key,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[
            Request.TopicInfo(name=name, partitions=count) for name, count in repartition_sources
        ],
        state_changelog_topics=[
            Request.TopicInfo(
                name=name,
                replication_factor=3,
                topic_configs=[Request.KeyValue(key="cleanup.policy", value="compact")],
            )
            for name in changelogs
        ],
        copartition_groups=[
            Request.CopartitionGroup(
                source_topics=list(external), repartition_source_topics=list(internal)
            )
            for external, internal in copartitions
        ],
    )


def topology(*subtopologies: Request.Subtopology, epoch: int = 0) -> Request.Topology:
    return Request.Topology(epoch=epoch, subtopologies=list(subtopologies))


def task_ids(tasks: Mapping[str, Collection[int]]) -> list[Request.TaskIds]:
    return [
        Request.TaskIds(subtopology_id=key, partitions=sorted(each)) for key, each in tasks.items()
    ]


def tasks_of(ids: list[Response.TaskIds] | None) -> dict[str, list[int]] | None:
    return None if ids is None else {each.subtopology_id: each.partitions for each in ids}


class StreamsStage:
    def __init__(self, topics: Mapping[str, int] | None = None, **config: Any) -> None:
        self.config = GroupConfig(**config)
        self.topics = FakeTopics(**({"in": 4} if topics is None else topics))
        self.settings = FakeSettings(
            streams_initial_rebalance_delay_ms=0, streams_assignment_interval_ms=0
        )
        self.now_ms = START_MS
        self.written: list[tuple[bytes, bytes | None]] = []
        self.actions: list[CreateInternalTopics] = []
        self.topology = topology(subtopology(sources=("in",)))
        self.timers = TimerQueue()
        self.groups = StreamsGroups(self.config, self.topics, self.settings)

    # Carrying out decisions.

    def perform(self, out: Outbox) -> list[str]:
        """The kinds of records written, in order."""
        kinds = []
        for record in out.records:
            key, value = record.encode()
            self.groups.replay(*decode_coordinator_record("group", key, value))
            self.written.append((key, value))
            name = type(record.key).__name__.removeprefix("StreamsGroup").removesuffix("Key")
            kinds.append(name if record.value is not None else f"-{name}")
        for effect in out.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self.timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self.timers.cancel(timer)
                case Act(action):
                    assert isinstance(action, CreateInternalTopics)
                    self.actions.append(action)
        assert self.replayed().groups == self.groups.groups
        return kinds

    def replayed(self) -> StreamsGroups:
        groups = StreamsGroups(self.config, self.topics, self.settings)
        for key, value in self.written:
            groups.replay(*decode_coordinator_record("group", key, value))
        return groups

    def reload(self) -> None:
        """Forget all but the log, as a coordinator that moved."""
        self.groups = self.replayed()
        self.timers = TimerQueue()
        out = Outbox(self.now_ms)
        self.groups.on_loaded(out)
        self.perform(out)

    def advance(self, delay_ms: int) -> list[str]:
        end_ms = self.now_ms + delay_ms
        kinds = []
        while (at_ms := self.timers.next_at_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            timer: Any = self.timers.pop_due(self.now_ms)
            if timer is not None:
                out = Outbox(self.now_ms)
                self.groups.on_timer(timer, out)
                kinds += self.perform(out)
        self.now_ms = end_ms
        return kinds

    # Requests.

    def send(
        self, request: Request, *, client: ClientInfo = CLIENT, other: Group | None = None
    ) -> Response:
        out = Outbox(self.now_ms)
        response = self.groups.heartbeat(request, client, out, other)
        self.kinds = self.perform(out)
        return response

    def refused(self, request: Request, **options: Any) -> ErrorCode:
        with pytest.raises(ApiError) as caught:
            self.send(request, **options)
        return caught.value.code

    def joining(self, member: str = "a", *, process: str | None = None, **fields: Any) -> Request:
        fields.setdefault("topology", self.topology)
        return Request(
            group_id="g",
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id=process or f"process-{member}",
            **fields,
        )

    def join(self, member: str = "a", *, process: str | None = None, **fields: Any) -> Response:
        return self.send(self.joining(member, process=process, **fields))

    def beating(
        self,
        member: str,
        epoch: int,
        owned: Mapping[str, Collection[int]] | None = None,
        standby: Mapping[str, Collection[int]] | None = None,
        **fields: Any,
    ) -> Request:
        request = Request(group_id="g", member_id=member, member_epoch=epoch, **fields)
        if owned is not None:
            request.active_tasks = task_ids(owned)
            request.standby_tasks = task_ids(standby or {})
            request.warmup_tasks = []
        return request

    def beat(self, member: str, epoch: int | None = None, *args: Any, **fields: Any) -> Response:
        """A heartbeat in the epoch that the coordinator knows."""
        known = self.group.members[member].member_epoch if epoch is None else epoch
        return self.send(self.beating(member, known, *args, **fields))

    def leave(self, member: str, **fields: Any) -> Response:
        return self.send(self.beating(member, -1, **fields))

    def settle(self) -> None:
        """Heartbeats of obedient members until nothing moves any more."""
        for _ in range(10):
            for member_id in list(self.group.members):
                member = self.group.members[member_id]
                self.beat(member_id, None, member.assigned.active_tasks, member.assigned.standby)
        assert self.group.state_name == "Stable"

    @property
    def group(self) -> Any:
        return self.groups.groups["g"]


def statuses(response: Response) -> list[int]:
    return [status.status_code for status in response.status or ()]


@pytest.fixture(name="StreamsStage")
def stage_class() -> type[StreamsStage]:
    return StreamsStage


@pytest.fixture
def streams() -> StreamsStage:
    return StreamsStage()


@pytest.fixture(name="subtopology")
def subtopology_function() -> Callable[..., Request.Subtopology]:
    return subtopology


@pytest.fixture(name="topology")
def topology_function() -> Callable[..., Request.Topology]:
    return topology


@pytest.fixture(name="tasks_of")
def tasks_of_function() -> Callable[..., dict[str, list[int]] | None]:
    return tasks_of


@pytest.fixture(name="statuses")
def statuses_function() -> Callable[..., list[int]]:
    return statuses
