"""An idempotent producer that asks again until it knows (acks=all)."""

from __future__ import annotations

from moldau.sim.clients.actor import Actor, Refused, check
from moldau.sim.clients.history import History
from moldau.sim.cluster import Cluster
from moldau.sim.world import Invariant, Violation
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from moldau.wire.records import encode_batch

TopicPartition = tuple[str, int]

#: The errors of a producer whose records, or whole state, a power failure has taken.
_STATE_LOST = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class Sender(Actor):
    """What idempotent and transactional producers share."""

    producer_id = -1
    epoch = -1

    def __init__(self, cluster: Cluster, history: History, name: str) -> None:
        super().__init__(cluster, history, name)
        self.sequences: dict[TopicPartition, int] = {}
        self._count = 0

    def new_values(self, count: int) -> list[bytes]:
        first = self._count
        self._count += count
        return [f"{self.name}/{first + number}".encode() for number in range(count)]

    async def produce(
        self,
        where: TopicPartition,
        values: list[bytes],
        *,
        transactional_id: str | None = None,
        max_version: int | None = None,
    ) -> int:
        """One attempt; the base offset."""
        topic, partition = where
        address = await self.wire.leader(topic, partition)
        now_ms = self.cluster.world.now_ms()
        batch = encode_batch(
            [(None, value, now_ms, ()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(where, 0),
            is_transactional=transactional_id is not None,
        )
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=3_000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic,
                    topic_id=await self.wire.topic_id(topic),
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=partition, records=batch)
                    ],
                )
            ],
        )
        response = await self.wire.call(address, request, ProduceResponse, max_version=max_version)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1
        check(answer.error_code)
        return answer.base_offset

    def acknowledged(self, where: TopicPartition, base: int, values: list[bytes]) -> None:
        self.history.on_acknowledged(where, base, values)
        self.sequences[where] = self.sequences.get(where, 0) + len(values)


class IdempotentProducer(Sender):
    def __init__(
        self, cluster: Cluster, history: History, name: str, partitions: list[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions

    async def run(self) -> None:
        await self._init()
        while not self.stopping:
            where = self.random.choice(self._partitions)
            await self._send(where, self.new_values(self.random.randint(1, 4)))
            await self.rest(0.5)

    async def _init(self) -> None:
        async def attempt() -> InitProducerIdResponse:
            response = await self.wire.call(
                self.wire.anybody(),
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0),
                InitProducerIdResponse,
            )
            check(response.error_code)
            return response

        response = await self.patiently(attempt)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.sequences.clear()
        self.note(f"producer id {self.producer_id} epoch {self.epoch}")

    async def _send(self, where: TopicPartition, values: list[bytes]) -> None:
        self.history.on_sending(where, values)
        boots = self.cluster.boots
        try:
            base = await self.patiently(lambda: self.produce(where, values))
        except Refused as error:
            if error.code in _STATE_LOST and self.history.lossy:
                self.note(f"{values[0]!r} in doubt: {error}")
                await self._init()
                return
            if error.code in _STATE_LOST:
                raise Violation(
                    Invariant.NO_DUPLICATES, f"{self.name} cannot go on with {values[0]!r}: {error}"
                ) from None
            raise self.surprised(f"sending {values[0]!r}", error) from None
        self.note(f"{values[0]!r} x{len(values)} at {where[0]}-{where[1]} {base}")
        if self.history.lossy and boots != self.cluster.boots:
            # The answer may be older than the power failure that took the records.
            self.sequences[where] = self.sequences.get(where, 0) + len(values)
        else:
            self.acknowledged(where, base, values)
