"""What one says of the offsets of partitions and learns about them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DeletedRecords", "ListOffsetsResultInfo", "OffsetSpec", "RecordsToDelete"]


class OffsetSpec(NamedTuple):
    """Which offset of a partition is meant: a time in milliseconds, or one of Kafka's words."""

    timestamp: int

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The end: the offset that the next record gets."""
        return cls(-1)

    @classmethod
    def earliest(cls) -> OffsetSpec:
        return cls(-2)

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The record with the latest timestamp."""
        return cls(-3)

    @classmethod
    def earliest_local(cls) -> OffsetSpec:
        """The first on the broker's own disk, where older ones are in tiered storage."""
        return cls(-4)

    @classmethod
    def latest_tiered(cls) -> OffsetSpec:
        """The last in tiered storage."""
        return cls(-5)

    @classmethod
    def earliest_pending_upload(cls) -> OffsetSpec:
        """The first that is not yet in tiered storage."""
        return cls(-6)

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """The first record at or after a time."""
        return cls(timestamp)


class ListOffsetsResultInfo(NamedTuple):
    """`offset` and `timestamp` are -1 where no record fits."""

    offset: int
    timestamp: int
    leader_epoch: int | None


class RecordsToDelete(NamedTuple):
    """Delete what is before an offset; -1 stands for the high watermark."""

    before_offset: int

    @classmethod
    def before(cls, offset: int) -> RecordsToDelete:
        return cls(offset)


class DeletedRecords(NamedTuple):
    low_watermark: int
