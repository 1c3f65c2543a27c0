"""Steps that append, send again, read, and move a partition's high watermark and leader epoch."""

from __future__ import annotations

from moldau.broker.log.context import AppendInfo, AppendOrigin
from moldau.broker.log.log import Log
from moldau.sim.logs.flushing import Flushing
from moldau.sim.logs.model import ModelBatch, ModelPartition
from moldau.sim.logs.stage import LogStage
from moldau.sim.logs.workload import unstamped
from moldau.sim.world import Invariant, Violation, require
from moldau.times import WallMs
from moldau.wire.errors import ApiError

__all__ = ["Appending"]


class Appending:
    """Appends as a leader and as a follower, and reads."""

    def __init__(self, stage: LogStage, flushing: Flushing) -> None:
        self._stage = stage
        self._world = stage.world
        self._flushing = flushing
        self._random = stage.world.random

    def append(self) -> None:
        picked = self._stage.pick()
        if picked is None:
            return
        partition, log = picked
        kind = self._random.choice(("plain", "plain", "follower", "producer", "txn", "txn"))
        now_ms = self._world.now_ms()
        workload = self._stage.workload
        if kind == "follower":
            self._append_as_follower(partition, log, now_ms)
            return
        if kind == "plain":
            batch = workload.plain(partition, now_ms, partition.end)
        elif kind == "producer":
            batch = workload.idempotent(partition, now_ms, log.producers.entries)
        else:
            marker = (
                self._stage.workload.marker(partition, now_ms) if self._world.chance(0.4) else None
            )
            batch = marker or self._stage.workload.transactional(
                partition, now_ms, log.producers.entries
            )
        self._append_as_leader(partition, log, batch)

    def _append_as_leader(self, partition: ModelPartition, log: Log, batch: ModelBatch) -> None:
        now_ms = self._world.now_ms()
        origin = AppendOrigin.CLIENT if batch.control is None else AppendOrigin.COORDINATOR
        self._world.note(
            f"{partition.name}: append {batch.control or 'data'} {batch.base_offset}.."
            f"{batch.last_offset} producer {batch.producer_id} sequence {batch.base_sequence}"
        )
        infos: list[AppendInfo] = []

        def append() -> None:
            infos.append(
                log.append_as_leader(
                    unstamped(batch), leader_epoch=partition.epoch, now_ms=now_ms, origin=origin
                )
            )

        try:
            done = self._stage.guarded(partition, append, [[*partition.batches, batch]])
        except ApiError as error:
            raise Violation(
                Invariant.PRODUCERS_KNOWN, f"{partition.name}: refused: {error.message}"
            ) from error
        if not done:
            return
        info = infos[0]
        require(
            not info.duplicate
            and (info.base_offset, info.last_offset) == (batch.base_offset, batch.last_offset),
            Invariant.PRODUCERS_KNOWN,
            lambda: f"{partition.name}: {info} for the batch at {batch.base_offset}",
        )
        partition.append(batch)
        self._appended(partition, log, info)

    def _appended(self, partition: ModelPartition, log: Log, info: AppendInfo) -> None:
        if self._world.chance(0.8):
            partition.high_watermark = log.set_high_watermark(log.log_end_offset)
        if info.flush_due:
            self._flushing.request_flush(partition, log, partition.end)

    def _append_as_follower(self, partition: ModelPartition, log: Log, now_ms: WallMs) -> None:
        batches: list[ModelBatch] = []
        end = partition.end
        for _ in range(self._random.randint(1, 3)):
            batches.append(self._stage.workload.plain(partition, now_ms, end))
            end = batches[-1].next_offset
        self._world.note(f"{partition.name}: follow {partition.end}..{end - 1}")
        data = b"".join(batch.data for batch in batches)
        infos: list[AppendInfo] = []
        done = self._stage.guarded(
            partition,
            lambda: infos.append(log.append_as_follower(data, now_ms=now_ms)),
            [[*partition.batches, *batches[: n + 1]] for n in range(len(batches))],
        )
        if done:
            for batch in batches:
                partition.append(batch)
            self._appended(partition, log, infos[0])

    def repeat(self) -> None:
        """A client that did not get its answer sends its last batch again."""
        picked = self._stage.pick()
        if picked is None:
            return
        partition, log = picked
        known = partition.history.producers
        repeatable = [
            producer.last
            for producer in known.values()
            if producer.last is not None and producer.last.base_offset >= partition.start_max
        ]
        if not repeatable:
            return
        batch = self._random.choice(repeatable)
        self._world.note(f"{partition.name}: repeat {batch.base_offset}")
        infos: list[AppendInfo] = []
        if not self._stage.guarded(
            partition,
            lambda: infos.append(
                log.append_as_leader(
                    unstamped(batch), leader_epoch=partition.epoch, now_ms=self._world.now_ms()
                )
            ),
        ):
            return
        require(
            infos[0].duplicate and infos[0].base_offset == batch.base_offset,
            Invariant.PRODUCERS_KNOWN,
            lambda: f"{partition.name}: the repeated batch at {batch.base_offset} got {infos[0]}",
        )

    def read(self) -> None:
        picked = self._stage.pick()
        if picked is not None:
            partition, log = picked
            self._stage.guarded(
                partition,
                lambda: self._stage.checker.check(partition, log, thorough=self._world.chance(0.5)),
            )

    def move_high_watermark(self) -> None:
        picked = self._stage.pick()
        if picked is not None:
            partition, log = picked
            partition.high_watermark = log.set_high_watermark(log.log_end_offset)

    def new_leader_epoch(self) -> None:
        picked = self._stage.pick()
        if picked is None:
            return
        partition, log = picked
        partition.epoch += 1
        self._world.note(f"{partition.name}: leader epoch {partition.epoch}")
        if self._world.chance(0.5):
            self._stage.guarded(
                partition, lambda: log.assign_epoch(partition.epoch, log.log_end_offset)
            )
