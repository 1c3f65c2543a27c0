"""Which leader epoch wrote from which offset on (`leader-epoch-checkpoint`).

Invariants: epochs and start offsets ascend strictly together, so the end of an
epoch is the start of the next. Followers and restarted leaders find the point where
their log left the leader's by asking for the end of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.wire.constants import UNDEFINED_OFFSET

UNDEFINED_EPOCH = -1


class LeaderEpochs:
    """The history of leader epochs of one log. Pure: the log writes the file."""

    __slots__ = ("_entries", "latest_epoch")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        self.latest_epoch = UNDEFINED_EPOCH
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    def entries(self) -> list[tuple[int, int]]:
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` wrote the batch at `start_offset`; True when that is news."""
        if epoch < 0:
            return False
        entries = self._entries
        if entries and epoch == entries[-1][0] and start_offset >= entries[-1][1]:
            return False
        # A later history replaces what contradicts it: those entries describe offsets
        # that no longer exist in the log.
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self.latest_epoch = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(greatest known epoch <= `epoch`, where it ends), or (-1, -1) when unknown."""
        entries = self._entries
        if epoch == UNDEFINED_EPOCH or not entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == entries[-1][0]:
            return epoch, log_end_offset
        if epoch > entries[-1][0]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        higher = next(index for index, entry in enumerate(entries) if entry[0] > epoch)
        if higher == 0:
            # Older than all that is known: it ended at the latest where the first begins.
            return epoch, entries[0][1]
        return entries[higher - 1][0], entries[higher][1]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote `offset`, -1 when it is before all that is known."""
        for epoch, start_offset in reversed(self._entries):
            if start_offset <= offset:
                return epoch
        return UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that began at or above `end_offset`; True when any did."""
        entries = self._entries
        before = len(entries)
        while entries and entries[-1][1] >= end_offset:
            entries.pop()
        self.latest_epoch = entries[-1][0] if entries else UNDEFINED_EPOCH
        return len(entries) != before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove epochs that ended below `start_offset`; the one across it begins there."""
        entries = self._entries
        below = sum(1 for entry in entries if entry[1] <= start_offset)
        if below == 0 or (below == 1 and entries[0][1] == start_offset):
            return False
        entries[:below] = [(entries[below - 1][0], start_offset)]
        return True

    def clear(self) -> None:
        self._entries.clear()
        self.latest_epoch = UNDEFINED_EPOCH
