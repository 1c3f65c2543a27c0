"""What the data path asks of a transaction coordinator, and what that coordinator asks of it.

Before a partition takes the first batch of a transaction its leader makes sure that the
coordinator counts the partition in, or puts it in (KIP-890): what the coordinator does not
know of, it can never end. At the end the coordinator has markers written to all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from moldau.broker.coordinator.transaction.machine.values import (
    TV_2,
    Marker,
    MarkerResult,
    TopicPartition,
)
from moldau.wire.errors import ErrorCode


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


class MarkerWriter(Protocol):
    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        """Write each marker to its partitions: one result per marker, in their order, with
        an outcome for each partition. Never raises for the error of a partition."""
        ...
