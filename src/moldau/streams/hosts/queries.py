"""Interactive queries: reads the stores of the tasks that run in this instance.

A query runs in the thread that owns the task, between two turns of its loop, so it sees every
update of a record or none. What it returns is complete: iterators are read to their end there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.client.topics import TopicPartition
from moldau.streams.errors import (
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    UnknownStateStoreError,
)
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.hosted_task import HostedTask, Stage
from moldau.streams.hosts.partitioning import default_partition
from moldau.streams.hosts.stream_thread import StreamThread
from moldau.streams.machine.definitions import Partitioner
from moldau.streams.machine.lifecycle import State
from moldau.streams.machine.placement import HostTasks, Placed
from moldau.streams.machine.subtopologies import Plan, SubTopology, TaskId
from moldau.streams.serdes import SerdeLike, serde
from moldau.streams.stores.with_headers import with_or_without_headers

QUERY_TIMEOUT_S = 30.0

Read = Callable[[Any], Any]


class QueryHost(Protocol):
    """The application, as far as queries see it."""

    plan: Plan

    @property
    def threads(self) -> list[StreamThread]: ...

    @property
    def admin(self) -> Administration: ...

    @property
    def global_stores(self) -> Mapping[str, Any]: ...

    @property
    def partition_counts(self) -> Mapping[str, int]: ...

    @property
    def placements(self) -> list[Placed]: ...

    @property
    def state(self) -> State: ...


@dataclass(frozen=True, slots=True)
class HostInfo:
    """Where an instance answers queries: its `application.server`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> HostInfo:
        host, _, port = text.rpartition(":")
        return cls(host, int(port))


@dataclass(frozen=True, slots=True)
class KeyQueryMetadata:
    """Which instance has a key."""

    active_host: HostInfo | None
    standby_hosts: tuple[HostInfo, ...]
    partition: int


@dataclass(frozen=True, slots=True)
class StreamsMetadata:
    """What an instance has."""

    host_info: HostInfo
    state_store_names: frozenset[str]
    topic_partitions: frozenset[TopicPartition]
    standby_state_store_names: frozenset[str]
    standby_topic_partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class LagInfo:
    """How far a local store is behind the end of its changelog."""

    current_offset_position: int
    end_offset_position: int

    @property
    def offset_lag(self) -> int:
        return max(0, self.end_offset_position - self.current_offset_position)


class LocalStore:
    """A store of this instance: all its partitions that are here, as one.

    counts = streams.store("counts")
    counts.get("hello")
    """

    def __init__(
        self,
        queries: Queries,
        name: str,
        stale: bool,
        partitions: Collection[int] | None = None,
        headers: bool = False,
    ) -> None:
        self._headers = headers
        self._queries = queries
        self._name = name
        self._stale = stale
        self._partitions = partitions

    def _read(self, read: Read) -> list[Any]:
        def read_shown(store: Any) -> Any:
            return read(with_or_without_headers(store, headers=self._headers))

        found = self._queries.read(self._name, read_shown, stale=self._stale)
        if self._partitions is None:
            return [found[each] for each in sorted(found)]
        for each in self._partitions:
            if each not in found:
                raise InvalidStateStorePartitionError(
                    f"The specified partition {each} for store {self._name} does not exist."
                )
        return [found[each] for each in sorted(set(self._partitions))]

    @property
    def partitions(self) -> frozenset[int]:
        """Those that are here."""
        return frozenset(self._queries.read(self._name, lambda store: None, stale=self._stale))

    def _first(self, read: Read) -> Any:
        return next((each for each in self._read(read) if each is not None), None)

    def _together(self, read: Callable[[Any], Iterable[Any]]) -> list[Any]:
        return [entry for part in self._read(lambda store: list(read(store))) for entry in part]

    def get(self, key: Any, *window: int) -> Any:
        """The value of a key; of a window store also its start, of a session start and end."""
        return self._first(lambda store: store.get(key, *window))

    def get_as_of(self, key: Any, timestamp: int) -> Any:
        """The version of a key at a time, in a versioned store."""
        return self._first(lambda store: store.get_as_of(key, timestamp))

    def range(self, start: Any = None, end: Any = None) -> list[Any]:
        """The entries from `start` to `end`, both included, in the order of each partition."""
        return self._together(lambda store: store.range(start, end))

    def reverse_range(self, start: Any = None, end: Any = None) -> list[Any]:
        """The same, the last first."""
        return self._together(lambda store: store.reverse_range(start, end))

    def prefix_scan(self, prefix: bytes) -> list[Any]:
        """The entries whose key's bytes start with `prefix`."""
        return self._together(lambda store: store.prefix_scan(prefix))

    def all(self) -> list[Any]:
        """All entries."""
        return self._together(lambda store: store.all())

    def reverse_all(self) -> list[Any]:
        """The same, the last of each partition first."""
        return self._together(lambda store: store.reverse_all())

    def backward_all(self) -> list[Any]:
        """All windows, the last of each partition first."""
        return self._together(lambda store: store.backward_all())

    def fetch(self, key: Any, *between: int) -> list[Any]:
        """The windows of a key that start from one time to another: fetch("a", 0, 9_000); the
        sessions of a key: fetch("a")."""
        return self._together(lambda store: store.fetch(key, *between))

    def backward_fetch(self, key: Any, *between: int) -> list[Any]:
        """The same, the last first."""
        return self._together(lambda store: store.backward_fetch(key, *between))

    def fetch_range(self, key_from: Any, key_to: Any, *between: int) -> list[Any]:
        """The same of a range of keys, both included; without a bound all on that side."""
        return self._together(lambda store: store.fetch_range(key_from, key_to, *between))

    def backward_fetch_range(self, key_from: Any, key_to: Any, *between: int) -> list[Any]:
        """The same, the last of each partition first."""
        return self._together(lambda store: store.backward_fetch_range(key_from, key_to, *between))

    def fetch_all(self, low: int, high: int) -> list[Any]:
        """The windows of all keys that start from `low` to `high`."""
        return self._together(lambda store: store.fetch_all(low, high))

    def backward_fetch_all(self, low: int, high: int) -> list[Any]:
        """The same, the last of each partition first."""
        return self._together(lambda store: store.backward_fetch_all(low, high))

    def find_sessions(self, key: Any, end_min: int, start_max: int) -> list[Any]:
        """The sessions of a key that end at `end_min` or later and start by `start_max`."""
        return self._together(lambda store: store.find_sessions(key, end_min, start_max))

    def backward_find_sessions(self, key: Any, end_min: int, start_max: int) -> list[Any]:
        """The same, the last first."""
        return self._together(lambda store: store.backward_find_sessions(key, end_min, start_max))

    def find_sessions_range(
        self, key_from: Any, key_to: Any, end_min: int, start_max: int
    ) -> list[Any]:
        """The same of a range of keys, both included; without a bound all on that side."""
        bounds = key_from, key_to, end_min, start_max
        return self._together(lambda store: store.find_sessions_range(*bounds))

    def backward_find_sessions_range(
        self, key_from: Any, key_to: Any, end_min: int, start_max: int
    ) -> list[Any]:
        """The same, the last of each partition first."""
        bounds = key_from, key_to, end_min, start_max
        return self._together(lambda store: store.backward_find_sessions_range(*bounds))

    def approximate_num_entries(self) -> int:
        """How many entries there are."""
        return sum(self._read(lambda store: store.approximate_num_entries()))


class Queries:
    """See the module."""

    def __init__(self, host: QueryHost) -> None:
        self.host = host

    def store(
        self,
        name: str,
        *,
        stale: bool = False,
        partitions: Collection[int] | None = None,
        headers: bool = False,
    ) -> LocalStore:
        """A store by name; `stale` also reads restoring and standby tasks. Of `partitions` alone,
        if they are given; values with their headers, if `headers` asks for them."""
        self.host.state.check_queryable()
        self.subtopology(name)
        return LocalStore(self, name, stale, partitions, headers)

    def subtopology(self, name: str) -> SubTopology | None:
        """The sub-topology of a store; `None` for a global one."""
        if name in self.host.global_stores:
            return None
        for each in self.host.plan.subtopologies:
            if name in each.stores:
                return each
        raise UnknownStateStoreError(
            f"Cannot get state store {name} because no such store is registered in the topology."
        )

    def read(self, name: str, read: Read, *, stale: bool = False) -> dict[int, Any]:
        """What `read` returns for the store of each local partition."""
        subtopology = self.subtopology(name)
        if subtopology is None:
            return {0: read(self.host.global_stores[name])}
        found: dict[int, Any] = {}
        for thread in self.host.threads:

            def on_thread(thread: StreamThread = thread) -> dict[int, Any]:
                return {
                    task.id.partition: read(task.task.stores[name])
                    for task in _tasks(thread, subtopology.number, stale)
                }

            found |= thread.call(on_thread, QUERY_TIMEOUT_S)
        if not found:
            raise InvalidStateStoreError(
                f"The state store, {name}, may have migrated to another instance."
            )
        return found

    # Where the stores are.

    def partition_of(self, name: str, key: Any, key_serde: SerdeLike) -> int:
        """The partition of a key, by the default partitioner."""
        subtopology = self.subtopology(name)
        if subtopology is None:
            return 0
        chosen = serde(key_serde)
        data = None if chosen is None else chosen.serialize(name, key)
        if data is None:
            raise InvalidStateStoreError(f"the key {key!r} of store {name} has no bytes")
        return default_partition(data, self.partition_count(name))

    def _partition_by(
        self, partitioner: Partitioner, name: str, key: Any, key_serde: SerdeLike
    ) -> int:
        subtopology = self.subtopology(name)
        topic = "" if subtopology is None else min(subtopology.inputs(self.host.partition_counts))
        found = partitioner(topic, key, None, self.partition_count(name))
        if found is None:
            return self.partition_of(name, key, key_serde)
        if isinstance(found, int):
            return found
        chosen = list(found)
        if len(chosen) != 1:
            raise ValueError(
                "The partitions returned by StreamPartitioner#partitions method when used for "
                "fetching KeyQueryMetadata for key should be a singleton set"
            )
        return chosen[0]

    def partition_count(self, name: str) -> int:
        """How many partitions a store has."""
        subtopology = self.subtopology(name)
        if subtopology is None:
            return 1
        counts = self.host.partition_counts
        return max(counts.get(topic, 0) for topic in subtopology.inputs(counts))

    def metadata_for_key(
        self, name: str, key: Any, key_serde: SerdeLike, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata:
        """Which instance has a key of a store."""
        self.host.state.check_queryable()
        if partitioner is None:
            partition = self.partition_of(name, key, key_serde)
        else:
            partition = self._partition_by(partitioner, name, key, key_serde)
        subtopology = self.subtopology(name)
        if subtopology is None:
            return KeyQueryMetadata(None, (), 0)
        task = TaskId(subtopology.number, partition)
        hosts = self._hosts()
        active = [host for host, tasks in hosts.items() if task in tasks.active]
        standby = [host for host, tasks in hosts.items() if task in tasks.standby]
        return KeyQueryMetadata(
            HostInfo.parse(active[0]) if active else None,
            tuple(HostInfo.parse(host) for host in sorted(standby)),
            partition,
        )

    def all_metadata(self) -> list[StreamsMetadata]:
        """All instances that have an `application.server`."""
        self.host.state.check_queryable()
        return [self._metadata(host, tasks) for host, tasks in sorted(self._hosts().items())]

    def metadata_for_store(self, name: str) -> list[StreamsMetadata]:
        """The instances that have a partition of a store."""
        self.host.state.check_queryable()
        self.subtopology(name)
        return [
            each
            for each in self.all_metadata()
            if name in each.state_store_names or name in each.standby_state_store_names
        ]

    def active_partitions(self, name: str) -> dict[str, frozenset[int]]:
        """The partitions of a store that each instance has, by `application.server`."""
        subtopology = self.subtopology(name)
        number = None if subtopology is None else subtopology.number
        return {
            host: frozenset(task.partition for task in tasks.active if task.subtopology == number)
            for host, tasks in self._hosts().items()
        }

    def _hosts(self) -> Mapping[str, HostTasks]:
        found: dict[str, HostTasks] = {}
        for placed in self.host.placements:
            found.update(placed.hosts)
        return found

    def _metadata(self, host: str, tasks: HostTasks) -> StreamsMetadata:
        plan = self.host.plan
        partitions = plan.tasks(self.host.partition_counts)

        def stores(ids: frozenset[TaskId]) -> frozenset[str]:
            numbers = {task.subtopology for task in ids}
            return frozenset(
                name
                for each in plan.subtopologies
                if each.number in numbers
                for name in each.stores
            )

        def topics(ids: frozenset[TaskId]) -> frozenset[TopicPartition]:
            return frozenset(
                TopicPartition(*key) for task in ids for key in partitions.get(task, ())
            )

        return StreamsMetadata(
            HostInfo.parse(host),
            stores(tasks.active),
            topics(tasks.active),
            stores(tasks.standby),
            topics(tasks.standby),
        )

    def lags(self) -> dict[str, dict[int, LagInfo]]:
        """How far each local store is behind its changelog, by store and partition."""
        positions: dict[TopicPartition, tuple[str, int]] = {}
        for thread in self.host.threads:
            for task in [*thread.tasks.active.values(), *thread.tasks.standbys.values()]:
                for log in task.logs:
                    positions[log.partition] = log.store, log.position
        if not positions:
            return {}
        ends = self.host.admin.end_offsets(positions)
        found: dict[str, dict[int, LagInfo]] = {}
        for key, (store, position) in positions.items():
            found.setdefault(store, {})[key.partition] = LagInfo(position, ends[key])
        return found


def _tasks(thread: StreamThread, subtopology: int, stale: bool) -> list[HostedTask]:
    active = [task for task in thread.tasks.active.values() if task.id.subtopology == subtopology]
    if not stale:
        return [task for task in active if task.stage is Stage.RUNNING]
    return active + [
        task for task in thread.tasks.standbys.values() if task.id.subtopology == subtopology
    ]
