"""Decides whether replicas are equal: batch by batch, by last offset and checksum.

Invariant: a partition's verified offset only grows, and only past batches that every
replica has shown below its high watermark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moldau.wire.batch_header import LOG_OVERHEAD, UP_TO_DELTA_STRUCT

__all__ = ["BatchMark", "Fetched", "PartitionCheck", "batch_marks"]


class BatchMark(NamedTuple):
    last_offset: int
    checksum: int


def batch_marks(records: bytes | bytearray | memoryview | None) -> Iterator[BatchMark]:
    """The marks of the complete batches in a fetch response."""
    view = memoryview(records or b"")
    position = 0
    while position + UP_TO_DELTA_STRUCT.size <= len(view):
        base, length, _, _, checksum, _, delta = UP_TO_DELTA_STRUCT.unpack_from(view, position)
        position += LOG_OVERHEAD + length
        if position > len(view):
            return
        yield BatchMark(base + delta, checksum)


class Fetched(NamedTuple):
    """The response of one replica."""

    high_watermark: int
    marks: Sequence[BatchMark]


@dataclass(slots=True)
class PartitionCheck:
    """How far a partition's replicas have been found equal."""

    name: str
    replica_count: int
    offset: int
    high_watermark: int = -1
    #: The replicas have different batches: they cannot be compared any further.
    is_broken: bool = False

    @property
    def lag(self) -> int:
        return self.high_watermark - self.offset

    def compare(self, fetched: Mapping[int, Fetched]) -> list[str]:
        """Advance as far as all replicas have responded; returns mismatches."""
        self.high_watermark = max(
            (each.high_watermark for each in fetched.values()), default=self.high_watermark
        )
        found: list[str] = []
        if len(fetched) < self.replica_count:
            # A broker is down: its replica is verified when it is back.
            return found
        first_id, *others = sorted(fetched)
        for number, mark in enumerate(fetched[first_id].marks):
            if not all(self._shows(fetched[replica], number) for replica in fetched):
                break
            for replica in others:
                other = fetched[replica].marks[number]
                if other.last_offset != mark.last_offset:
                    self.is_broken = True
                    found.append(
                        f"partition {self.name}: replica {first_id}'s offset {mark.last_offset} "
                        f"doesn't match replica {replica}'s offset {other.last_offset}"
                    )
                    return found
                if other.checksum != mark.checksum:
                    found.append(
                        f"partition {self.name} has unmatched checksum at offset "
                        f"{other.last_offset}; replica {first_id}'s checksum {mark.checksum}; "
                        f"replica {replica}'s checksum {other.checksum}"
                    )
            self.offset = mark.last_offset + 1
        return found

    @staticmethod
    def _shows(fetched: Fetched, number: int) -> bool:
        if number >= len(fetched.marks):
            return False
        return fetched.marks[number].last_offset < fetched.high_watermark
