"""Compacted partitions in temporary folders, cleaned in place and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moldau.broker.config import BrokerConfig, LogConfig
from moldau.broker.config.sections import LogManagerConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.cleaner.job import CleanDone
from moldau.broker.log.cleaner.process import InlineWorker, Worker
from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.context import AppendOrigin
from moldau.broker.log.disk import OsDisk
from moldau.broker.log.log import Log
from moldau.broker.log.manager import LogManager
from moldau.wire.records import (
    BatchHeader,
    Record,
    decode_batches,
    encode_batch,
    encode_end_txn_marker,
)

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
COMPACT = frozenset({"compact"})

SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}

Pair = tuple[bytes | None, bytes | None]


class Broker:
    """A log manager and its cleaner over folders that outlive them."""

    def __init__(self, root: Path, *, dirs: int = 1, **cleaner: Any) -> None:
        self.now_ms = NOW_MS
        self.paths = [str(root / f"data{i}") for i in range(dirs)]
        for path in self.paths:
            Path(path).mkdir(parents=True)
        self._settings = SETTINGS | {
            f"log.cleaner.{name.replace('_', '.')}": str(value) for name, value in cleaner.items()
        }
        self.topics: dict[str, LogConfig] = {}
        self.open()

    def open(self, *, worker: Callable[[], Worker] | None = None) -> None:
        disk = OsDisk()
        self.manager = LogManager(
            self.paths,
            disk=disk,
            background=InlineBackground(),
            now_ms=lambda: self.now_ms,
            random_bytes=lambda count: b"r" * count,
        )
        self.manager.open_dirs(cluster_id="c", node_id=1)
        self.manager.load(lambda topic: self.topics[topic])
        for log in self.manager.logs():
            log.set_high_watermark(log.log_end_offset)
        self.cleaner = Cleaner(
            self.manager,
            self.config(),
            lambda: self.now_ms,
            make_worker=worker or (lambda: InlineWorker(disk)),
        )

    def config(self) -> LogManagerConfig:
        return BrokerConfig.from_properties(self._settings).log

    def crash(self) -> None:
        """Nothing is closed or checkpointed; the next start recovers everything."""
        self.manager.unlock()
        self.open()

    def restart(self) -> None:
        self.manager.close()
        self.open()

    def create(self, topic: str = "t", **config: Any) -> Log:
        self.topics[topic] = LogConfig(
            **{
                "cleanup_policy": COMPACT,
                "file_delete_delay_ms": 0,
                "segment_index_bytes": 1024,
                "index_interval_bytes": 100,
                "delete_retention_ms": DAY_MS,
                **config,
            }
        )
        return self.manager.create_log(topic, 0, self.topics[topic])

    def log(self, topic: str = "t") -> Log:
        log = self.manager.get_log(topic, 0)
        assert log is not None
        return log

    def clean(self, topic: str = "t") -> CleanDone | None:
        return asyncio.run(self.cleaner.clean_now(topic, 0))

    def roll(self, topic: str = "t") -> None:
        self.log(topic).roll(self.now_ms)


def put(log: Log, *pairs: Pair, timestamp: int = NOW_MS, **fields: Any) -> int:
    """Append one batch of (key, value) records, a millisecond apart; its base offset."""
    batch = encode_batch([(k, v, timestamp + i, ()) for i, (k, v) in enumerate(pairs)], **fields)
    info = log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS)
    log.set_high_watermark(log.log_end_offset)
    return info.base_offset


def end_transaction(log: Log, producer_id: int, *, committed: bool, epoch: int = 0) -> int:
    """Append a transaction marker; its offset."""
    marker = encode_end_txn_marker(
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=committed,
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )
    info = log.append_as_leader(
        bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.set_high_watermark(log.log_end_offset)
    return info.base_offset


def batches(log: Log) -> list[tuple[BatchHeader, list[Record]]]:
    """Everything in the log, the way a consumer from the start gets it."""
    found: list[tuple[BatchHeader, list[Record]]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 10_000, upper_offset=log.log_end_offset, min_one_batch=True)
        if not result.buffers:
            break
        for buffer in result.buffers:
            for header, records in decode_batches(buffer):
                found.append((header, records))
                offset = header.next_offset
    return found


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of the data records."""
    return [
        (record.offset, record.key, record.value)
        for header, records in batches(log)
        if not header.is_control
        for record in records
    ]
