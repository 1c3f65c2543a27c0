"""What a log needs of its surroundings, passed in when it is opened."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from moldau.broker.log.background import Background, InlineBackground
from moldau.broker.log.disk import Disk, OsDisk
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)


class AppendOrigin(enum.Enum):
    """Where a batch comes from decides what is checked."""

    CLIENT = "client"  # everything
    COORDINATOR = "coordinator"  # markers and group records: epochs, but no sequences
    RAFT_LEADER = "raft leader"  # offsets and epochs are the quorum's own


class AppendInfo(NamedTuple):
    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1 unless the topic has LogAppendTime
    log_start_offset: int
    duplicate: bool
    flush_due: bool  # flush.messages asks for an fsync before this is acknowledged
    size: int


class LogDirFailure(ApiError):
    """A log directory has failed; its partitions are gone until the broker restarts."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(
            ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {directory} is offline: {reason}"
        )
        self.directory = directory
        self.reason = reason

    def again(self) -> LogDirFailure:
        """A copy to raise: an exception collects the frames of every time it is raised."""
        return LogDirFailure(self.directory, self.reason)


class LogDirState:
    """Whether a log directory can be used. The first I/O error takes it offline for good:
    after a failed write or fsync the contents of that disk are unknown."""

    __slots__ = ("_on_failure", "failure", "path")

    def __init__(self, path: str, on_failure: Callable[[LogDirState], None] | None = None) -> None:
        self.path = path
        self.failure: LogDirFailure | None = None
        self._on_failure = on_failure

    def fail(self, what: str, error: BaseException) -> LogDirFailure:
        """Take the directory offline (once) and return the error to raise."""
        if self.failure is None:
            self.failure = LogDirFailure(self.path, f"{what}: {error}")
            logger.error("%s", self.failure.message)
            if self._on_failure is not None:
                self._on_failure(self)
        return self.failure.again()


class CutLog(Protocol):
    """What the checkpoints need to know of a log that was cut."""

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def dir_state(self) -> LogDirState: ...

    @property
    def recovery_checkpoint(self) -> int: ...


class SmallFiles(Protocol):
    """The small files of a log that are still to be written."""

    def write_ahead(self) -> None: ...


def _no_jitter(_jitter_ms_max: int) -> int:
    return 0


@dataclass(slots=True)
class LogContext:
    """`schedule_removal(paths, delay_ms)` removes files later; `on_cut(log)` is called after a log
    was cut, before anything is appended to it again; `jitter(max)` is random."""

    disk: Disk = field(default_factory=OsDisk)
    background: Background = field(default_factory=InlineBackground)
    schedule_removal: Callable[[list[str], int], None] | None = None
    on_cut: Callable[[CutLog], None] | None = None
    jitter: Callable[[int], int] = _no_jitter
    producer_id_expiration_ms: int = 86_400_000
    unwritten: dict[SmallFiles, None] = field(default_factory=dict)
    """Logs with small files that a flush, the stop or an idle moment has to write; in order."""
    on_flushed: Callable[[float], None] | None = None
    """Called with the milliseconds that a flush took."""

    def remove_later(self, paths: list[str], delay_ms: int) -> None:
        if self.schedule_removal is not None:
            self.schedule_removal(paths, delay_ms)
            return
        for path in paths:
            self.disk.remove(path, missing_ok=True)
