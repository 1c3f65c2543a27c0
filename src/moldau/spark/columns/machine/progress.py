"""What a Fetch response means for a range of offsets: go on, wait, look elsewhere or give up.

Pure. Invariants: a range ends for one of three reasons: its records were seen up to its end,
the log has nothing more below its end, or an error says what is missing.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from moldau.client.errors import error_for
from moldau.wire.errors import FETCH_METADATA_STALE, ErrorCode
from moldau.wire.fetch_response import FetchedPart

__all__ = ["Meaning", "meaning_of", "part_size"]

_PASSES: Final = frozenset((ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR))

# Of an estimate, so that the last part of a range is seldom short by a batch.
_MARGIN_SIZE: Final = 64 * 1024
_RECORD_SIZE_GUESS: Final = 1024


class Meaning(Enum):
    RECORDS = "there are records"
    #: The log is known up to the end of the range, and nothing is there.
    COMPLETE = "nothing is left below the end"
    UNSTABLE = "a transaction below the end is open"
    SHORT = "the log ends below the end"
    ELSEWHERE = "another replica is to be asked"
    OUT_OF_RANGE = "the log does not have the position"
    STALE = "another broker leads the partition"
    PASSING = "a transient error"
    REFUSED = "a permanent error"


def meaning_of(part: FetchedPart, *, position: int, end: int, read_committed: bool) -> Meaning:
    """Of an answer to a Fetch at `position`, which is below `end`."""
    code = part.error_code
    if code != ErrorCode.NONE:
        return _meaning_of_error(code)
    if part.records is not None:
        return Meaning.RECORDS
    if part.preferred_read_replica >= 0:
        return Meaning.ELSEWHERE
    stable = part.last_stable_offset if part.last_stable_offset >= 0 else part.high_watermark
    if (stable if read_committed else part.high_watermark) >= end:
        # Whatever there was between the position and here was compacted away.
        return Meaning.COMPLETE
    if read_committed and part.high_watermark >= end:
        return Meaning.UNSTABLE
    return Meaning.SHORT


def _meaning_of_error(code: int) -> Meaning:
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return Meaning.OUT_OF_RANGE
    if code in FETCH_METADATA_STALE:
        return Meaning.STALE
    if code in _PASSES:
        return Meaning.PASSING
    if error_for(code, None).retriable and code != ErrorCode.CORRUPT_MESSAGE:
        return Meaning.PASSING
    return Meaning.REFUSED


def part_size(*, left_count: int, seen_count: int, seen_size: int, size_max: int) -> int:
    """How much to ask for at once: not much more than what is left of the range, as far as its
    records so far tell, for what comes after its end is thrown away."""
    record_size = seen_size / seen_count if seen_count > 0 else _RECORD_SIZE_GUESS
    return min(size_max, int(left_count * record_size) + _MARGIN_SIZE)
