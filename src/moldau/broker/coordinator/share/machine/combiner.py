"""What becomes of stored state batches when new ones arrive.

Where batches overlap, the one that was delivered more often wins, then the one in the later state:
writes may arrive out of order, and progress is never taken back. Neighbours in the same state
become one batch. Invariants: the result is sorted, nothing in it overlaps, nothing in it is below
the start offset, and it equals Kafka's result for the same batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from moldau.broker.coordinator.share.machine.values import UNINITIALIZED_START_OFFSET, StateBatch

# Sorts as Kafka does: first offset, last offset, delivery count, delivery state.
_Piece = tuple[int, int, int, int]


def combine(
    stored: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    pending = [
        _piece(batch, start_offset) for batch in (*stored, *new) if _is_live(batch, start_offset)
    ]
    heapify(pending)
    result: list[StateBatch] = []
    while pending:
        first = heappop(pending)
        if not pending:
            result.append(_batch(first))
        elif _can_merge(first, pending[0]):
            for piece in _merge(first, heappop(pending)):
                heappush(pending, piece)
        else:
            result.append(_batch(first))
    return tuple(result)


def _is_live(batch: StateBatch, start_offset: int) -> bool:
    return start_offset == UNINITIALIZED_START_OFFSET or batch.last_offset >= start_offset


def _piece(batch: StateBatch, start_offset: int) -> _Piece:
    first_offset = max(batch.first_offset, start_offset)
    return (first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)


def _batch(piece: _Piece) -> StateBatch:
    first_offset, last_offset, delivery_count, delivery_state = piece
    return StateBatch(first_offset, last_offset, delivery_state, delivery_count)


def _can_merge(lower: _Piece, upper: _Piece) -> bool:
    overlaps = upper[0] <= lower[1]
    continues = upper[0] == lower[1] + 1 and upper[2:] == lower[2:]
    return overlaps or continues


def _merge(lower: _Piece, upper: _Piece) -> list[_Piece]:
    """Two pieces in order that overlap, or follow each other in the same state."""
    if lower[2:] == upper[2:]:
        return [(lower[0], max(lower[1], upper[1]), *lower[2:])]
    pieces: list[_Piece] = []
    if upper[2:] < lower[2:]:
        pieces.append(lower)
        if upper[1] > lower[1]:
            pieces.append((lower[1] + 1, upper[1], *upper[2:]))
        return pieces
    if lower[0] < upper[0]:
        pieces.append((lower[0], upper[0] - 1, *lower[2:]))
    pieces.append(upper)
    if upper[1] < lower[1]:
        pieces.append((upper[1] + 1, lower[1], *lower[2:]))
    return pieces
