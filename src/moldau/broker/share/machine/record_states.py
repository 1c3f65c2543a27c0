"""The states of a record in a share partition, and the moves between them.

`TRANSITIONS` is the whole table; README.md shows it, and a test compares the two. A move that must
be stored before it counts can be reverted: a record then returns to ACQUIRED, from which the normal
moves continue. ARCHIVING is a value of Kafka's stored state only: no record in memory has it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from moldau.invariant import InvariantError


class RecordState(IntEnum):
    """Kafka's numbers, which are also those of the stored state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


AVAILABLE: Final = RecordState.AVAILABLE
ACQUIRED: Final = RecordState.ACQUIRED
ACKNOWLEDGED: Final = RecordState.ACKNOWLEDGED
ARCHIVED: Final = RecordState.ARCHIVED

TRANSITIONS: Final = {
    AVAILABLE: frozenset({ACQUIRED, ARCHIVED}),
    ACQUIRED: frozenset({AVAILABLE, ACKNOWLEDGED, ARCHIVED}),
    ACKNOWLEDGED: frozenset[RecordState](),
    RecordState.ARCHIVING: frozenset[RecordState](),
    ARCHIVED: frozenset[RecordState](),
}
TERMINAL: Final = frozenset({ACKNOWLEDGED, ARCHIVED})
#: States that an acknowledgement leads to; while it is not stored, it can be reverted to ACQUIRED.
REVERTIBLE: Final = TRANSITIONS[ACQUIRED]


def check_move(before: RecordState, after: RecordState) -> None:
    """Raise unless a record may move from `before` to `after`."""
    if after not in TRANSITIONS[before]:
        raise InvariantError(f"a record in state {before.name} cannot become {after.name}")
