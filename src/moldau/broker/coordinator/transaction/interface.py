"""What the data path asks of a transaction coordinator, wherever that coordinator runs.

Before a partition takes the first batch of a transaction its leader makes sure that the
coordinator counts the partition in, or puts it in (KIP-890): what the coordinator does not
know of, it can never end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from moldau.wire.errors import ErrorCode

TopicPartition = tuple[str, int]

TV_0 = 0
TV_1 = 1
TV_2 = 2


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


NO_PRODUCER = ProducerIdAndEpoch(-1, -1)


class TransactionPartitions(Protocol):
    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
        client_transaction_version: int = TV_2,
    ) -> dict[TopicPartition, ErrorCode]:
        """An error or NONE for every partition; never raises ApiError.

        With `verify_only` nothing changes: NONE says that the partition is in the ongoing
        transaction of this producer id and epoch, TRANSACTION_ABORTABLE that it is not.
        Otherwise the partitions are added and all of them get the same code. Further codes:
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS (ask again),
        INVALID_REQUEST, and the coordinator's own COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
        """
        ...
