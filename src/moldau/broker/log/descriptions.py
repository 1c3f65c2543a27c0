"""What DescribeLogDirs returns: log directories and the replicas in them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from moldau.broker.log.disk import Disk
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.registry import KnownLog, LogRegistry
from moldau.wire.errors import ErrorCode

UNKNOWN_BYTES = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    topic: str
    partition: int
    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirInfo:
    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaInfo] = field(default_factory=list)


#: Topics with partitions, or None for all.
Wanted: TypeAlias = Container[tuple[str, int]] | None


def describe(
    disk: Disk, directories: Iterable[LogDir], registry: LogRegistry, wanted: Wanted
) -> list[LogDirInfo]:
    return [_describe(disk, directory, registry, wanted) for directory in directories]


def _describe(disk: Disk, directory: LogDir, registry: LogRegistry, wanted: Wanted) -> LogDirInfo:
    if directory.failure is not None:
        return LogDirInfo(
            path=directory.path,
            error=ErrorCode.KAFKA_STORAGE_ERROR,
            total_bytes=UNKNOWN_BYTES,
            usable_bytes=UNKNOWN_BYTES,
        )
    try:
        total, usable = disk.total_bytes(directory.path), disk.free_bytes(directory.path)
    except OSError:
        total = usable = UNKNOWN_BYTES
    return LogDirInfo(
        path=directory.path,
        error=ErrorCode.NONE,
        total_bytes=total,
        usable_bytes=usable,
        replicas=[
            _replica(log, registry)
            for log in registry.of_dir(directory)
            if wanted is None or (log.topic, log.partition) in wanted
        ],
    )


def _replica(log: KnownLog, registry: LogRegistry) -> ReplicaInfo:
    if log.is_future:
        current = registry.current.get((log.topic, log.partition))
        lag = 0 if current is None else current.log_end_offset - log.log_end_offset
    else:
        lag = log.high_watermark - log.log_end_offset
    return ReplicaInfo(
        topic=log.topic,
        partition=log.partition,
        size=log.size,
        offset_lag=max(lag, 0),
        is_future=log.is_future,
    )
