"""What `poll` gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Generic

from moldau.client.consumer_record import ConsumerRecord
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.client.type_parameters import K, V

__all__ = ["EMPTY_RECORDS", "ConsumerRecords"]


class ConsumerRecords(Generic[K, V]):
    """Records by partition; iterating gives all of them, in order within a partition."""

    __slots__ = ("_by_partition", "_next_offsets")

    def __init__(
        self,
        by_partition: Mapping[TopicPartition, list[ConsumerRecord[K, V]]],
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    ) -> None:
        self._by_partition = by_partition
        self._next_offsets = {} if next_offsets is None else next_offsets

    def records(self, source: TopicPartition | tuple[str, int] | str) -> list[ConsumerRecord[K, V]]:
        """Those of a partition, or of all partitions of a topic.

        >>> for record in records.records("orders"): ...
        """
        if isinstance(source, str):
            return [
                record
                for key, records in self._by_partition.items()
                if key.topic == source
                for record in records
            ]
        return self._by_partition.get(TopicPartition(*source), [])

    def partitions(self) -> set[TopicPartition]:
        """The partitions that there are records of.

        >>> print(records.partitions())
        """
        return set(self._by_partition)

    def items(self) -> Iterable[tuple[TopicPartition, list[ConsumerRecord[K, V]]]]:
        """Each partition with its records.

        >>> for partition, several in records.items(): ...
        """
        return self._by_partition.items()

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions after these records, ready to be committed.

        >>> consumer.commit_sync(records.next_offsets())
        """
        return dict(self._next_offsets)

    def count(self) -> int:
        """How many records there are.

        >>> print(records.count())
        """
        return sum(map(len, self._by_partition.values()))

    @property
    def is_empty(self) -> bool:
        """Whether there are none; `if records` asks the same."""
        return not self._by_partition

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return chain.from_iterable(self._by_partition.values())

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return bool(self._by_partition)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}: {len(each)}" for key, each in self._by_partition.items())
        return f"ConsumerRecords({shown})"


EMPTY_RECORDS: ConsumerRecords = ConsumerRecords({})
