"""Logs in temporary folders, small segments, and batches to put into them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moldau.broker.config import LogConfig
from moldau.broker.log.context import LogContext, LogDirState
from moldau.broker.log.loader import open_log
from moldau.broker.log.log import Log
from moldau.wire.records import Record, decode_batches, encode_batch

NOW_MS = 1_700_000_000_000


def batch_of(*values: bytes, timestamp: int = NOW_MS, **fields: Any) -> bytearray:
    """One batch with a record per value, all keyed alike, a millisecond apart."""
    return bytearray(
        encode_batch([(b"k", value, timestamp + i, ()) for i, value in enumerate(values)], **fields)
    )


def append(log: Log, *values: bytes, leader_epoch: int = 0, **fields: Any) -> int:
    """Append one batch and move the high watermark over it; its base offset."""
    info = log.append_as_leader(
        batch_of(*values, **fields), leader_epoch=leader_epoch, now_ms=NOW_MS
    )
    log.set_high_watermark(log.log_end_offset)
    return info.base_offset


def read_all(log: Log, *, start: int | None = None, max_bytes: int = 1000) -> list[Record]:
    """Every record from `start` on, the way a consumer gets them."""
    offset = log.log_start_offset if start is None else start
    first = offset
    records: list[Record] = []
    while offset < log.log_end_offset:
        result = log.read(offset, max_bytes, upper_offset=log.log_end_offset, min_one_batch=True)
        before = offset
        for buffer in result.buffers:
            for header, batch in decode_batches(buffer):
                records += [record for record in batch if record.offset >= first]
                offset = header.next_offset
        if offset == before:
            break
    return records


def values_of(records: list[Record]) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records]


class LogFolder:
    """One partition's log that can be closed, crashed and opened again."""

    def __init__(self, path: Path, config: LogConfig | None = None) -> None:
        self.root = path
        self.path = path / "topic-0"
        self.config = config or LogConfig(segment_bytes=1000, file_delete_delay_ms=0)
        self.context = LogContext()
        self.log: Log | None = None

    def open(self, **kwargs: Any) -> Log:
        if self.log is not None:
            self.log.close(clean=False)
        self.log = open_log(
            self.context,
            LogDirState(str(self.root)),
            str(self.path),
            "topic",
            0,
            self.config,
            now_ms=NOW_MS,
            **kwargs,
        )
        return self.log

    def crash(self, *, recovery_point: int = 0, **kwargs: Any) -> Log:
        """As after SIGKILL: nothing is closed, and the next start has to recover."""
        return self.open(clean_shutdown=False, recovery_point=recovery_point, **kwargs)

    def restart(self, **kwargs: Any) -> Log:
        """A clean stop and start."""
        assert self.log is not None
        self.log.flush()
        self.log.close()
        self.log = None
        return self.open(**kwargs)

    def files(self, suffix: str) -> list[str]:
        return sorted(p.name for p in self.path.iterdir() if p.name.endswith(suffix))
