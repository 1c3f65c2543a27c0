"""Partitions on this node: replication, logs, log directories, fetchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.disk import Disk
from moldau.broker.log.manager import LogManager
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metrics import tables as t
from moldau.broker.replication.fetchers import ReplicaFetchers
from moldau.broker.replication.machine.role import Role
from moldau.broker.replication.manager import ReplicaManager
from moldau.broker.replication.partition import Partition
from moldau.metrics import Spec
from moldau.metrics.registry import Reading

Samples: TypeAlias = Iterator[tuple[Spec, tuple[str, ...], Reading]]

#: As Kafka: a transaction is late this long after its timeout, which is not in the log.
LATE_TRANSACTION_MS = 900_000 + 300_000


class PartitionGauges:
    def __init__(
        self,
        replicas: ReplicaManager,
        fetchers: ReplicaFetchers,
        image: Callable[[], MetadataImage],
        now_ms: Callable[[], int],
        *,
        node_id: int,
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._fetchers = fetchers
        self._image = image
        self._now_ms = now_ms

    def collect(self) -> Samples:
        leaders = under = under_min = at_min = offline = producers = late = reassigning = 0
        count = 0
        for partition in list(self._replicas.partitions()):
            count += 1
            place = partition.topic, str(partition.index)
            if partition.role.role is Role.OFFLINE:
                offline += 1
                continue
            producers += len(partition.log.producers.entries)
            late += self._has_late_transaction(partition)
            yield from _log_samples(partition, place)
            leader = partition.leadership
            if leader is None:
                continue
            leaders += 1
            in_sync, replicas = len(leader.isr), len(partition.replicas)
            wanted = min(partition.log.config.min_insync_replicas, replicas)
            is_under, is_under_min = in_sync < replicas, in_sync < wanted
            is_at_min = in_sync == wanted
            under += is_under
            under_min += is_under_min
            at_min += is_at_min
            reassigning += self._is_reassigning(partition)
            yield t.P_UNDER_REPLICATED, place, int(is_under)
            yield t.P_UNDER_MIN_ISR, place, int(is_under_min)
            yield t.P_AT_MIN_ISR, place, int(is_at_min)
            yield t.P_ISR, place, in_sync
            yield t.P_REPLICAS, place, replicas
            lag = partition.log.high_watermark - partition.log.last_stable_offset
            yield t.P_LSO_LAG, place, max(lag, 0)
        # After a start they are thousands for a moment. They are led here by the metadata, and a
        # client that asks for one need not wait.
        for state in self._replicas.put_off():
            count += 1
            if state.leader == self._node_id:
                leaders += 1
                under += len(state.isr) < len(state.replicas)
        for spec, value in (
            (t.PARTITION_COUNT, count),
            (t.LEADER_COUNT, leaders),
            (t.UNDER_REPLICATED, under),
            (t.UNDER_MIN_ISR, under_min),
            (t.AT_MIN_ISR, at_min),
            (t.OFFLINE_REPLICAS, offline),
            (t.PRODUCER_IDS, producers),
            (t.LATE_TRANSACTIONS, late),
            (t.REASSIGNING, reassigning),
        ):
            yield spec, (), value
        yield from self._fetcher_samples()

    def _has_late_transaction(self, partition: Partition) -> bool:
        open_ones = partition.log.producers.open_transactions()
        late_ms = self._now_ms() - LATE_TRANSACTION_MS
        return any(each.last_timestamp < late_ms for each in open_ones)

    def _is_reassigning(self, partition: Partition) -> bool:
        topic = self._image().topics_by_id.get(partition.topic_id)
        state = None if topic is None else topic.partitions.get(partition.index)
        return state is not None and bool(state.adding_replicas or state.removing_replicas)

    def _fetcher_samples(self) -> Samples:
        client = ("Replica",)
        worst = 0
        for topic, index, leader_id, lag in self._fetchers.lags():
            worst = max(worst, lag)
            yield t.FETCHER_LAG, (f"ReplicaFetcherThread-0-{leader_id}", topic, str(index)), lag
        yield t.FETCHER_MAX_LAG, client, worst
        yield t.FETCHER_FAILED, client, self._fetchers.failed_count
        yield t.FETCHER_DEAD, client, self._fetchers.dead_count


def _log_samples(partition: Partition, place: tuple[str, ...]) -> Samples:
    log = partition.log
    yield t.LOG_SIZE, place, log.size
    yield t.LOG_SEGMENTS, place, len(log.segments)
    yield t.LOG_START, place, log.log_start_offset
    yield t.LOG_END, place, log.log_end_offset
    limit = log.config.retention_bytes
    yield t.LOG_RETENTION, place, 0 if limit <= 0 else log.size * 100 // limit


class LogGauges:
    """Log directories and compaction."""

    def __init__(
        self, logs: LogManager, cleaner: Cleaner, disk: Disk, now_ms: Callable[[], int]
    ) -> None:
        self._logs = logs
        self._disk = disk
        self._cleaner = cleaner
        self._now_ms = now_ms

    def collect(self) -> Samples:
        offline = {each.path for each in self._logs.offline_dirs}
        cordoned = {each.path for each in self._logs.cordoned_dirs}
        yield t.OFFLINE_DIRS, (), len(offline)
        yield t.CORDONED_DIRS, (), len(cordoned)
        stuck = list(self._cleaner.uncleanable)
        for directory in self._logs.dirs:
            path = (directory.path,)
            yield t.DIR_OFFLINE, path, int(directory.path in offline)
            yield t.DIR_CORDONED, path, int(directory.path in cordoned)
            here = [log for log in stuck if log.dir_state is directory]
            yield t.UNCLEANABLE, path, len(here)
            yield t.UNCLEANABLE_BYTES, path, sum(log.size for log in here)
            if directory.path not in offline:
                yield t.DIR_FREE, path, self._disk.free_bytes(directory.path)
                yield t.DIR_TOTAL, path, self._disk.total_bytes(directory.path)
        stats = self._cleaner.stats
        yield t.CLEANER_RECOPY, (), stats.recopy_percent
        yield t.CLEANER_TIME, (), stats.last_seconds
        yield t.CLEANER_DEAD, (), stats.dead_workers
        yield t.MAX_DIRTY, (), stats.dirty_percent
        yield t.SINCE_CLEANED, (), max(0, self._now_ms() - stats.last_run_ms)
