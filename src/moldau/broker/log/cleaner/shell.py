"""Runs compaction: asks what is due, has it done by workers, swaps the results in.

Invariants: one job per log at a time; a result is swapped in only if the segments
it was made of are still the log's and were not cut meanwhile, in one step on the loop; the
checkpoint moves only after the swap. What cannot be cleaned is reported once and left
alone, and hinders no other log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from moldau.broker.log.cleaner.compaction import remove_unfinished
from moldau.broker.log.cleaner.filtering import LastBatch
from moldau.broker.log.cleaner.job import CleanDone, CleanedSegment, CleanFailed, CleanJob
from moldau.broker.log.cleaner.machine.schedule import (
    NEVER_MS,
    CleaningPolicy,
    CleanRange,
    LogFacts,
    SegmentFacts,
    SourceSegment,
    clean_range,
    filthiest,
)
from moldau.broker.log.cleaner.process import SubprocessWorker, Worker
from moldau.broker.log.context import LogDirFailure
from moldau.broker.log.log import Log
from moldau.broker.log.machine.checkpoints import Partition
from moldau.broker.log.machine.names import CLEANED_SUFFIX, LOG_SUFFIX, offset_prefix
from moldau.broker.log.manager import LogManager
from moldau.broker.log.offset_index import CorruptIndex
from moldau.broker.log.segment import Segment
from moldau.broker.log.state import NEVER_CUT
from moldau.times import WallMs
from moldau.wire.errors import ApiError

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

logger = logging.getLogger(__name__)

# In Kafka a rate this high means that there is no limit.
RATE_UNLIMITED = 1e300


class CleanerConfig(Protocol):
    """The broker's cleaner settings, named as Kafka names them."""

    @property
    def log_cleaner_enable(self) -> bool: ...
    @property
    def log_cleaner_threads(self) -> int: ...
    @property
    def log_cleaner_backoff_ms(self) -> int: ...
    @property
    def log_cleaner_dedupe_buffer_size(self) -> int: ...
    @property
    def log_cleaner_io_buffer_load_factor(self) -> float: ...
    @property
    def log_cleaner_io_buffer_size(self) -> int: ...
    @property
    def log_cleaner_io_max_bytes_per_second(self) -> float: ...


class FirstDirty(NamedTuple):
    """Up to where a log is clean. The id tells apart topics of the same name."""

    offset: int
    topic_id: uuid.UUID | None


class Cleaning(NamedTuple):
    """One job and the very segments it is about."""

    log: Log
    job: CleanJob
    sources: dict[int, Segment]


class CleanerStats:
    """What compaction has done, for metrics."""

    __slots__ = ("dead_workers", "dirty_percent", "last_run_ms", "last_seconds", "recopy_percent")

    def __init__(self, now_ms: int) -> None:
        self.recopy_percent = 0
        self.last_seconds = 0.0
        self.dead_workers = 0
        self.dirty_percent = 0
        self.last_run_ms = now_ms


class Cleaner:
    def __init__(
        self,
        manager: LogManager,
        config: CleanerConfig,
        now_ms: Callable[[], WallMs],
        *,
        make_worker: Callable[[], Worker] = SubprocessWorker,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._manager = manager
        self._config = config
        self._now_ms = now_ms
        self._make_worker = make_worker
        self._sleep = sleep
        self._tasks: list[asyncio.Task[None]] = []
        self.stats = CleanerStats(now_ms())
        self._first_dirty: dict[Partition, FirstDirty] | None = None
        self._in_progress: set[Log] = set()
        # Logs that cannot be cleaned, and those whose trouble has been reported.
        self._uncleanable: set[Log] = set()
        self._reported: set[Log] = set()
        # Logs that could not be cleaned in this round: the others come first.
        self._put_off: set[Log] = set()

    @property
    def uncleanable(self) -> Collection[Log]:
        """Logs that are damaged, and are not compacted any more."""
        return self._uncleanable

    # Life ---------------------------------------------------------------------------

    def start(self) -> None:
        # As Kafka does: the file is there from the start, so tools and people find it.
        for directory in self._manager.live_dirs:
            offsets = self._manager.cleaner_offsets(directory)
            self._manager.write_cleaner_offsets(directory, offsets)
        if self._config.log_cleaner_enable:
            self._set_task_count(self._config.log_cleaner_threads)

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def update_config(self, config: CleanerConfig) -> None:
        """Changed settings count from the next job on."""
        self._config = config
        if self._tasks:
            self._set_task_count(config.log_cleaner_threads)

    def _set_task_count(self, count: int) -> None:
        for task in self._tasks[count:]:
            task.cancel()
        del self._tasks[count:]
        while len(self._tasks) < count:
            self._tasks.append(asyncio.get_running_loop().create_task(self._run()))

    async def _run(self) -> None:
        worker = self._make_worker()
        try:
            while True:
                cleaning = self._pick()
                if cleaning is None:
                    self._put_off.clear()
                    await worker.close()
                    await self._sleep(self._config.log_cleaner_backoff_ms / 1000)
                elif await self._clean_guarded(cleaning, worker) is None:
                    self._put_off.add(cleaning.log)
        finally:
            await worker.kill()

    async def _clean_guarded(self, cleaning: Cleaning, worker: Worker) -> CleanDone | None:
        try:
            return await self._clean(cleaning, worker)
        except Exception:
            # One log's trouble must not end the cleaning of all others.
            self.stats.dead_workers += 1
            logger.exception("%s: cleaning failed", cleaning.log.dir)
            return None

    async def clean_now(self, topic: str, partition: int) -> CleanDone | None:
        """Clean what may be cleaned of a partition, however little; None if nothing could."""
        log = self._manager.get_log(topic, partition)
        if (
            log is None
            or log in self._in_progress
            or self._manager.get_future_log(topic, partition) is not None
        ):
            return None
        found = self._range_of(log)
        if found.upper_offset <= found.first_dirty_offset:
            return None
        worker = self._make_worker()
        try:
            return await self._clean(self._cleaning(log, found), worker)
        finally:
            await worker.kill()

    # Choosing -----------------------------------------------------------------------

    def _pick(self) -> Cleaning | None:
        logs = self._manager.compacted_logs()
        self._forget_all_but(logs)
        found = filthiest(self._candidates(logs))
        self.stats.dirty_percent = 0 if found is None else int(found[1].dirty_ratio * 100)
        self.stats.last_run_ms = self._now_ms()
        return None if found is None else self._cleaning(*found)

    def _candidates(self, logs: list[Log]) -> Iterator[tuple[Log, CleanRange, CleaningPolicy]]:
        for log in logs:
            if (
                # Without a closed segment there is nothing to clean, the usual case.
                len(log.segments) == 1
                or log in self._in_progress
                or log in self._uncleanable
                or log in self._put_off
                # A log that moves to another log directory is being copied as it is.
                or self._manager.get_future_log(log.topic, log.partition) is not None
            ):
                continue
            try:
                yield log, self._range_of(log), _policy(log.config)
            except OSError as error:
                log.dir_state.fail(f"reading {log.dir}", error)

    def _range_of(self, log: Log) -> CleanRange:
        offset = self._clean_up_to(log)
        if offset is not None and log.lowest_cut < offset:
            offset = log.lowest_cut
            self._offsets()[log.topic, log.partition] = FirstDirty(offset, log.topic_id)
        log.lowest_cut = NEVER_CUT
        policy = _policy(log.config)
        return clean_range(_facts(log, policy), offset, policy, self._now_ms())

    def _cleaning(self, log: Log, found: CleanRange) -> Cleaning:
        config, settings = log.config, self._config
        threads = max(settings.log_cleaner_threads, 1)
        rate = settings.log_cleaner_io_max_bytes_per_second / threads
        sources: dict[int, Segment] = {}
        segments: list[SourceSegment] = []
        for index, segment in enumerate(log.segments):
            next_offset = log.segments.next_base(index)
            if next_offset is None or next_offset > found.upper_offset:
                break
            sources[segment.base_offset] = segment
            segments.append(
                SourceSegment(
                    segment.base_offset,
                    next_offset,
                    segment.size,
                    segment.offset_index.entry_count * 8,
                    segment.time_index.entry_count * 12,
                )
            )
        job = CleanJob(
            directory=log.dir,
            first_dirty_offset=found.first_dirty_offset,
            upper_offset=found.upper_offset,
            now_ms=self._now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            segments=tuple(segments),
            txn_index_offsets=tuple(
                segment.base_offset for segment in log.segments if segment.txn_index.file_size
            ),
            producers={
                producer_id: LastBatch(entry.last_offset, entry.epoch)
                for producer_id, entry in log.producers.entries.items()
                if entry.last_offset < found.upper_offset
            },
            map_size_max=int(
                settings.log_cleaner_dedupe_buffer_size
                // threads
                * settings.log_cleaner_io_buffer_load_factor
            ),
            buffer_size=settings.log_cleaner_io_buffer_size,
            bytes_per_second_max=rate if rate < RATE_UNLIMITED else None,
        )
        return Cleaning(log, job, sources)

    # Cleaning -----------------------------------------------------------------------

    async def _clean(self, cleaning: Cleaning, worker: Worker) -> CleanDone | None:
        log = cleaning.log
        self._in_progress.add(log)
        finished = False
        try:
            # What takes the place of the records that go must not be lost after them: values
            # of the same keys, and batches that producers go on from.
            try:
                await log.flush_async(now_ms=self._now_ms())
            except ApiError:
                return None
            async with contextlib.aclosing(worker.clean(cleaning.job)) as events:
                async for event in events:
                    match event:
                        case CleanFailed():
                            self._on_failed(cleaning, event)
                            return None
                        case CleanedSegment():
                            if not self._swap(cleaning, event):
                                return None
                        case CleanDone():
                            finished = True
                            return self._on_done(cleaning, event)
            return None
        finally:
            self._in_progress.discard(log)
            if not finished:
                await worker.kill()
                # A failed log directory is reported elsewhere.
                with contextlib.suppress(OSError):
                    await self._manager.context.background.run(
                        remove_unfinished, self._manager.context.disk, cleaning.job.directory
                    )

    def _still_holds(self, cleaning: Cleaning) -> bool:
        log = cleaning.log
        return (
            self._manager.get_log(log.topic, log.partition) is log
            and not log.offline
            and log.dir == cleaning.job.directory
            and log.lowest_cut >= cleaning.job.upper_offset
            and self._manager.get_future_log(log.topic, log.partition) is None
        )

    def _swap(self, cleaning: Cleaning, cleaned: CleanedSegment) -> bool:
        """Put a new segment in the place of the old ones; False when they have changed."""
        log = cleaning.log
        old = [cleaning.sources[base_offset] for base_offset in cleaned.replaces]
        if not self._still_holds(cleaning) or any(s not in log.segments for s in old):
            logger.info("%s changed while it was cleaned; the result is dropped", log.dir)
            return False
        try:
            log.replace_segments([_open_cleaned(log, cleaned, self._now_ms())], old)
        except LogDirFailure:
            return False
        except (OSError, CorruptIndex) as error:
            self._on_failed(cleaning, CleanFailed(f"{log.dir}: {error}", corrupt=False))
            return False
        return True

    def _on_done(self, cleaning: Cleaning, done: CleanDone) -> CleanDone | None:
        log = cleaning.log
        if not self._still_holds(cleaning):
            return None
        self._offsets()[log.topic, log.partition] = FirstDirty(done.end_offset, log.topic_id)
        self._reported.discard(log)
        self.stats.recopy_percent = 100 * done.bytes_written // max(done.bytes_read, 1)
        self.stats.last_seconds = (self._now_ms() - cleaning.job.now_ms) / 1000
        if done.records_invalid:
            logger.warning("%s: dropped %d records without a key", log.dir, done.records_invalid)
        logger.info(
            "%s: cleaned up to offset %d, %d bytes written of %d read, %d keys",
            log.dir,
            done.end_offset,
            done.bytes_written,
            done.bytes_read,
            done.map_entries,
        )
        self._checkpoint()
        return done

    def _on_failed(self, cleaning: Cleaning, failed: CleanFailed) -> None:
        log = cleaning.log
        if not self._still_holds(cleaning) or any(
            segment not in log.segments for segment in cleaning.sources.values()
        ):
            return
        if failed.corrupt:
            self._uncleanable.add(log)
            logger.error("%s; it is not cleaned any more until a restart", failed.reason)
        elif log not in self._reported:
            self._reported.add(log)
            logger.error("%s; cleaning it is tried again", failed.reason)

    # Checkpoints --------------------------------------------------------------------

    def _clean_up_to(self, log: Log) -> int | None:
        known = self._offsets().get((log.topic, log.partition))
        return None if known is None or known.topic_id != log.topic_id else known.offset

    def _offsets(self) -> dict[Partition, FirstDirty]:
        """First dirty offsets, read from the log directories the first time."""
        if self._first_dirty is None:
            self._first_dirty = {}
            for directory in self._manager.live_dirs:
                for key, offset in self._manager.cleaner_offsets(directory).items():
                    log = self._manager.known_log(*key)
                    # The entry of a log directory that the log is not in dates from before a move.
                    if log is not None and log.dir_state is directory:
                        self._first_dirty[key] = FirstDirty(offset, log.topic_id)
        return self._first_dirty

    def _forget_all_but(self, logs: list[Log]) -> None:
        """Drop what is known of logs that are gone or not compacted any more."""
        kept = set(logs)
        self._uncleanable &= kept
        self._reported &= kept
        self._put_off &= kept
        offsets = self._offsets()
        if not offsets:
            return
        ids = {(log.topic, log.partition): log.topic_id for log in logs}
        for key, known in list(offsets.items()):
            if key not in ids or ids[key] != known.topic_id:
                del offsets[key]
        # Content that has not changed is not written again.
        self._checkpoint()

    def _checkpoint(self) -> None:
        """Write what is known to the log directory that each log is in now."""
        by_dir: dict[str, dict[Partition, int]] = {d.path: {} for d in self._manager.live_dirs}
        for key, known in self._offsets().items():
            log = self._manager.known_log(*key)
            if log is not None and log.dir_state.path in by_dir:
                by_dir[log.dir_state.path][key] = known.offset
        for directory in self._manager.live_dirs:
            self._manager.write_cleaner_offsets(directory, by_dir[directory.path])


def _policy(config: LogConfig) -> CleaningPolicy:
    return CleaningPolicy(
        config.min_cleanable_dirty_ratio,
        config.min_compaction_lag_ms,
        config.max_compaction_lag_ms,
    )


def _facts(log: Log, policy: CleaningPolicy) -> LogFacts:
    # Timestamps may need a look at the file, so only those that are asked for are found.
    want_largest = policy.min_compaction_lag_ms > 0
    want_first = policy.max_compaction_lag_ms < NEVER_MS
    return LogFacts(
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        [
            SegmentFacts(
                segment.base_offset,
                segment.size,
                segment.largest_timestamp() if want_largest else 0,
                segment.first_timestamp() if want_first else -1,
            )
            for segment in log.segments
        ],
    )


def _open_cleaned(log: Log, cleaned: CleanedSegment, now_ms: int) -> Segment:
    disk = log.context.disk
    path = f"{log.dir}/{offset_prefix(cleaned.base_offset)}{LOG_SUFFIX}{CLEANED_SUFFIX}"
    segment = Segment(
        disk,
        log.dir,
        cleaned.base_offset,
        file=disk.open(path, size=cleaned.size),
        index_size_max=log.config.segment_index_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        created_ms=now_ms,
        suffix=CLEANED_SUFFIX,
        index_size=cleaned.index_size,
        time_index_size=cleaned.time_index_size,
        txn_index_size=cleaned.txn_index_size,
    )
    segment.load()
    return segment
