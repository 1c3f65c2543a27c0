"""A thread as a member of a streams group (KIP-1071): the broker places the tasks."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence

from moldau.client.consumer.membership.machine.streams_interface import (
    INCORRECTLY_PARTITIONED,
    MISSING_SOURCE_TOPICS,
    SHUTDOWN_APPLICATION,
    GroupStatus,
    InternalTopic,
    StreamsGroupProtocol,
    SubtopologyInfo,
    TasksByEndpoint,
)
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.streams.errors import MissingSourceTopicError, TopologyError
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.machine.placement import HostTasks, MemberState, Placed
from moldau.streams.machine.subtopologies import (
    Plan,
    SubTopology,
    TaskId,
    changelog_config,
    repartition_config,
)

_log = logging.getLogger(__name__)


class StreamsGroupMember:
    """Of one thread. Called on the consumer's thread; `placed` is read by the stream thread."""

    def __init__(
        self,
        plan: Plan,
        settings: StreamsSettings,
        number: int,
        *,
        state: Callable[[], MemberState],
        on_placed: Callable[[Placed], None],
    ) -> None:
        self._plan = plan
        self._state = state
        self._on_placed = on_placed
        self._lock = threading.Lock()
        self._placed = Placed()
        self._failure: Exception | None = None
        self._number = number
        self.subtopologies: Sequence[SubtopologyInfo] = [
            _info(plan, each, settings) for each in plan.subtopologies
        ]
        self.strategy = StreamsGroupProtocol(self)

    @property
    def placed(self) -> Placed:
        """What the broker gave this member last; raises what it finds wrong with the topology."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return self._placed

    # For the membership.

    @property
    def process_id(self) -> str:
        return self._state().process_id

    @property
    def member_id(self) -> str:
        """The same after a restart: who comes back takes its tasks over at once."""
        process = uuid.UUID(self.process_id).int
        return str(uuid.UUID(int=(process + self._number) % 2**128))

    @property
    def endpoint(self) -> str:
        return self._state().endpoint

    @property
    def shutdown_requested(self) -> bool:
        return self._state().shutdown

    def partitions_of(
        self, task: tuple[str, int], counts: Mapping[str, int]
    ) -> frozenset[TopicPartition] | None:
        number, partition = int(task[0]), task[1]
        for each in self._plan.subtopologies:
            if each.number == number:
                topics = each.inputs(counts)
                if any(topic not in counts for topic in topics):
                    return None
                return frozenset(
                    TopicPartition(topic, partition)
                    for topic in topics
                    if partition < counts[topic]
                )
        return frozenset()

    def on_tasks(
        self, active: frozenset[tuple[str, int]], standby: frozenset[tuple[str, int]]
    ) -> None:
        self._change(active=_ids(active), standby=_ids(standby))

    def on_endpoints(self, tasks: TasksByEndpoint) -> None:
        self._change(
            hosts={
                endpoint: HostTasks(active=self._tasks(active), standby=self._tasks(standby))
                for endpoint, (active, standby) in tasks.items()
            }
        )

    def on_status(self, status: Sequence[GroupStatus]) -> None:
        for code, detail in status:
            if code == SHUTDOWN_APPLICATION:
                self._change(shutdown=True)
            elif code == MISSING_SOURCE_TOPICS:
                self._fail(MissingSourceTopicError(f"Missing source topics: {detail}"))
            elif code == INCORRECTLY_PARTITIONED:
                self._fail(TopologyError(detail))

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._failure = error

    def _tasks(self, partitions: frozenset[TopicPartition]) -> frozenset[TaskId]:
        found = (self._plan.task_of(*key) for key in partitions)
        return frozenset(task for task in found if task is not None)

    def _change(
        self,
        *,
        active: frozenset[TaskId] | None = None,
        standby: frozenset[TaskId] | None = None,
        hosts: Mapping[str, HostTasks] | None = None,
        shutdown: bool = False,
    ) -> None:
        with self._lock:
            before = self._placed
            placed = self._placed = Placed(
                active=before.active if active is None else active,
                standby=before.standby if standby is None else standby,
                hosts=before.hosts if hosts is None else hosts,
                shutdown=before.shutdown or shutdown,
            )
        self._on_placed(placed)


def _ids(tasks: frozenset[tuple[str, int]]) -> frozenset[TaskId]:
    return frozenset(TaskId(int(subtopology), partition) for subtopology, partition in tasks)


def _info(plan: Plan, subtopology: SubTopology, settings: StreamsSettings) -> SubtopologyInfo:
    overrides = settings.topic_configs
    replication_factor = settings.replication_factor or -1
    internal = subtopology.topics | subtopology.repartition_topics
    return SubtopologyInfo(
        id=str(subtopology.number),
        source_topics=sorted(subtopology.topics),
        source_patterns=[pattern.pattern for pattern in subtopology.patterns],
        repartition_sinks=sorted(subtopology.sinks & set(plan.repartition_counts)),
        repartition_sources=[
            InternalTopic(
                topic,
                plan.repartition_counts[topic] or 0,
                replication_factor,
                repartition_config(overrides),
            )
            for topic in sorted(subtopology.repartition_topics)
        ],
        changelogs=[
            InternalTopic(
                each.topic,
                0,
                replication_factor,
                changelog_config(
                    each, overrides, additional_retention_ms=settings.additional_retention_ms
                ),
            )
            for each in subtopology.changelogs.values()
            if not each.is_source
        ],
        copartitioned=[
            group & internal for group in plan.copartitioned if len(group & internal) > 1
        ],
    )


def prefers_streams_group(admin: Administration, plan: Plan, settings: StreamsSettings) -> bool:
    """Whether an application that names no `group.protocol` joins a streams group.

    It does where the cluster has them, unless other instances are in a consumer group, or it needs
    what only a consumer group has: patterns, and settings of its own.
    """
    if any(each.patterns for each in plan.subtopologies):
        return False
    if settings.num_standby_replicas or "group.instance.id" in settings.consumer("main"):
        return False
    if admin.feature_level("streams.version") < 1:
        return False
    try:
        return not admin.has_classic_members(settings.application_id)
    except KafkaError as error:
        # Whoever may not see the group learns by joining it what is wrong.
        _log.debug("the group %s cannot be described: %s", settings.application_id, error)
        return True
