"""A streams group that lives on two brokers at once, heartbeat by heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
)
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Heartbeat
from moldau.wire.record_values import decode_coordinator_record
from moldau.wire.records import decode_batches
from support.both import IGNORED, Both, Side

OFFSETS_PARTITION_COUNT = 50
GROUP_CONFIG = 32
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    # Longer than any conversation, however slow the machine is.
    "group.streams.max.session.timeout.ms": "3600000",
    "group.streams.session.timeout.ms": "3600000",
}
# Hashes of metadata cover topic ids, which each broker draws.
NOT_COMPARED = IGNORED | {"assignment_timestamp", "metadata_hash", "status_detail"}

Tasks = Mapping[str, list[int]]


def subtopology(
    key: str = "0",
    *,
    sources: tuple[str, ...] = (),
    repartition: tuple[str, ...] = (),
    sinks: tuple[str, ...] = (),
    changelogs: tuple[str, ...] = (),
    copartitioned: bool = False,
) -> Heartbeat.Subtopology:
    groups = []
    if copartitioned:
        groups.append(
            Heartbeat.CopartitionGroup(
                source_topics=list(range(len(sources))),
                repartition_source_topics=list(range(len(repartition))),
            )
        )
    return Heartbeat.Subtopology(
        subtopology_id=key,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[Heartbeat.TopicInfo(name=name) for name in repartition],
        state_changelog_topics=[
            Heartbeat.TopicInfo(
                name=name,
                topic_configs=[Heartbeat.KeyValue(key="cleanup.policy", value="compact")],
            )
            for name in changelogs
        ],
        copartition_groups=groups,
    )


def topology(*subtopologies: Heartbeat.Subtopology, epoch: int = 0) -> Heartbeat.Topology:
    return Heartbeat.Topology(epoch=epoch, subtopologies=list(subtopologies))


PLAIN = topology(subtopology(sources=("four",)))


def task_ids(tasks: Tasks) -> list[Heartbeat.TaskIds]:
    return [
        Heartbeat.TaskIds(subtopology_id=key, partitions=list(partitions))
        for key, partitions in tasks.items()
    ]


class StreamsStage(Both):
    def __init__(self, ours: Side, kafkas: Side) -> None:
        super().__init__(ours, kafkas)
        self.held: dict[tuple[str, str], tuple[int, Tasks, Tasks]] = {}
        self._barriers = 0

    def request(self, group: str, member: str, epoch: int, **fields: Any) -> Any:
        return self.ask(
            member or "nobody",
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            0,
            lambda side: Heartbeat(group_id=group, member_id=member, member_epoch=epoch, **fields),
        )

    def joining(self, **fields: Any) -> dict[str, Any]:
        return {
            "topology": PLAIN,
            "rebalance_timeout_ms": 60_000,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        } | fields

    def join(self, group: str, member: str, **fields: Any) -> Any:
        fields = {"process_id": f"process-{member}"} | fields
        return self.keep(group, member, self.request(group, member, 0, **self.joining(**fields)))

    def beat(self, group: str, member: str, *, obeying: bool = True, **fields: Any) -> Any:
        """A heartbeat of a member that has what it was given last, or says nothing of it."""
        epoch, active, standby = self.held[group, member]
        if obeying:
            fields["active_tasks"] = task_ids(active)
            fields["standby_tasks"] = task_ids(standby)
            fields["warmup_tasks"] = []
        return self.keep(group, member, self.request(group, member, epoch, **fields))

    def keep(self, group: str, member: str, answer: Any) -> Any:
        if answer.error_code == ErrorCode.NONE:
            _, active, standby = self.held.get((group, member), (0, {}, {}))
            if answer.active_tasks is not None:
                active = {each.subtopology_id: each.partitions for each in answer.active_tasks}
                standby = {each.subtopology_id: each.partitions for each in answer.standby_tasks}
            self.held[group, member] = (answer.member_epoch, active, standby)
        return answer

    def active(self, group: str, member: str) -> Tasks:
        return self.held[group, member][1]

    def settle(self, group: str, *members: str) -> None:
        for _ in range(4):
            for member in members:
                self.beat(group, member)
        assert self.describe(group) == "Stable"

    def beat_until(self, group: str, member: str, settled: Callable[[Any], bool]) -> Any:
        epoch, _, _ = self.held[group, member]
        answer = self.ask_until(
            member,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            0,
            lambda side: Heartbeat(group_id=group, member_id=member, member_epoch=epoch),
            settled=settled,
        )
        return self.keep(group, member, answer)

    def describe(self, *groups: str) -> str:
        request = StreamsGroupDescribeRequest(
            group_ids=list(groups), include_authorized_operations=True
        )
        answer = self.ask("observer", ApiKey.STREAMS_GROUP_DESCRIBE, 0, lambda side: request)
        return str(answer.groups[0].group_state)

    def listed(self, group: str, **fields: Any) -> list[Any]:
        """What the listing says of one group; others come and go."""
        found = []
        for side in self.sides:
            answer = side.connection("observer").call(
                ApiKey.LIST_GROUPS, 5, ListGroupsRequest(**fields)
            )
            found.append([side.comparable(e) for e in answer.groups if e.group_id == group])
        assert found[0] == found[1]
        return found[0]

    def configure(self, group: str, **configs: str) -> None:
        self._alter(group, {f"streams.{key.replace('_', '.')}": configs[key] for key in configs})
        # Changes are taken in one after the other: once a later one shows, this one is in force.
        self._barriers += 1
        interval = str(5_000 + self._barriers)
        self._alter("barrier", {"streams.heartbeat.interval.ms": interval})
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=GROUP_CONFIG,
            resource_name="barrier",
            configuration_keys=["streams.heartbeat.interval.ms"],
        )
        self.ask_until(
            "observer",
            ApiKey.DESCRIBE_CONFIGS,
            4,
            lambda side: DescribeConfigsRequest(resources=[resource]),
            settled=lambda answer: answer.results[0].configs[0].value == interval,
        )

    def _alter(self, group: str, configs: Mapping[str, str]) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP_CONFIG,
            resource_name=group,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)
                for name, value in configs.items()
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self.ask("observer", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, lambda side: request)

    def commit(self, group: str, member: str, epoch: int, partition: int, **fields: Any) -> Any:
        def make(side: Side) -> Message:
            return OffsetCommitRequest(
                group_id=group,
                member_id=member,
                generation_id_or_member_epoch=epoch,
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=fields.get("topic", "four"),
                        partitions=[
                            OffsetCommitRequest.OffsetCommitRequestPartition(
                                partition_index=partition, committed_offset=7
                            )
                        ],
                    )
                ],
            )

        answer = self.ask("observer", ApiKey.OFFSET_COMMIT, fields.get("version", 9), make)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def fetch(self, group: str, member: str | None, epoch: int) -> Any:
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group, member_id=member, member_epoch=epoch, topics=None
        )
        request = OffsetFetchRequest(groups=[asked])
        return self.ask("observer", ApiKey.OFFSET_FETCH, 9, lambda side: request).groups[0]

    def delete(self, group: str) -> ErrorCode:
        request = DeleteGroupsRequest(groups_names=[group])
        answer = self.ask("observer", ApiKey.DELETE_GROUPS, 2, lambda side: request)
        return ErrorCode(answer.results[0].error_code)

    def compare_records(self, group: str) -> list[str]:
        """What both brokers wrote about a group; the kinds of records."""
        ours, kafkas = (records_of(side, group) for side in self.sides)
        assert ours == kafkas
        return [kind for kind, *_ in ours]


def records_of(side: Side, group: str) -> list[tuple[Any, ...]]:
    fetch = FetchRequest(
        max_wait_ms=0,
        max_bytes=10_000_000,
        topics=[
            FetchRequest.FetchTopic(
                topic="__consumer_offsets",
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition_for(group, OFFSETS_PARTITION_COUNT),
                        partition_max_bytes=10_000_000,
                    )
                ],
            )
        ],
    )
    answer = side.connection("observer").call(ApiKey.FETCH, 12, fetch)
    found = []
    for _, records in decode_batches(answer.responses[0].partitions[0].records):
        for record in records:
            assert record.key is not None
            key, value = decode_coordinator_record("group", record.key, record.value)
            if getattr(key, "group_id", None) == group:
                kind = ("" if record.value is not None else "-") + type(key).__name__
                found.append((kind, side.comparable(key), side.comparable(value)))
    return found
