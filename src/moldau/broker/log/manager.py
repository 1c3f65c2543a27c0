"""All logs of a broker and the folders they live in.

Decides where a new partition goes, what is loaded at start and how the broker stops. What
always holds: at most one current and one future log per partition; a folder that fails
takes only its own partitions with it; checkpoints never claim more than is true.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.broker.log.background import Background
from moldau.broker.log.closing import Closing
from moldau.broker.log.context import LogContext, LogDirFailure, LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.inventories import read_inventory, write_inventory
from moldau.broker.log.loader import open_log, topic_id_is_lost
from moldau.broker.log.log import Log
from moldau.broker.log.log_checkpoints import LogCheckpoints
from moldau.broker.log.log_dirs import LogDir, begin_all, claim_all, put_marks_back
from moldau.broker.log.machine.checkpoints import Partition
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.names import (
    CLEANER_CHECKPOINT,
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_DIR_SUFFIX,
    parse_dir_name,
    partition_dir,
    suffixed_dir,
)
from moldau.broker.log.moves import copy_step
from moldau.broker.log.removals import Removals
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

logger = logging.getLogger(__name__)

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
NEVER_MS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    topic: str
    partition: int
    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirInfo:
    """What DescribeLogDirs tells of a folder."""

    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaInfo] = field(default_factory=list)


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
        self._logs: dict[Partition, Log] = {}
        self.checkpoints = LogCheckpoints(disk, background, self._logs)
        self.context = LogContext(
            disk=disk,
            background=background,
            schedule_removal=self.removals.files,
            on_cut=self.checkpoints.on_cut,
            jitter=self._jitter,
            producer_id_expiration_ms=producer_id_expiration_ms,
        )
        self._future_logs: dict[Partition, Log] = {}
        # How many current logs each folder has, by its id; None: to be counted anew.
        self._counts: Counter[int] | None = None
        self._cordoned: frozenset[str] = frozenset()
        self.closing = Closing(disk)
        # Dicts as ordered sets: the order of work must be the same in every simulated run.
        self._timed_flush: dict[Log, None] = {}
        # Those the cleaner looks at, apart so that it need not walk all others.
        self._compacted: dict[Log, None] = {}

    def configure(self, *, producer_id_expiration_ms: int, cordoned: Iterable[str]) -> None:
        """Take over what may change in a running broker; `cordoned` folders get no new logs."""
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
        """Both halves of it, for who has nothing to do between them."""
        self.claim_dirs(cluster_id=cluster_id, node_id=node_id)
        self.begin_dirs()

    def claim_dirs(self, *, cluster_id: str | None = None, node_id: int | None = None) -> None:
        """Lock and check every folder; one that cannot be used by anybody goes offline.

        WrongLogDir and BlockingIOError (another process has the lock) stop the start.
        """
        claim_all(self.dirs, cluster_id=cluster_id, node_id=node_id, new_id=self._new_id)

    def begin_dirs(self) -> None:
        """Take the marks of a clean stop away: from here on folders are changed."""
        begin_all(self.dirs)

    def let_go(self, *, changed: LogDir | None) -> None:
        """The end of a start that was given up: where nothing was loaded and nobody else has
        changed anything, the marks of a clean stop are as they were."""
        if not self._loading_begun:
            put_marks_back(each for each in self.dirs if each is not changed)
        self.unlock()

    def unlock(self) -> None:
        for directory in self.dirs:
            directory.unlock()

    def load(self, config_for: Callable[[str], LogConfig]) -> None:
        """Load every log found, recovering those of folders that were not stopped cleanly."""
        for _ in self.loading(config_for):
            pass

    def loading(self, config_for: Callable[[str], LogConfig]) -> Iterator[None]:
        """`load`, which the caller may leave off after each log and go on with later."""
        self._loading_begun = True
        for directory in self.dirs:
            if directory.failure is None:
                try:
                    yield from self._load_dir(directory, config_for)
                except OSError as error:
                    directory.fail("loading its logs", error)
                except LogDirFailure:
                    continue
        self._settle_future_logs()

    def _load_dir(
        self, directory: LogDir, config_for: Callable[[str], LogConfig]
    ) -> Iterator[None]:
        recovery_points = self.checkpoints.read(directory, RECOVERY_POINT_CHECKPOINT)
        log_starts = self.checkpoints.read(directory, LOG_START_CHECKPOINT)
        high_watermarks = self.checkpoints.read(directory, HIGH_WATERMARK_CHECKPOINT)
        inventory = read_inventory(directory)
        for name in self._disk.scan_dirs(directory.path):
            parsed = parse_dir_name(name)
            if parsed is None or parsed.topic == CLUSTER_METADATA_TOPIC:
                continue
            path = f"{directory.path}/{name}"
            config = config_for(parsed.topic)
            if parsed.suffix == DELETE_DIR_SUFFIX:
                self.removals.directory(path, config.file_delete_delay_ms)
                continue
            if parsed.suffix == STRAY_DIR_SUFFIX:
                logger.warning("%s is of no partition of this broker and is left alone", path)
                continue
            if not directory.clean_shutdown and topic_id_is_lost(self._disk, path):
                # Flushes cover the id, so none has ended here. This may be an older topic of
                # the name, deleted just before the power failed.
                stray = suffixed_dir(
                    parsed.topic, parsed.partition, self._new_id(), STRAY_DIR_SUFFIX
                )
                logger.error("%s does not tell its topic id; setting it aside", path)
                self._disk.rename(path, f"{directory.path}/{stray}")
                continue
            key = (parsed.topic, parsed.partition)
            log = open_log(
                self.context,
                directory,
                path,
                parsed.topic,
                parsed.partition,
                config,
                now_ms=self._now_ms(),
                clean_shutdown=directory.clean_shutdown,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=log_starts.get(key, 0),
                high_watermark=high_watermarks.get(key, 0),
                is_future=parsed.suffix == FUTURE_DIR_SUFFIX,
                facts=inventory.get(name),
            )
            self._add_loaded(key, log)
            yield
        # A log may end before its recovery point (a power failure in the middle of a cut), and a
        # clean stop put it at the very end: what is appended from now on is not durable there.
        for log in self._of_dir(directory, self._logs.values()):
            self.checkpoints.on_cut(log)

    def _add_loaded(self, key: Partition, log: Log) -> None:
        logs = self._future_logs if log.is_future else self._logs
        known = logs.get(key)
        if known is not None:
            # A crash in the middle of a move between folders: the longer one is whole.
            log, loser = (log, known) if log.log_end_offset > known.log_end_offset else (known, log)
            logger.error(
                "%s and %s hold one partition; setting the latter aside", log.dir, loser.dir
            )
            self._set_aside(loser, STRAY_DIR_SUFFIX)
        logs[key] = log
        self._note_config(log)

    def _settle_future_logs(self) -> None:
        for key, future in list(self._future_logs.items()):
            try:
                self._settle_future_log(key, future)
            except LogDirFailure:
                continue

    def _settle_future_log(self, key: Partition, future: Log) -> None:
        """A future log whose current one is gone was about to take its place.

        One of another topic, or not known of which, is what a crash has left of a deleted one.
        """
        current = self._logs.get(key)
        if current is None:
            if not self.offline_dirs:
                self._promote(key)
        elif current.topic_id != future.topic_id:
            self.drop_future_log(*key)
        elif not all(directory.clean_shutdown for directory in self.dirs):
            # Either may have lost what the other has and gone on otherwise: copy anew.
            future.truncate_fully_and_start_at(current.log_start_offset, now_ms=self._now_ms())

    # Logs ---------------------------------------------------------------------------

    def get_log(self, topic: str, partition: int) -> Log | None:
        return self._logs.get((topic, partition))

    def get_future_log(self, topic: str, partition: int) -> Log | None:
        return self._future_logs.get((topic, partition))

    def logs(self) -> Iterator[Log]:
        """Current logs of usable folders."""
        return (log for log in self._logs.values() if not log.offline)

    def compacted_logs(self) -> list[Log]:
        """Current logs of usable folders whose cleanup.policy has compact."""
        return [log for log in self._compacted if not log.offline]

    def __len__(self) -> int:
        return len(self._logs)

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
        """The broker epoch of the last run if every folder was left cleanly, else -1."""
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
        """The log of a partition, made when it is new.

        A new one goes to `directory`, or to the usable folder with the fewest logs.
        """
        log = self._logs.get((topic, partition))
        if log is not None:
            if log.dir_state.failure is not None:
                raise log.dir_state.failure.again()
            return log
        target = directory or self._emptiest_dir()
        if target.failure is not None:
            raise target.failure.again()
        # A copy of a log that is yet to be made is one of a former topic.
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
        self._logs[topic, partition] = log
        if self._counts is not None:
            self._counts[id(target)] += 1
        self._note_config(log)
        return log

    def _emptiest_dir(self) -> LogDir:
        live = self.live_dirs
        if not live:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        # When all are cordoned the cluster has nowhere else to put what it assigned to this broker.
        live = [directory for directory in live if directory.path not in self._cordoned] or live
        if len(live) == 1:
            return live[0]
        if self._counts is None:
            self._counts = Counter(id(log.dir_state) for log in self._logs.values())
        counts = self._counts
        return min(live, key=lambda directory: counts[id(directory)])

    def delete_log(self, topic: str, partition: int) -> None:
        """Forget a partition; its directory is renamed now and removed after the delay."""
        key = (topic, partition)
        self._counts = None
        for logs in (self._future_logs, self._logs):
            log = logs.pop(key, None)
            if log is not None:
                self._set_aside(log, DELETE_DIR_SUFFIX)

    def set_stray(self, log: Log) -> None:
        """Put aside a log that the cluster does not assign to this broker."""
        self._counts = None
        self._logs.pop((log.topic, log.partition), None)
        self._set_aside(log, STRAY_DIR_SUFFIX)

    def _set_aside(self, log: Log, suffix: str, *, sync: bool = False) -> None:
        self._timed_flush.pop(log, None)
        self._compacted.pop(log, None)
        if log.offline:
            log.close(clean=False)
            return
        name = suffixed_dir(log.topic, log.partition, self._new_id(), suffix)
        log.rename_dir(f"{log.dir_state.path}/{name}", sync=sync)
        log.close(clean=False)
        if suffix == DELETE_DIR_SUFFIX:
            self.removals.directory(log.dir, log.config.file_delete_delay_ms)

    def update_config(self, topic: str, config: LogConfig) -> None:
        for logs in (self._logs, self._future_logs):
            for log in logs.values():
                if log.topic == topic:
                    log.update_config(config)
                    self._note_config(log)

    def _note_config(self, log: Log) -> None:
        if log.config.flush_ms < NEVER_MS:
            self._timed_flush[log] = None
        else:
            self._timed_flush.pop(log, None)
        if log.config.compact and not log.is_future:
            self._compacted[log] = None
        else:
            self._compacted.pop(log, None)

    # Moving between folders ---------------------------------------------------------

    def create_future_log(self, topic: str, partition: int, directory: LogDir) -> Log:
        """Begin to move a partition to another folder."""
        key = (topic, partition)
        current = self._logs[key]
        if directory.failure is not None:
            raise directory.failure.again()
        known = self._future_logs.get(key)
        if known is not None:
            if known.dir_state is directory:
                return known
            self.drop_future_log(topic, partition)
        self.checkpoints.forget(key, directory)
        name = suffixed_dir(topic, partition, self._new_id(), FUTURE_DIR_SUFFIX)
        log = open_log(
            self.context,
            directory,
            f"{directory.path}/{name}",
            topic,
            partition,
            current.config,
            now_ms=self._now_ms(),
            topic_id=current.topic_id,
            log_start_offset=current.log_start_offset,
            is_future=True,
        )
        self._future_logs[key] = log
        return log

    def drop_future_log(self, topic: str, partition: int) -> None:
        log = self._future_logs.pop((topic, partition), None)
        if log is not None:
            self._set_aside(log, DELETE_DIR_SUFFIX)

    def replace_by_future_log(self, topic: str, partition: int) -> Log:
        """Put the future log, which should have nearly everything, in the current one's place.

        What it lacks is copied first, here and at once: nothing appended since the caller
        last looked may be lost.
        """
        key = (topic, partition)
        current = self._logs[key]
        future = self._future_logs[key]
        while not copy_step(current, future, now_ms=self._now_ms()):
            pass
        # Offsets without a batch (a truncated tail) and epochs without one count as well.
        if future.log_end_offset < current.log_end_offset:
            future.log_end_offset = current.log_end_offset
            # Only a segment's name can say so after a restart.
            future.roll(self._now_ms())
        future.log_start_offset = max(future.log_start_offset, current.log_start_offset)
        if future.topic_id is None and current.topic_id is not None:
            future.set_topic_id(current.topic_id)
        future.leader_epochs = LeaderEpochs(current.leader_epochs.entries())
        future.write_epochs()
        future.set_high_watermark(current.high_watermark)
        # From here on what was promised of the current log must hold of the future one.
        future.flush(now_ms=self._now_ms())
        self.checkpoints.take_over(future)
        # The old one goes first: a crash between the two leaves the future one alone, and
        # the next start promotes it. The other order would leave two of one name.
        self._set_aside(current, DELETE_DIR_SUFFIX, sync=True)
        self._logs[key] = future
        return self._promote(key)

    def _promote(self, key: Partition) -> Log:
        future = self._future_logs.pop(key)
        future.rename_dir(f"{future.dir_state.path}/{partition_dir(*key)}", sync=True)
        future.is_future = False
        self._counts = None
        self._logs[key] = future
        self._note_config(future)
        return future

    # Regular work -------------------------------------------------------------------

    def delete_old_segments(self) -> int:
        """Apply retention to every log; how many segments went."""
        now_ms = self._now_ms()
        count = 0
        for log in list(self.logs()):
            try:
                count += log.delete_old_segments(now_ms)
            except LogDirFailure:
                continue
        return count

    def expire_producers(self) -> None:
        now_ms = self._now_ms()
        for log in self._logs.values():
            if log.producers.entries or log.producers.verifications:
                log.producers.remove_expired(now_ms, self.context.producer_id_expiration_ms)

    def flush_overdue(self) -> None:
        """Flush logs whose flush.ms has passed since they were last flushed."""
        now_ms = self._now_ms()
        for log in self._timed_flush:
            if (
                log.log_end_offset > log.recovery_point
                and now_ms - log.flusher.last_flush_ms >= log.config.flush_ms
            ):
                log.request_flush(now_ms=now_ms)

    @property
    def flush_ms_min(self) -> int:
        """The shortest flush.ms in force."""
        return min((log.config.flush_ms for log in self._timed_flush), default=NEVER_MS)

    def checkpoint_recovery_points(self) -> None:
        self.checkpoints.write(self.live_dirs, RECOVERY_POINT_CHECKPOINT)

    def checkpoint_log_starts(self) -> None:
        self.checkpoints.write(self.live_dirs, LOG_START_CHECKPOINT)

    def checkpoint_high_watermarks(self) -> None:
        self.checkpoints.write(self.live_dirs, HIGH_WATERMARK_CHECKPOINT)

    def _of_dir(self, directory: LogDir, logs: Iterable[Log]) -> list[Log]:
        return [log for log in logs if log.dir_state is directory]

    def cleaner_offsets(self, directory: LogDir) -> dict[Partition, int]:
        """First dirty offsets per compacted partition, as last checkpointed."""
        try:
            return self.checkpoints.read(directory, CLEANER_CHECKPOINT)
        except OSError as error:
            directory.fail("reading the cleaner's checkpoint", error)
            return {}

    def write_cleaner_offsets(self, directory: LogDir, offsets: dict[Partition, int]) -> None:
        self.checkpoints.write_cleaner_offsets(directory, offsets)

    def describe(self) -> list[LogDirInfo]:
        """Every folder with what it holds."""
        infos = []
        for directory in self.dirs:
            if directory.failure is not None:
                infos.append(
                    LogDirInfo(
                        path=directory.path,
                        error=ErrorCode.KAFKA_STORAGE_ERROR,
                        total_bytes=-1,
                        usable_bytes=-1,
                    )
                )
                continue
            try:
                total = self._disk.total_bytes(directory.path)
                usable = self._disk.free_bytes(directory.path)
            except OSError:
                total = usable = -1
            info = LogDirInfo(
                path=directory.path, error=ErrorCode.NONE, total_bytes=total, usable_bytes=usable
            )
            for logs in (self._logs, self._future_logs):
                info.replicas.extend(
                    self._replica_info(log) for log in self._of_dir(directory, logs.values())
                )
            infos.append(info)
        return infos

    def _replica_info(self, log: Log) -> ReplicaInfo:
        if log.is_future:
            current = self._logs.get((log.topic, log.partition))
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

    # Stop ---------------------------------------------------------------------------

    async def flush_all(self) -> None:
        """Do most of what `close` has to do before it is called, faster and off the loop."""
        logs = [*self._logs.values(), *self._future_logs.values()]
        for directory in self.live_dirs:
            await self.closing.prepare(directory, self._of_dir(directory, logs), self._now_ms())

    def close(self, *, broker_epoch: int = -1) -> None:
        """Flush and close everything, write checkpoints and the mark of a clean stop.

        It blocks for the fsyncs. Folders that fail on the way get no mark.
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
        logs = self._of_dir(directory, [*self._logs.values(), *self._future_logs.values()])
        self.closing.close(directory, logs, now_ms)
        self.checkpoints.write_now(directory)
        directory.mark_clean(broker_epoch)
        write_inventory(self._disk, directory, logs)
