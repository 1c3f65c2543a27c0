"""Transactional producers, as clients of both versions of the protocol do it.

A client of version 1 names partitions before it writes to them and keeps its epoch from one
transaction to the next. So a request that is still on its way when its answer is given up may act
on the next transaction; such a client therefore starts again (InitProducerId) after any request
without an answer but Produce. Version 2 (KIP-890) needs no such care: each transaction has an
epoch of its own, and a client just asks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from moldau.sim.clients.actor import Refused, check
from moldau.sim.clients.history import History, Outcome, Transaction
from moldau.sim.clients.producer import Sender
from moldau.sim.clients.rpc import RETRIABLE, Lost
from moldau.sim.cluster import Cluster
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")
TopicPartition = tuple[str, int]

TRANSACTION_KEYS = 1
GROUP_KEYS = 0

#: Somebody else goes on with the id, or the coordinator has ended the transaction.
_FENCED = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)


class BeginAnew(Exception):
    """This transaction is over for its producer, however it ended."""


class Unanswered(BeginAnew):
    """A request may have been carried out or not, or be carried out later."""


class TransactionalProducer(Sender):
    def __init__(
        self,
        cluster: Cluster,
        history: History,
        name: str,
        partitions: list[TopicPartition],
        *,
        transactional_id: str,
        version: int,
    ) -> None:
        super().__init__(cluster, history, name)
        self.partitions = partitions
        self.transactional_id = transactional_id
        self.version = version
        self.timeout_ms = self.random.choice((5_000, 30_000))
        self._begun: dict[TopicPartition, None] = {}

    async def run(self) -> None:
        ready = False
        while not self.stopping or not ready:
            if not ready:
                await self._init()
                ready = True
            transaction = self.history.begin(f"{self.name}#{len(self.history.transactions)}")
            self._begun.clear()
            try:
                await self.work(transaction)
            except BeginAnew as reason:
                transaction.give_up()
                self.note(f"{transaction.name} {transaction.outcome.value}: {reason}")
                ready = False
            await self.rest(0.5)

    async def work(self, transaction: Transaction) -> None:
        """One transaction, from its first record to its end."""
        for _ in range(self.random.randint(1, 3)):
            where = self.random.choice(self.partitions)
            await self.send(transaction, where, self.new_values(self.random.randint(1, 3)))
            await self.rest(0.3)
        await self.end(transaction, commit=self.random.random() < 0.6)

    # Requests.

    async def _init(self) -> None:
        async def attempt() -> InitProducerIdResponse:
            address = await self.wire.coordinator(self.transactional_id, TRANSACTION_KEYS)
            response = await self.wire.call(
                address,
                InitProducerIdRequest(
                    transactional_id=self.transactional_id,
                    transaction_timeout_ms=self.timeout_ms,
                ),
                InitProducerIdResponse,
                max_version=None if self.version == 2 else 4,
            )
            check(response.error_code)
            return response

        try:
            response = await self.patiently(attempt)
        except Refused as error:
            raise self.surprised("InitProducerId", error) from None
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.sequences.clear()
        self.note(f"producer id {self.producer_id} epoch {self.epoch}")

    async def surely(self, attempt: Callable[[], Awaitable[T]], *, again: bool = True) -> T:
        """The answer; a fenced producer, and one that may not retry, starts again."""
        while True:
            try:
                return await attempt()
            except Lost as error:
                if not again and self.version == 1:
                    raise Unanswered("no answer") from error
            except Refused as error:
                if error.code in _FENCED:
                    raise BeginAnew(error.code.name) from error
                if error.code not in RETRIABLE:
                    raise self.surprised("a transaction", error) from None
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self.wire.forget()
            await self.rest(0.4)

    async def send(
        self, transaction: Transaction, where: TopicPartition, values: list[bytes]
    ) -> None:
        if self.version == 1 and where not in self._begun:
            await self.surely(lambda: self._add_partition(where), again=False)
            self._begun[where] = None
        self.history.on_sending(where, values, transaction)
        # As Java's producer does when a delivery takes too long: it aborts while the batch may
        # still be on its way, and takes a new epoch then.
        patient = self.version == 2 or self.random.random() < 0.5
        try:
            base = await self.surely(
                lambda: self.produce(
                    where,
                    values,
                    transactional_id=self.transactional_id,
                    max_version=None if self.version == 2 else 11,
                ),
                again=patient,
            )
        except Unanswered:
            await self.end(transaction, commit=False)
            raise
        self.acknowledged(where, base, values)

    async def _add_partition(self, where: TopicPartition) -> None:
        address = await self.wire.coordinator(self.transactional_id, TRANSACTION_KEYS)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                    name=where[0], partitions=[where[1]]
                )
            ],
        )
        response = await self.wire.call(address, request, AddPartitionsToTxnResponse, max_version=3)
        topic = response.results_by_topic_v3_and_below[0]
        check(topic.results_by_partition[0].partition_error_code)

    async def send_offset(self, group: str, where: TopicPartition, offset: int) -> None:
        if self.version == 1:
            await self.surely(lambda: self._add_offsets(group), again=False)
        await self.surely(lambda: self._commit_offset(group, where, offset), again=False)

    async def _add_offsets(self, group: str) -> None:
        address = await self.wire.coordinator(self.transactional_id, TRANSACTION_KEYS)
        response = await self.wire.call(
            address,
            AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            ),
            AddOffsetsToTxnResponse,
            max_version=3,
        )
        check(response.error_code)

    async def _commit_offset(self, group: str, where: TopicPartition, offset: int) -> None:
        address = await self.wire.coordinator(group, GROUP_KEYS)
        request_class = TxnOffsetCommitRequest
        response = await self.wire.call(
            address,
            request_class(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                topics=[
                    request_class.TxnOffsetCommitRequestTopic(
                        name=where[0],
                        partitions=[
                            request_class.TxnOffsetCommitRequestPartition(
                                partition_index=where[1], committed_offset=offset
                            )
                        ],
                    )
                ],
            ),
            TxnOffsetCommitResponse,
            max_version=None if self.version == 2 else 4,
        )
        check(response.topics[0].partitions[0].error_code)

    async def end(self, transaction: Transaction, *, commit: bool) -> None:
        transaction.commit_sent = commit

        async def attempt() -> EndTxnResponse:
            address = await self.wire.coordinator(self.transactional_id, TRANSACTION_KEYS)
            response = await self.wire.call(
                address,
                EndTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    committed=commit,
                ),
                EndTxnResponse,
                max_version=None if self.version == 2 else 4,
            )
            check(response.error_code)
            return response

        response = await self.surely(attempt, again=False)
        transaction.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        self.note(f"{transaction.name} {transaction.outcome.value}")
        if self.version == 2:
            if response.producer_id != self.producer_id or response.producer_epoch != self.epoch:
                self.sequences.clear()
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
