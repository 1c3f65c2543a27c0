"""What names a transaction's producer, its partitions and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from moldau.broker.coordinator.machine.decision import TransactionEnding
from moldau.wire.errors import ErrorCode

TopicPartition = tuple[str, int]
MarkerResult = dict[TopicPartition, ErrorCode]

TV_0 = 0
TV_1 = 1
TV_2 = 2


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


NO_PRODUCER = ProducerIdAndEpoch(-1, -1)


@dataclass(frozen=True, slots=True)
class Marker(TransactionEnding):
    """The end of a transaction in these partitions."""

    partitions: tuple[TopicPartition, ...] = ()
