"""Decides when to write a snapshot of the metadata, and writes it in the background.

A snapshot is due when enough bytes were committed since the last one, or when anything was and the
last one is old enough. One is written at a time, in small steps between which requests are served.
A stop writes one where that saves the next start the replay of many records: every stop and start
of a broker changes the leader of each of its partitions.

Invariant: the interval is measured in elapsed time, so a wall clock that is set neither brings a
snapshot forward nor puts it off; the wall time only goes into the snapshot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.writer import image_to_records
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.batches import MetadataBatch
from moldau.broker.raft.machine.voters import VoterSet
from moldau.broker.raft.snapshots import SnapshotId, snapshot_parts
from moldau.clock import Clock

logger = logging.getLogger(__name__)

# How often the age is checked, and old snapshots are deleted.
CHECK_INTERVAL_MS_MAX = 60_000
# How many records after its newest snapshot a node leaves to the next start.
REPLAYED_AT_START_MAX = 1_000


class Snapshotter:
    def __init__(
        self,
        log: RaftLog,
        *,
        source: Callable[[], tuple[MetadataImage, int, VoterSet] | None],
        clock: Clock,
        max_bytes: int,
        max_interval_ms: int,
    ) -> None:
        """`source` gives an independent copy of the committed image, kraft.version and voters;
        None while there can be no snapshot."""
        self._log = log
        self._source = source
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._bytes = 0
        self._last_ms = clock.elapsed_ms()
        self._end_offset = 0
        self._epoch = 0
        self._log_time_ms = 0
        self._covered_offset = 0
        self._running: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def on_loaded(self, snapshot_id: SnapshotId, log_time_ms: int) -> None:
        """The node started from this snapshot."""
        self._covered_offset = self._end_offset = snapshot_id.end_offset
        self._epoch = snapshot_id.epoch
        self._log_time_ms = log_time_ms

    def on_committed(self, batch: MetadataBatch) -> None:
        self._end_offset = batch.next_offset
        self._epoch = batch.epoch
        self._log_time_ms = batch.append_time_ms
        self._bytes += batch.size

    def is_due(self) -> bool:
        if self._end_offset <= self._covered_offset:
            return False
        if self._bytes >= self._max_bytes:
            return True
        return 0 < self._max_interval_ms <= self._clock.elapsed_ms() - self._last_ms

    def maybe_start(self) -> None:
        """Start a snapshot if one is due and none is being written."""
        if self._stopped or self._running is not None:
            return
        if self.is_due():
            self._running = asyncio.get_running_loop().create_task(self._run())
        elif self._timer is None:
            self._arm()

    def _arm(self) -> None:
        interval_ms = min(self._max_interval_ms or CHECK_INTERVAL_MS_MAX, CHECK_INTERVAL_MS_MAX)
        self._timer = asyncio.get_running_loop().call_later(interval_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._clean()
        self.maybe_start()

    async def stop(self, *, write_last: bool) -> None:
        """Write a last snapshot if the next start would otherwise replay too many records."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.finished()
        if write_last and self._end_offset - self._covered_offset > REPLAYED_AT_START_MAX:
            await self._run()

    async def finished(self) -> None:
        """Return when no snapshot is being written."""
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self.write()
            self._clean()
        except OSError as error:
            # The log still has everything, so the node continues without this snapshot.
            logger.error("writing a metadata snapshot failed: %s", error)
            self._last_ms = self._clock.elapsed_ms()
            self._bytes = 0
        finally:
            self._running = None
            if not self._stopped:
                self._arm()

    async def write(self) -> SnapshotId | None:
        """Write a snapshot of everything committed so far; None if there can be none now."""
        found = self._source()
        if found is None:
            return None
        image, kraft_version, voters = found
        snapshot_id = SnapshotId(self._end_offset, self._epoch)
        log_time_ms = self._log_time_ms
        self._bytes = 0
        self._last_ms = self._clock.elapsed_ms()
        writer = self._log.start_snapshot(snapshot_id)
        try:
            for part in snapshot_parts(
                image_to_records(image),
                epoch=snapshot_id.epoch,
                now_ms=self._clock.now_ms(),
                metadata_version=image.metadata_version,
                last_contained_log_timestamp=log_time_ms,
                kraft_version=kraft_version,
                voters=voters,
            ):
                writer.append(part)
                await asyncio.sleep(0)
            await self._log.finish_snapshot(writer, snapshot_id)
        except BaseException:
            writer.abandon()
            raise
        # A later one may have been fetched meanwhile.
        self._covered_offset = max(self._covered_offset, snapshot_id.end_offset)
        logger.info("wrote metadata snapshot %s (%d bytes)", snapshot_id.file_name, writer.size)
        return snapshot_id

    def _clean(self) -> None:
        try:
            self._log.clean(self._clock.now_ms())
        except OSError as error:
            logger.error("removing old metadata snapshots failed: %s", error)
