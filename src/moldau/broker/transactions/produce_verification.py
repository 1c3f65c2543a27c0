"""Which batches of a Produce request must be part of an open transaction, and whether they are."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Protocol

from moldau.broker.replication.machine.names import TopicKey
from moldau.broker.replication.machine.produced_batch import transactional_producer
from moldau.broker.replication.partition import Partition
from moldau.broker.transactions.verification import (
    Claim,
    TransactionVerifier,
    Verified,
    produce_operation,
)
from moldau.wire.errors import ApiError, ErrorCode


class Partitions(Protocol):
    def find(self, key: TopicKey, index: int) -> Partition | None: ...


Topics = Iterable[tuple[TopicKey, Iterable[tuple[int, memoryview | None]]]]


class ProduceVerification:
    """Verifies the transactional batches of one request together."""

    def __init__(self, partitions: Partitions, verifier: TransactionVerifier) -> None:
        self._partitions = partitions
        self._verifier = verifier

    def start(
        self, transactional_id: str, topics: Topics, version: int
    ) -> Verified | Awaitable[Verified]:
        """Raises INVALID_PRODUCER_ID_MAPPING if the batches are of more than one producer."""
        claims = self._claims(topics, version)
        if len({(claim.producer_id, claim.producer_epoch) for claim in claims}) > 1:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "a transactional request has batches of more than one producer",
            )
        return self._verifier.start(transactional_id, claims, produce_operation(version))

    def _claims(self, topics: Topics, version: int) -> list[Claim]:
        """The batches that must be in a transaction, without malformed ones."""
        claims = []
        for key, partitions in topics:
            for index, records in partitions:
                partition = self._partitions.find(key, index)
                if partition is not None and not partition.internal:
                    producer = transactional_producer(records, version)
                    if producer is not None:
                        claims.append(Claim(partition, *producer))
        return claims
