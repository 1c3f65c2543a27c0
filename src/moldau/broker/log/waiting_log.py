"""A log that the last clean stop has recorded and that nothing has used since.

A start makes one of these for each of thousands of partitions, and opens none of their files. It
knows its place and what the inventory and the checkpoints say of it; there is nothing to sync, to
flush or to close. `open` makes the log of it when the partition is hosted, or when anything else
needs more than that (`registry.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from moldau.broker.log.context import LogContext, LogDirState
from moldau.broker.log.flusher import checkpoint_of
from moldau.broker.log.loader import open_log
from moldau.broker.log.log import Log
from moldau.broker.log.machine.inventory import LogFacts
from moldau.times import WallMs

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig


class WaitingLog:
    """The names that it shares with `Log` mean the same there."""

    __slots__ = (
        "_context",
        "_found_ms",
        "config",
        "dir",
        "dir_state",
        "facts",
        "high_watermark",
        "log_start_offset",
        "partition",
        "topic",
    )

    is_future: ClassVar[bool] = False

    def __init__(
        self,
        context: LogContext,
        dir_state: LogDirState,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        facts: LogFacts,
        log_start_offset: int,
        high_watermark: int,
        now_ms: WallMs,
    ) -> None:
        """`log_start_offset` and `high_watermark` come from the checkpoints."""
        self._context = context
        self.dir_state = dir_state
        self.dir = directory
        self.topic = topic
        self.partition = partition
        self.config = config
        self.facts = facts
        self.log_start_offset = max(log_start_offset, facts.segments[0].base_offset)
        self.high_watermark = min(max(high_watermark, self.log_start_offset), facts.end_offset)
        self._found_ms = now_ms

    def __repr__(self) -> str:
        return f"WaitingLog({self.dir}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def topic_id(self) -> UUID | None:
        return self.facts.topic_id

    @property
    def log_end_offset(self) -> int:
        return self.facts.end_offset

    @property
    def first_offset(self) -> int:
        return self.facts.segments[0].base_offset

    @property
    def recovery_checkpoint(self) -> int:
        return checkpoint_of(self.facts.end_offset, self.facts.segments[-1].base_offset)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.facts.segments)

    @property
    def offline(self) -> bool:
        return self.dir_state.failure is not None

    def open(self) -> Log:
        """The log; raises LogDirFailure if its directory cannot be used."""
        if self.dir_state.failure is not None:
            raise self.dir_state.failure.again()
        return open_log(
            self._context,
            self.dir_state,
            self.dir,
            self.topic,
            self.partition,
            self.config,
            now_ms=self._found_ms,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            facts=self.facts,
        )
