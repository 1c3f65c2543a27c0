"""The `.snapshot` files of one log: producer state at chosen offsets.

Invariant: a snapshot at offset N describes exactly the batches below N. They are
taken when a segment is rolled and at a clean stop, so that a restart replays one segment
at most. A damaged one is removed and the next older is used instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.log.disk import Disk
from moldau.broker.log.machine.names import SNAPSHOT_SUFFIX, offset_prefix
from moldau.broker.log.machine.producer_state import (
    CorruptSnapshot,
    ProducerStates,
    decode_snapshot,
    encode_snapshot,
    is_expired,
)


class ProducerSnapshots:
    __slots__ = ("_disk", "dir", "last_taken", "offsets")

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int] = ()) -> None:
        self._disk = disk
        self.dir = directory
        self.offsets = set(offsets)
        # No new snapshot is needed at or below this offset.
        self.last_taken = max(self.offsets, default=-1)

    def path(self, offset: int) -> str:
        return f"{self.dir}/{offset_prefix(offset)}{SNAPSHOT_SUFFIX}"

    def take(self, producers: ProducerStates, *, sync: bool = False) -> None:
        """Write the state as of `producers.map_end_offset`, unless that is known already."""
        offset = producers.map_end_offset
        if offset <= self.last_taken:
            return
        data = encode_snapshot(producers.entries.values())
        if sync:
            self._disk.write_atomic(self.path(offset), data)
        else:
            # No fsync on the loop: a torn snapshot fails its checksum and is rebuilt.
            file = self._disk.open(self.path(offset), create=True)
            file.truncate(0)
            file.write(data, 0)
            file.close()
        self.offsets.add(offset)
        self.last_taken = offset

    def reload(
        self,
        producers: ProducerStates,
        *,
        log_start_offset: int,
        end_offset: int,
        now_ms: int,
        expiration_ms: int,
    ) -> None:
        """Bring `producers` to the newest usable snapshot at or below `end_offset`."""
        for offset in sorted(self.offsets):
            if offset > end_offset or offset <= log_start_offset:
                self.remove(offset)
        if producers.map_end_offset == end_offset:
            producers.on_log_start(log_start_offset)
            self.last_taken = max(self.offsets, default=log_start_offset)
            return
        producers.clear(log_start_offset)
        while self.offsets:
            offset = max(self.offsets)
            try:
                entries = decode_snapshot(
                    self.path(offset), self._disk.read_bytes(self.path(offset))
                )
            except (CorruptSnapshot, FileNotFoundError):
                self.remove(offset)
                continue
            producers.load(
                (entry for entry in entries if not is_expired(entry, now_ms, expiration_ms)),
                offset,
            )
            self.last_taken = offset
            return
        self.last_taken = log_start_offset

    def remove(self, offset: int) -> None:
        self._disk.remove(self.path(offset), missing_ok=True)
        self.offsets.discard(offset)

    def remove_stray(self, base_offsets: Iterable[int]) -> None:
        """Keep those of segments, and of the others only the newest if it is at the end."""
        bases = set(base_offsets)
        stray = sorted(self.offsets - bases)
        if stray and stray[-1] > max(bases, default=-1):
            stray.pop()
        for offset in stray:
            self.remove(offset)

    def remove_all(self) -> None:
        for offset in sorted(self.offsets):
            self.remove(offset)
        self.last_taken = -1

    def moved_to(self, directory: str) -> None:
        self.dir = directory
