"""Fetch requests and responses as plain tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.replication.machine.names import TopicKey

NO_REPLICA = -1
SESSIONS_SINCE = 7
TOPIC_IDS_SINCE = 13


class PartitionFetch(NamedTuple):
    """What a request says about one partition; missing fields have their defaults."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchBody(NamedTuple):
    """A Fetch request, free of the frame it was read from."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[TopicKey, list[PartitionFetch]]]
    forgotten: list[tuple[TopicKey, list[int]]]
    rack: str = ""


class PartitionData(NamedTuple):
    """What one partition answers; `records` are views of the log."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Sequence[memoryview] = ()
    records_size: int = 0
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    preferred_read_replica: int = NO_REPLICA
