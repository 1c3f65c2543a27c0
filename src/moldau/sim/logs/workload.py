"""Batches and configurations that a seed asks for."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from struct import pack_into

from moldau.broker.config import LogConfig
from moldau.broker.log.machine.producer_state import ProducerEntry
from moldau.broker.log.registry import NEVER_MS
from moldau.sim.logs.model import ModelBatch, ModelPartition, ModelRecord
from moldau.wire.records import Compression, encode_batch, encode_end_txn_marker

KEYS = [b"key-%d" % number for number in range(6)]
IDEMPOTENT_IDS = (101, 102, 103)
TRANSACTIONAL_IDS = (201, 202)
HOUR_MS = 3_600_000


def random_config(random: Random) -> LogConfig:
    policies = (
        frozenset({"delete"}),
        frozenset({"delete"}),
        frozenset({"compact"}),
        frozenset({"compact", "delete"}),
    )
    return LogConfig(
        cleanup_policy=random.choice(policies),
        segment_bytes=random.choice((700, 1000, 2000, 6000)),
        segment_ms=random.choice((HOUR_MS, 7 * 24 * HOUR_MS)),
        segment_index_bytes=random.choice((60, 240, 2400)),
        index_interval_bytes=random.choice((0, 120, 500)),
        flush_messages=random.choice((1, 7, NEVER_MS, NEVER_MS)),
        flush_ms=random.choice((1000, 60_000, NEVER_MS)),
        retention_ms=random.choice((-1, HOUR_MS, 24 * HOUR_MS)),
        retention_bytes=random.choice((-1, -1, 3000)),
        delete_retention_ms=random.choice((0, HOUR_MS)),
        file_delete_delay_ms=random.choice((0, 1000, 60_000)),
    )


class Workload:
    """Makes the next batch of a partition; values are never repeated."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0

    def plain(self, partition: ModelPartition, now_ms: int, base_offset: int) -> ModelBatch:
        return self._data(partition, now_ms, base_offset=base_offset)

    def idempotent(
        self, partition: ModelPartition, now_ms: int, remembered: Mapping[int, ProducerEntry]
    ) -> ModelBatch:
        """`remembered` is what the log knows of producers, even from before its start."""
        producer_id = self._random.choice(IDEMPOTENT_IDS)
        return self._produced(partition, now_ms, producer_id, False, remembered)

    def transactional(
        self, partition: ModelPartition, now_ms: int, remembered: Mapping[int, ProducerEntry]
    ) -> ModelBatch:
        producer_id = self._random.choice(TRANSACTIONAL_IDS)
        return self._produced(partition, now_ms, producer_id, True, remembered)

    def _produced(
        self,
        partition: ModelPartition,
        now_ms: int,
        producer_id: int,
        transactional: bool,
        remembered: Mapping[int, ProducerEntry],
    ) -> ModelBatch:
        known = partition.history.producers.get(producer_id)
        epoch = remembered[producer_id].epoch + 1 if producer_id in remembered else 0
        sequence = 0
        if known is not None:
            epoch = known.epoch
            last = known.last
            # Where its last batch is below the log start, a restart may have forgotten it.
            if (
                last is None
                or last.last_offset < partition.start_max
                or self._random.random() < 0.1
            ):
                epoch += 1
            else:
                sequence = last.last_sequence + 1
        return self._data(
            partition,
            now_ms,
            base_offset=partition.end,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )

    def marker(self, partition: ModelPartition, now_ms: int) -> ModelBatch | None:
        """The end of a transaction, if one is open."""
        known = partition.history.producers
        open_ids = [i for i in TRANSACTIONAL_IDS if i in known and known[i].open_since is not None]
        if not open_ids:
            return None
        producer_id = self._random.choice(open_ids)
        committed = self._random.random() < 0.5
        epoch = known[producer_id].epoch
        data = encode_end_txn_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=0,
            timestamp=now_ms,
        )
        return ModelBatch(
            base_offset=partition.end,
            next_offset=partition.end + 1,
            data=stamped(data, partition.end, partition.epoch),
            epoch=partition.epoch,
            records=(ModelRecord(partition.end, now_ms, None, None),),
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional=True,
            control="commit" if committed else "abort",
        )

    def _data(
        self,
        partition: ModelPartition,
        now_ms: int,
        *,
        base_offset: int,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> ModelBatch:
        random = self._random
        records = []
        for index in range(random.choice((1, 1, 2, 4))):
            self._count += 1
            value = b"%s %d" % (partition.name.encode(), self._count)
            value += b"." * random.choice((0, 0, 30, 90))
            tombstone = partition.config.compact and random.random() < 0.2
            records.append(
                ModelRecord(
                    base_offset + index,
                    now_ms - random.choice((0, 0, 1, 50, 5000)),
                    random.choice(KEYS),
                    None if tombstone else value,
                )
            )
        data = encode_batch(
            [(record.key, record.value, record.timestamp, ()) for record in records],
            compression=random.choice((Compression.NONE,) * 7 + (Compression.LZ4,)),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=transactional,
        )
        return ModelBatch(
            base_offset=base_offset,
            next_offset=base_offset + len(records),
            data=stamped(data, base_offset, partition.epoch),
            epoch=partition.epoch,
            records=tuple(records),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            last_sequence=base_sequence + len(records) - 1 if producer_id >= 0 else -1,
            transactional=transactional,
        )


def stamped(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch as a leader stores it: offset and epoch are outside of the checksum."""
    data = bytearray(batch)
    pack_into(">q", data, 0, base_offset)
    pack_into(">i", data, 12, leader_epoch)
    return bytes(data)


def unstamped(batch: ModelBatch) -> bytearray:
    """The batch as a client sends it."""
    return bytearray(stamped(batch.data, 0, -1))
