"""All logs of a broker and its log directories.

Decides where a new partition goes, what is loaded at start and how the broker stops. Invariants:
at most one current and one future log per partition; a log directory that fails takes only its own
partitions offline; checkpoints never claim more than is true.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from moldau.broker.log.background import Background
from moldau.broker.log.closing import Closing
from moldau.broker.log.context import LogContext, LogDirFailure, LogDirState
from moldau.broker.log.descriptions import LogDirInfo, describe
from moldau.broker.log.disk import Disk
from moldau.broker.log.future_logs import FutureLogs
from moldau.broker.log.inventories import write_inventory
from moldau.broker.log.loader import open_log
from moldau.broker.log.loading import LogLoading
from moldau.broker.log.log import Log
from moldau.broker.log.log_checkpoints import LogCheckpoints
from moldau.broker.log.log_dirs import LogDir, begin_all, claim_all, put_marks_back
from moldau.broker.log.machine.checkpoints import Partition
from moldau.broker.log.machine.names import (
    CLEANER_CHECKPOINT,
    DELETE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_DIR_SUFFIX,
    partition_dir,
)
from moldau.broker.log.registry import NEVER_MS, KnownLog, LogRegistry
from moldau.broker.log.removals import Removals
from moldau.broker.log.waiting_log import WaitingLog
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

logger = logging.getLogger(__name__)

#: Each takes about a tenth of a millisecond.
SMALL_FILES_PER_TURN: Final = 20


class LogManager:
    def __init__(
        self,
        paths: Sequence[str],
        *,
        disk: Disk,
        background: Background,
        now_ms: Callable[[], WallMs],
        random_bytes: Callable[[int], bytes],
        producer_id_expiration_ms: int = 86_400_000,
        on_dir_failure: Callable[[LogDir], None] | None = None,
    ) -> None:
        self._disk = disk
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._on_dir_failure = on_dir_failure
        self.dirs = [LogDir(disk, path.rstrip("/") or "/", self._failed) for path in paths]
        self._loading_begun = False
        self.removals = Removals(disk, background, now_ms)
        self._registry = LogRegistry(self.removals, self._new_id)
        self.checkpoints = LogCheckpoints(disk, background, self._registry.current)
        self.context = LogContext(
            disk=disk,
            background=background,
            schedule_removal=self.removals.files,
            on_cut=self.checkpoints.on_cut,
            jitter=self._jitter,
            producer_id_expiration_ms=producer_id_expiration_ms,
        )
        self._loading = LogLoading(
            self.context, self._registry, self.checkpoints, self.removals, now_ms
        )
        self._future = FutureLogs(self.context, self._registry, self.checkpoints, now_ms)
        self._cordoned: frozenset[str] = frozenset()
        self.closing = Closing(disk, background)

    def configure(self, *, producer_id_expiration_ms: int, cordoned: Iterable[str]) -> None:
        """Apply settings that may change; `cordoned` log directories get no new logs."""
        self.context.producer_id_expiration_ms = producer_id_expiration_ms
        paths = {path.rstrip("/") or "/" for path in cordoned}
        everything = {directory.path for directory in self.dirs}
        self._cordoned = frozenset(everything if "*" in paths else paths)

    def _jitter(self, jitter_ms_max: int) -> int:
        if jitter_ms_max <= 0:
            return 0
        return int.from_bytes(self._random_bytes(8), "big") % jitter_ms_max

    def _new_id(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._random_bytes(16), version=4)

    def _failed(self, state: LogDirState) -> None:
        if self._on_dir_failure is not None and isinstance(state, LogDir):
            self._on_dir_failure(state)

    # Start --------------------------------------------------------------------------

    def open_dirs(self, *, cluster_id: str | None = None, node_id: int | None = None) -> None:
        """`claim_dirs` and `begin_dirs`, for callers that have nothing to do between them."""
        self.claim_dirs(cluster_id=cluster_id, node_id=node_id)
        self.begin_dirs()

    def claim_dirs(self, *, cluster_id: str | None = None, node_id: int | None = None) -> None:
        """Lock and check every log directory; one that cannot be used at all goes offline.

        WrongLogDir and BlockingIOError (another process has the lock) stop the start.
        """
        claim_all(self.dirs, cluster_id=cluster_id, node_id=node_id, new_id=self._new_id)

    def begin_dirs(self) -> None:
        """Remove the clean-shutdown marks: from here on the log directories are changed."""
        begin_all(self.dirs)

    def let_go(self, *, changed: LogDir | None) -> None:
        """Give up a start. If no log was loaded, the clean-shutdown marks are restored, except
        that of `changed`."""
        if not self._loading_begun:
            put_marks_back(each for each in self.dirs if each is not changed)
        self.unlock()

    def unlock(self) -> None:
        for directory in self.dirs:
            directory.unlock()

    def load(self, config_for: Callable[[str], LogConfig]) -> None:
        """Load every log, recovering those in log directories without a clean-shutdown mark."""
        for _ in self.loading(config_for):
            pass

    def loading(self, config_for: Callable[[str], LogConfig]) -> Iterator[None]:
        """`load` as an iterator: the caller may pause after each log."""
        self._loading_begun = True
        for directory in self.dirs:
            if directory.failure is None:
                try:
                    yield from self._loading.load_dir(directory, config_for)
                except OSError as error:
                    directory.fail("loading its logs", error)
                except LogDirFailure:
                    continue
        self._future.settle(self.dirs)

    # Logs ---------------------------------------------------------------------------

    def known_log(self, topic: str, partition: int) -> KnownLog | None:
        """As `get_log`, without opening one that waits for its first use."""
        return self._registry.current.get((topic, partition))

    def get_log(self, topic: str, partition: int) -> Log | None:
        """The current log of a partition; LogDirFailure if this is its first use and it cannot be
        opened."""
        return self._registry.log((topic, partition))

    def get_future_log(self, topic: str, partition: int) -> Log | None:
        return self._registry.future.get((topic, partition))

    def logs(self) -> Iterator[Log]:
        """Current logs in usable log directories."""
        return self._registry.usable(self._registry.current)

    def known_logs(self) -> list[KnownLog]:
        """As `logs`, without opening those that wait for their first use."""
        return [log for log in self._registry.current.values() if not log.offline]

    def compacted_logs(self) -> list[Log]:
        """Current logs in usable log directories whose cleanup.policy has compact."""
        return list(self._registry.usable(self._registry.compacted))

    def __len__(self) -> int:
        return len(self._registry.current)

    @property
    def live_dirs(self) -> list[LogDir]:
        return [directory for directory in self.dirs if directory.failure is None]

    @property
    def offline_dirs(self) -> list[LogDir]:
        return [directory for directory in self.dirs if directory.failure is not None]

    @property
    def cordoned_dirs(self) -> list[LogDir]:
        return [directory for directory in self.dirs if directory.path in self._cordoned]

    def dir_by_path(self, path: str) -> LogDir | None:
        path = path.rstrip("/") or "/"
        return next((d for d in self.dirs if d.path == path), None)

    def dir_by_id(self, directory_id: uuid.UUID) -> LogDir | None:
        return next((d for d in self.dirs if d.directory_id == directory_id), None)

    @property
    def last_broker_epoch(self) -> int:
        """The broker epoch of the last run if every log directory was closed cleanly, else -1."""
        epochs = {directory.broker_epoch for directory in self.dirs}
        return epochs.pop() if len(epochs) == 1 else -1

    def create_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: uuid.UUID | None = None,
        directory: LogDir | None = None,
    ) -> Log:
        """The log of a partition, created if it is new.

        A new one goes to `directory`, or to the usable log directory with the fewest logs.
        """
        log = self._registry.log((topic, partition))
        if log is not None:
            if log.dir_state.failure is not None:
                raise log.dir_state.failure.again()
            return log
        target = directory or self._emptiest_dir()
        if target.failure is not None:
            raise target.failure.again()
        # A future log without a current one belongs to a former topic.
        self.drop_future_log(topic, partition)
        self.checkpoints.forget((topic, partition), target)
        log = open_log(
            self.context,
            target,
            f"{target.path}/{partition_dir(topic, partition)}",
            topic,
            partition,
            config,
            now_ms=self._now_ms(),
            topic_id=topic_id,
        )
        self._registry.add(log)
        return log

    def _emptiest_dir(self) -> LogDir:
        live = self.live_dirs
        if not live:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        # If all are cordoned, what the cluster assigns to this broker has no other place.
        live = [directory for directory in live if directory.path not in self._cordoned] or live
        if len(live) == 1:
            return live[0]
        return self._registry.emptiest(live)

    def delete_log(self, topic: str, partition: int) -> None:
        """Delete a partition; its directory is renamed now and removed after the delay."""
        self.drop_future_log(topic, partition)
        log = self._registry.current.pop((topic, partition), None)
        if log is not None:
            self._registry.set_aside(log, DELETE_DIR_SUFFIX)

    def set_stray(self, log: KnownLog) -> None:
        """Set aside a log that the cluster does not assign to this broker."""
        self._registry.current.pop((log.topic, log.partition), None)
        self._registry.set_aside(log, STRAY_DIR_SUFFIX)

    def update_config(self, topic: str, config: LogConfig) -> None:
        for known in (*self._registry.current.values(), *self._registry.future.values()):
            if known.topic == topic:
                if isinstance(known, WaitingLog):
                    known.config = config
                else:
                    known.update_config(config)
                self._registry.note_config(known)

    # Moving between log directories --------------------------------------------------

    def create_future_log(self, topic: str, partition: int, directory: LogDir) -> Log:
        """Begin to move a partition to another log directory."""
        return self._future.create(topic, partition, directory)

    def drop_future_log(self, topic: str, partition: int) -> None:
        self._future.drop(topic, partition)

    def replace_by_future_log(self, topic: str, partition: int) -> Log:
        """Copy what the future log lacks, then put it in the current one's place."""
        return self._future.replace_current(topic, partition)

    # Regular work -------------------------------------------------------------------

    def delete_old_segments(self) -> int:
        """Apply retention to every log; returns how many segments were deleted."""
        now_ms = self._now_ms()
        count = 0
        for log in self.logs():
            try:
                count += log.delete_old_segments(now_ms)
            except LogDirFailure:
                continue
        return count

    def expire_producers(self) -> None:
        now_ms = self._now_ms()
        for log in self._registry.current.values():
            # Opening one leaves out those that have expired.
            if isinstance(log, WaitingLog):
                continue
            if log.producers.entries or log.producers.verifications:
                log.producers.remove_expired(now_ms, self.context.producer_id_expiration_ms)

    def flush_overdue(self) -> None:
        """Flush logs whose flush.ms has passed since they were last flushed."""
        now_ms = self._now_ms()
        for log in self._registry.timed_flush:
            if (
                log.log_end_offset > log.recovery_point
                and now_ms - log.flusher.last_flush_ms >= log.config.flush_ms
            ):
                log.request_flush(now_ms=now_ms)

    def write_small_files(self) -> None:
        """Write some of the small files that would otherwise wait for a flush or the stop."""
        for files in list(islice(self.context.unwritten, SMALL_FILES_PER_TURN)):
            # One that cannot be written must not keep the others.
            self.context.unwritten.pop(files, None)
            with suppress(LogDirFailure):
                files.write_ahead()

    @property
    def has_unwritten_files(self) -> bool:
        return bool(self.context.unwritten)

    @property
    def flush_ms_min(self) -> int:
        """The shortest flush.ms in force."""
        return min((log.config.flush_ms for log in self._registry.timed_flush), default=NEVER_MS)

    def checkpoint_recovery_points(self) -> None:
        self.checkpoints.write(self.live_dirs, RECOVERY_POINT_CHECKPOINT)

    def checkpoint_log_starts(self) -> None:
        self.checkpoints.write(self.live_dirs, LOG_START_CHECKPOINT)

    def checkpoint_high_watermarks(self) -> None:
        self.checkpoints.write(self.live_dirs, HIGH_WATERMARK_CHECKPOINT)

    def cleaner_offsets(self, directory: LogDir) -> dict[Partition, int]:
        """First dirty offsets per compacted partition, as last checkpointed."""
        try:
            return self.checkpoints.read(directory, CLEANER_CHECKPOINT)
        except OSError as error:
            directory.fail("reading the cleaner's checkpoint", error)
            return {}

    def write_cleaner_offsets(self, directory: LogDir, offsets: dict[Partition, int]) -> None:
        self.checkpoints.write_cleaner_offsets(directory, offsets)

    def describe(self, wanted: Container[tuple[str, int]] | None = None) -> list[LogDirInfo]:
        """Every log directory with its replicas, or with those of these topics and partitions."""
        return describe(self._disk, self.dirs, self._registry, wanted)

    # Stop ---------------------------------------------------------------------------

    async def begin_close(self) -> None:
        """Do what can be done ahead of a stop while clients are still served."""
        for directory in self.live_dirs:
            await self.closing.begin(directory, self._registry.opened_in(directory))

    async def flush_all(self) -> None:
        """Do most of what `close` has to do before it is called, faster and off the loop."""
        for directory in self.live_dirs:
            logs = self._registry.opened_in(directory)
            await self.closing.prepare(directory, logs, self._now_ms())

    def close(self, *, broker_epoch: int = -1) -> None:
        """Flush and close everything, write checkpoints and clean-shutdown marks.

        It blocks for the fsyncs. Log directories that fail on the way get no mark.
        """
        now_ms = self._now_ms()
        for directory in self.dirs:
            if directory.failure is None:
                try:
                    self._close_dir(directory, broker_epoch, now_ms)
                except OSError as error:
                    directory.fail("closing its logs", error)
                except LogDirFailure:
                    logger.error("%s was not closed cleanly", directory.path)
            directory.unlock()

    def _close_dir(self, directory: LogDir, broker_epoch: int, now_ms: WallMs) -> None:
        self.closing.close(directory, self._registry.opened_in(directory), now_ms)
        self.checkpoints.write_now(directory)
        directory.mark_clean(broker_epoch)
        write_inventory(self._disk, directory, self._registry.of_dir(directory))
