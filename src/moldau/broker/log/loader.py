"""Opening a partition's directory: leftovers, segments, recovery, epochs, producers.

Decides which of a directory's files are the log. Afterwards every segment below the log end is
whole; after an unclean stop each batch from the recovery point on has been checked, the log is cut
at the first that is incomplete or damaged, later segments are removed, and the indexes of the
checked segments are rebuilt. Anything that can be rebuilt
(indexes, snapshots, epochs) is rebuilt when missing or damaged, clean stop or not.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING

from moldau.broker.log.context import LogContext, LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.leftovers import settle_leftovers
from moldau.broker.log.log import Log
from moldau.broker.log.machine.checkpoints import (
    CorruptCheckpoint,
    decode_epochs,
    decode_partition_metadata,
    encode_epochs,
    encode_partition_metadata,
)
from moldau.broker.log.machine.inventory import LogFacts
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.names import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_of_file,
    offset_prefix,
)
from moldau.broker.log.machine.producer_state import ProducerStates
from moldau.broker.log.offset_index import CorruptIndex
from moldau.broker.log.producer_snapshots import ProducerSnapshots
from moldau.broker.log.recovery import Recovered, recover_segment
from moldau.broker.log.replay import rebuild_producers
from moldau.broker.log.segment import Segment, create_segment
from moldau.broker.log.segments import Segments
from moldau.times import WallMs

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

logger = logging.getLogger(__name__)

EVERYWHERE = 2**63 - 1


def open_log(
    context: LogContext,
    dir_state: LogDirState,
    directory: str,
    topic: str,
    partition: int,
    config: LogConfig,
    *,
    now_ms: WallMs,
    topic_id: uuid.UUID | None = None,
    clean_shutdown: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    is_future: bool = False,
    facts: LogFacts | None = None,
    found_id: uuid.UUID | None = None,
) -> Log:
    """Open the log in `directory`, creating it if it is not there.

    `topic_id` is that of a new log, `found_id` what the caller has read from the files of one that
    is there. `recovery_point`, `log_start_offset` and `high_watermark` come from the checkpoints,
    `facts` from the inventory of a clean stop if the directory is as recorded there: then none of
    its files is opened. I/O errors come out as LogDirFailure.
    """
    loader = _Loader(context, directory, config, now_ms)
    restored = facts is not None and facts.end_offset >= log_start_offset
    try:
        if facts is not None and restored:
            known_id = facts.topic_id
            loader.restore(facts, log_start_offset)
        else:
            try:
                files = context.disk.scan_files(directory)
            except FileNotFoundError:
                context.disk.make_dirs(directory)
                files = {}
            settle_leftovers(context.disk, directory, files)
            # First, so that no power failure leaves records of an unknown topic.
            known_id = found_id or loader.topic_id(files, topic_id)
            loader.load(files, clean_shutdown, recovery_point, log_start_offset)
    except OSError as error:
        raise dir_state.fail(f"opening {directory}", error) from error
    log = Log(
        context,
        dir_state,
        directory,
        topic,
        partition,
        config,
        segments=loader.segments,
        log_start_offset=loader.log_start_offset,
        log_end_offset=loader.log_end_offset,
        recovery_point=loader.recovery_point,
        high_watermark=high_watermark,
        leader_epochs=loader.epochs,
        producers=loader.producers,
        snapshots=loader.snapshots,
        topic_id=known_id,
        now_ms=now_ms,
        is_future=is_future,
        new_files=loader.new_files,
        unsynced_files=loader.unsynced_files,
        unwritten_epochs=loader.unwritten_epochs,
    )
    log.opened_from = facts if restored else None
    return log


def read_topic_id(disk: Disk, directory: str) -> uuid.UUID | None:
    """The id in `partition.metadata`, None if there is none; CorruptCheckpoint if a power failure
    has made it unreadable."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        return decode_partition_metadata(path, disk.read_bytes(path))
    except FileNotFoundError:
        return None


class _Loader:
    def __init__(
        self, context: LogContext, directory: str, config: LogConfig, now_ms: WallMs
    ) -> None:
        self.context = context
        self._disk = context.disk
        self.dir = directory
        self.config = config
        self.now_ms = now_ms
        self.producers = ProducerStates()
        self.snapshots = ProducerSnapshots(self._disk, directory)
        # Set by `load` and `restore`: thousands of logs are opened at a start.
        self.epochs: LeaderEpochs
        self.segments: Segments
        self._epochs_loaded: list[tuple[int, int]] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.new_files = True
        # Small files written here; the first flush makes them durable.
        self.unsynced_files: list[str] = []
        # Whether the first flush has to write the epochs.
        self.unwritten_epochs = False

    def load(
        self, files: dict[str, int], clean: bool, recovery_point: int, log_start_offset: int
    ) -> None:
        self.epochs = LeaderEpochs()
        if not files:
            self._start_empty(log_start_offset)
            return
        self._find_snapshots(files)
        if not clean:
            # The process before this one may have been killed before it synced them.
            small = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
            self.unsynced_files += [name for name in small if name in files]
            # Snapshots may cover batches that a power failure has lost.
            for offset in [o for o in self.snapshots.offsets if o > recovery_point]:
                self.snapshots.remove(offset)
        self._load_epochs(files)
        damaged = self._load_segments(files, clean)
        if not self._epochs_loaded:
            # Missing, damaged, or emptied by a power failure before it was synced. The epochs
            # are in the batches, all of them from the first on.
            damaged.update(s.base_offset for s in self.segments if s.size)
        recover_from = None if clean else recovery_point
        end_offset = self._recover(damaged, recover_from, log_start_offset)
        if len(self.segments) and end_offset < log_start_offset:
            # The segments end below the start of the log: none of their records count.
            logger.warning(
                "%s ends at %d below its start %d: starting empty there",
                self.dir,
                end_offset,
                log_start_offset,
            )
            self._discard(list(self.segments))
        if not len(self.segments):
            self._start_empty(log_start_offset)
            return
        self.log_end_offset = end_offset
        self.log_start_offset = max(log_start_offset, self.segments.first.base_offset)
        self.recovery_point = (
            end_offset if clean and not damaged else min(recovery_point, end_offset)
        )
        self.new_files = bool(damaged) or not clean
        self._finish(clean)

    def _finish(self, clean: bool) -> None:
        self.epochs.truncate_from_end(self.log_end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        self._settle_epochs(clean)
        self.snapshots.remove_stray(self.segments.base_offsets)
        self._rebuild_producers(clean)
        # Most logs idle: descriptors and mappings come back with the first use.
        for segment in self.segments:
            segment.release()

    def _rebuild_producers(self, clean: bool) -> None:
        rebuild_producers(
            self.segments,
            self.producers,
            self.snapshots,
            log_start_offset=self.log_start_offset,
            end_offset=self.log_end_offset,
            now_ms=self.now_ms,
            expiration_ms=self.context.producer_id_expiration_ms,
            clean=clean,
        )

    def restore(self, facts: LogFacts, log_start_offset: int) -> None:
        """Take over what the clean stop recorded: files are opened when they are used."""
        if facts.snapshots:
            self.snapshots = ProducerSnapshots(self._disk, self.dir, facts.snapshots)
            self.snapshots.remove_stray(each.base_offset for each in facts.segments)
        self.epochs = LeaderEpochs(facts.epochs)
        segments = []
        for each in facts.segments:
            segment = self._segment(
                each.base_offset,
                size=each.size,
                index_size=each.offset_index_size,
                time_index_size=each.time_index_size,
                txn_index_size=each.txn_index_size,
            )
            segment.restore(each)
            segments.append(segment)
        self.segments = Segments(segments)
        self.log_end_offset = self.recovery_point = facts.end_offset
        self.log_start_offset = max(log_start_offset, segments[0].base_offset)
        self.new_files = False
        if self.epochs.truncate_from_start(self.log_start_offset):
            self._write_epochs()
        self._rebuild_producers(clean=True)

    def _find_snapshots(self, files: dict[str, int]) -> None:
        names = [name for name in files if name.endswith(SNAPSHOT_SUFFIX)]
        if names:
            offsets = (offset_of_file(name) for name in names)
            self.snapshots = ProducerSnapshots(
                self._disk, self.dir, [offset for offset in offsets if offset is not None]
            )

    def _settle_epochs(self, clean: bool) -> None:
        """Write the epochs if the file has others. Those that recovery has only added can wait for
        the first flush, as until then every start finds them in the batches: to replace the file
        in each of thousands of directories takes longer than the rest of their recovery."""
        found, loaded = self.epochs.entries(), self._epochs_loaded
        if found == loaded:
            return
        kept, added = found[: len(loaded)], found[len(loaded) :]
        if not clean and kept == loaded and all(o >= self.recovery_point for _, o in added):
            self.unwritten_epochs = True
        else:
            self._write_epochs()

    def _start_empty(self, offset: int) -> None:
        config = self.config
        segment = create_segment(
            self._disk,
            self.dir,
            offset,
            index_size_max=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=self.now_ms,
            jitter_ms=self.context.jitter(min(config.segment_jitter_ms, config.segment_ms)),
        )
        segment.file.close()
        self.segments = Segments([segment])
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        if self.epochs.latest_epoch >= 0:
            self.epochs.clear()
            self._write_epochs()
        self.snapshots.remove_all()
        self.snapshots.last_taken = offset
        self.producers.clear(offset)

    def _write_epochs(self) -> None:
        self._disk.write_atomic(
            f"{self.dir}/{LEADER_EPOCH_CHECKPOINT}",
            encode_epochs(self.epochs.entries()),
            sync=False,
        )
        self.unsynced_files.append(LEADER_EPOCH_CHECKPOINT)

    def _load_epochs(self, files: dict[str, int]) -> None:
        if LEADER_EPOCH_CHECKPOINT not in files:
            return
        path = f"{self.dir}/{LEADER_EPOCH_CHECKPOINT}"
        try:
            self.epochs = LeaderEpochs(decode_epochs(path, self._disk.read_bytes(path)))
        except CorruptCheckpoint as error:
            logger.warning("%s; taking the epochs from the batches", error)
        self._epochs_loaded = self.epochs.entries()

    def _load_segments(self, files: dict[str, int], clean: bool) -> set[int]:
        """Open every segment; the base offsets of those whose indexes must be rebuilt."""
        damaged: set[int] = set()
        segments: list[Segment] = []
        names = sorted(name for name in files if name.endswith(LOG_SUFFIX))
        for name in names:
            base_offset = offset_of_file(name)
            if base_offset is None:
                continue
            prefix = offset_prefix(base_offset)
            segment = self._segment(
                base_offset,
                size=files[name],
                index_size=files.get(prefix + INDEX_SUFFIX, -1),
                time_index_size=files.get(prefix + TIME_INDEX_SUFFIX, -1),
                txn_index_size=files.get(prefix + TXN_INDEX_SUFFIX, 0),
            )
            segments.append(segment)
            if not clean and name is names[-1]:
                # Its indexes are made again in any case.
                continue
            try:
                segment.load()
            except CorruptIndex as error:
                logger.warning("%s; rebuilding the segment's indexes", error)
                damaged.add(base_offset)
        self.segments = Segments(segments)
        return damaged

    def _segment(
        self,
        base_offset: int,
        *,
        size: int,
        index_size: int,
        time_index_size: int,
        txn_index_size: int,
    ) -> Segment:
        """A segment that is there, none of whose files has been opened yet."""
        config = self.config
        path = f"{self.dir}/{offset_prefix(base_offset)}{LOG_SUFFIX}"
        return Segment(
            self._disk,
            self.dir,
            base_offset,
            file=self._disk.open(path, size=size),
            index_size_max=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=self.now_ms,
            jitter_ms=self.context.jitter(min(config.segment_jitter_ms, config.segment_ms)),
            index_size=index_size,
            time_index_size=time_index_size,
            txn_index_size=txn_index_size,
        )

    def _recover(self, damaged: set[int], recover_from: int | None, log_start_offset: int) -> int:
        """Check what must be checked; where the log ends."""
        end_offset = log_start_offset
        ordered = list(self.segments)
        for index, segment in enumerate(ordered):
            following = ordered[index + 1].base_offset if index + 1 < len(ordered) else None
            unflushed = recover_from is not None and (following is None or following > recover_from)
            if not unflushed and segment.base_offset not in damaged:
                if following is None:
                    end_offset = segment.load_end()
                continue
            outcome = self._rebuild(
                segment,
                ordered[index + 1 :],
                trusted_below=EVERYWHERE if not unflushed else recover_from or 0,
                log_start_offset=log_start_offset,
            )
            end_offset = outcome.next_offset
            if outcome.cut_bytes:
                logger.warning(
                    "%s: cut %d bytes after offset %d (%s)",
                    segment.file.path,
                    outcome.cut_bytes,
                    end_offset - 1,
                    outcome.reason,
                )
                break
            # A power failure may take the end of one segment and leave the next one's name.
            # Cleaning leaves such gaps, too, so compacted logs have to live with them.
            lost = following is not None and end_offset < following and not self.config.compact
            overtaken = following is not None and end_offset > following
            if unflushed and (lost or overtaken):
                self._discard(ordered[index + 1 :])
                break
        return end_offset

    def _rebuild(
        self,
        segment: Segment,
        later: list[Segment],
        *,
        trusted_below: int,
        log_start_offset: int,
    ) -> Recovered:
        """Check a segment's batches and rebuild its indexes. If it has to be cut, the later
        segments are removed durably before the cut that is the reason.

        Below `trusted_below` the next start believes indexes unless one is missing. So a crash
        while they are made must not leave what looks complete, nor one after that what no
        fsync has covered. It never believes those of the last segment: it makes them again
        after a crash, and a clean stop or a roll syncs them first.
        """
        path = segment.time_index.path
        hidden = segment.base_offset < trusted_below and bool(later)
        if hidden:
            self._disk.remove(path, missing_ok=True)
            segment.time_index.begin_again(path + TEMPORARY_SUFFIX)
        outcome = recover_segment(
            segment,
            self.segments,
            self.producers,
            self.snapshots,
            self.epochs,
            log_start_offset=log_start_offset,
            now_ms=self.now_ms,
            expiration_ms=self.context.producer_id_expiration_ms,
        )
        if outcome.cut_bytes:
            self._discard(later)
            segment.cut(outcome.position)
        if later:
            segment.become_inactive()
        if hidden:
            durable = outcome.next_offset <= trusted_below
            for sync in segment.begin_sync() if durable else ():
                sync()
            self._disk.rename(segment.time_index.path, path, sync=durable)
            segment.time_index.moved(path)
        return outcome

    def _discard(self, segments: list[Segment]) -> None:
        """Drop segments that come after a cut: their offsets no longer connect."""
        for segment in reversed(segments):
            logger.warning("%s: dropped, as the log ends before it", segment.file.path)
            self.segments.remove(segment)
            for path in segment.paths():
                self._disk.remove(path, missing_ok=True)
            if segment.base_offset in self.snapshots.offsets:
                self.snapshots.remove(segment.base_offset)
            segment.release()
        if segments:
            # Before anything is appended in their place.
            self._disk.sync_dir(self.dir)

    def topic_id(self, files: dict[str, int], wanted: uuid.UUID | None) -> uuid.UUID | None:
        """The id in `partition.metadata`; written when it is missing and given."""
        path = f"{self.dir}/{PARTITION_METADATA}"
        if PARTITION_METADATA in files:
            try:
                return decode_partition_metadata(path, self._disk.read_bytes(path))
            except CorruptCheckpoint as error:
                logger.warning("%s; ignoring it", error)
        if wanted is not None:
            data = encode_partition_metadata(wanted)
            if files:
                self._disk.write_atomic(path, data, sync=False)
            else:
                # Of a new log nothing is lost if it remains incomplete.
                self._disk.write_new(path, data)
            self.unsynced_files.append(PARTITION_METADATA)
        return wanted
