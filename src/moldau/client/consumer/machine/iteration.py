"""Records of a poll given one by one, as `for record in consumer` does.

Invariants: a record that was not given yet is not consumed: commits and positions stand in
front of it; after a seek or a revocation none of its partition's records is given any more. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.consumer.machine.positions import PositionState
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["RecordIteration"]


class RecordIteration:
    """See the module."""

    __slots__ = ("_given", "_part", "_parts", "_subscription")

    def __init__(self, subscription: SubscriptionState, records: ConsumerRecords) -> None:
        self._subscription = subscription
        self._parts: list[tuple[TopicPartition, list[ConsumerRecord], PositionState, int]] = []
        for key, part in records.items():
            state = subscription.assignment.get(key)
            if state is not None:
                self._parts.append((key, part, state, state.version))
        self._part = 0
        # How many of that part's records.
        self._given = 0

    def __iter__(self) -> Iterator[ConsumerRecord]:
        for number, (key, records, state, version) in enumerate(self._parts):
            self._part, self._given = number, 0
            for record in records:
                if not self._is_current(key, state, version):
                    break
                self._given += 1
                yield record
        self._parts = []

    def unread(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The first record of each partition that was not given."""
        found = {}
        for number, (key, records, state, version) in enumerate(self._parts):
            if number < self._part or not self._is_current(key, state, version):
                continue
            start = self._given if number == self._part else 0
            if start < len(records):
                epoch = records[start - 1].leader_epoch if start else None
                found[key] = OffsetAndMetadata(records[start].offset, "", epoch)
        return found

    def _is_current(self, key: TopicPartition, state: PositionState, version: int) -> bool:
        return state.version == version and self._subscription.assignment.get(key) is state
