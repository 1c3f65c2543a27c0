"""The checkpoint files of a log directory: offsets of the logs in it, and when they are written.

Invariants: a checkpoint never has an offset of a former log of the same name, and the recovery
point on disk is never above what an fsync has covered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.broker.log.background import Background
from moldau.broker.log.checkpoint_writer import CheckpointWriter
from moldau.broker.log.context import CutLog, LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.log import Log
from moldau.broker.log.machine.checkpoints import CorruptCheckpoint, Partition, decode_offsets
from moldau.broker.log.machine.names import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from moldau.broker.log.waiting_log import WaitingLog

logger = logging.getLogger(__name__)

_OF_LOGS = (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT)


class LogCheckpoints:
    """`logs` are the current logs, which the log manager adds and removes."""

    def __init__(
        self, disk: Disk, background: Background, logs: Mapping[Partition, Log | WaitingLog]
    ) -> None:
        self._disk = disk
        self._logs = logs
        self._writer = CheckpointWriter(disk, background)

    def read(self, directory: LogDirState, name: str) -> dict[Partition, int]:
        path = f"{directory.path}/{name}"
        if not self._disk.exists(path):
            return {}
        try:
            offsets = decode_offsets(path, self._disk.read_bytes(path))
        except CorruptCheckpoint as error:
            # Without it recovery starts from the beginning, which is slower, never wrong.
            logger.warning("%s; continuing without it", error)
            return {}
        self._writer.note_read(directory, name, offsets)
        return offsets

    def write(self, directories: Iterable[LogDirState], name: str) -> None:
        """Write one of the files in the background."""
        for directory in directories:
            self._writer.write(directory, name, self._offsets(name, directory))

    def write_cleaner_offsets(
        self, directory: LogDirState, offsets: Mapping[Partition, int]
    ) -> None:
        self._writer.write(directory, CLEANER_CHECKPOINT, offsets)

    def write_now(self, directory: LogDirState) -> None:
        """Write all of them in place, for a stop; raises OSError."""
        for name in _OF_LOGS:
            self._writer.write_now(directory, name, self._offsets(name, directory))

    def forget(self, key: Partition, directory: LogDirState) -> None:
        """Before a log is created: the offsets of a former log of its name are removed."""
        for name in _OF_LOGS:
            if self._writer.highest(directory, name, key) >= 0:
                self._write_now(directory, name, self._offsets(name, directory))

    def take_over(self, future: Log) -> None:
        """Before a future log becomes the current one: write its offsets for the partition."""
        directory = future.dir_state
        for name in _OF_LOGS:
            offsets = self._offsets(name, directory)
            if _has_offset(name, future):
                offsets[future.topic, future.partition] = _offset(name, future)
            self._write_now(directory, name, offsets)

    def on_cut(self, log: CutLog) -> None:
        """After a log was cut: what is written there next must be checked after a crash."""
        key = (log.topic, log.partition)
        name = RECOVERY_POINT_CHECKPOINT
        if (
            self._logs.get(key) is log
            and self._writer.highest(log.dir_state, name, key) > log.recovery_checkpoint
        ):
            self._write_now(log.dir_state, name, self._offsets(name, log.dir_state))

    def _offsets(self, name: str, directory: LogDirState) -> dict[Partition, int]:
        return {
            key: _offset(name, log)
            for key, log in self._logs.items()
            if log.dir_state is directory and _has_offset(name, log)
        }

    def _write_now(
        self, directory: LogDirState, name: str, offsets: Mapping[Partition, int]
    ) -> None:
        try:
            self._writer.write_now(directory, name, offsets)
        except OSError as error:
            raise directory.fail(f"writing {directory.path}/{name}", error) from error


def _has_offset(name: str, log: Log | WaitingLog) -> bool:
    # Usually the name of the first segment shows where a log starts.
    return name != LOG_START_CHECKPOINT or log.log_start_offset > log.first_offset


def _offset(name: str, log: Log | WaitingLog) -> int:
    if name == LOG_START_CHECKPOINT:
        return log.log_start_offset
    return log.high_watermark if name == HIGH_WATERMARK_CHECKPOINT else log.recovery_checkpoint
