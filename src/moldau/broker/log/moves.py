"""Copying a partition into another log directory while it is in use (KIP-113).

The future log follows the current one like a follower, by epochs and offsets, until it has
everything; `LogManager.replace_by_future_log` copies the rest and swaps the two in one step
on the loop, between two requests.
"""

from __future__ import annotations

from moldau.broker.log.log import Log
from moldau.times import WallMs

COPY_BYTES_MAX = 1 << 20


def copy_step(
    current: Log, future: Log, *, now_ms: WallMs, max_bytes: int = COPY_BYTES_MAX
) -> bool:
    """Copy up to `max_bytes`; True when the future log has all that the current one has."""
    if future.log_end_offset < current.log_start_offset:
        future.truncate_fully_and_start_at(current.log_start_offset, now_ms=now_ms)
    epoch, end_offset = current.end_offset_for_epoch(future.latest_epoch)
    if epoch >= 0 and end_offset < future.log_end_offset:
        # The current log was cut and went on otherwise; follow it.
        future.truncate_to(end_offset, now_ms=now_ms)
    elif future.log_end_offset > current.log_end_offset:
        future.truncate_to(current.log_end_offset, now_ms=now_ms)
    if future.log_end_offset == current.log_end_offset:
        return True
    result = current.read(
        future.log_end_offset,
        max_bytes,
        upper_offset=current.log_end_offset,
        min_one_batch=True,
    )
    if not result.buffers:
        # Only offsets that no batch has are left (a truncated tail).
        return True
    for buffer in result.buffers:
        future.append_as_follower(buffer, now_ms=now_ms)
    future.set_high_watermark(current.high_watermark)
    return future.log_end_offset == current.log_end_offset
