"""The requests that a sink's driver makes of brokers, beside those of any admin client.

Ending another producer's transaction needs only its producer id and epoch, so the driver ends what
its tasks opened. Invariants: a transient error is retried until `default.api.timeout.ms`; a
response saying that another producer has the transactional id now is a result, not an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from moldau.client.admin import ConfigResource, NewPartitions, NewTopic
from moldau.client.admin.base import AdminBase
from moldau.client.admin.configs import ConfigOperations
from moldau.client.admin.connection import AdminConnection
from moldau.client.admin.driver import Answer, Ask, Call
from moldau.client.admin.routes import CoordinatorRoute, LeaderRoute, Located
from moldau.client.admin.topics import TopicOperations
from moldau.client.admin.transactions import TransactionOperations
from moldau.client.cluster import ClusterClient
from moldau.client.errors import KafkaError, KafkaTimeoutError, TopicExistsError, error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.spark.sink.machine.log import PARTITION_COUNT, TOPIC, SinksLog
from moldau.spark.sink.machine.protocol import SinkError, Token, Transaction
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from moldau.wire.records import (
    ControlType,
    decode_batch,
    decode_control_type,
    encode_batch,
    iterate_headers,
)

__all__ = ["SinkOperations", "TakenOverError"]

V = TypeVar("V")

_PASSES: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
# The producer id, its epoch or the state of its transaction is not what was said.
_REFUSED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
# The last versions before transactions of version 2, and before topics are known by ids only.
_END_TXN_V1, _PRODUCE_V1, _ADD_PARTITIONS_V1 = 4, 11, 3
_PRODUCE_BY_NAME, _FETCH_BY_NAME = 12, 12
_FETCH_BYTES: Final = 4 * 1024 * 1024
# The driver's own transaction holds one record.
_DECISION_TIMEOUT_MS: Final = 60_000
_CLOSE_S: Final = 5.0
# Each batch write without a name brings transactional ids of its own.
_COORDINATORS_MAX: Final = 10_000
_TOPIC_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "compression.type": "producer",
}


class TakenOverError(SinkError):
    """A newer run of the query, or another query, uses the transactional ids."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(transactional_id)
        self.transactional_id = transactional_id

    def __str__(self) -> str:
        return (
            f"another producer has taken over the transactional id {self.transactional_id}: this "
            "query was started a second time, or another one has the same checkpointLocation or "
            "kafka.transactional.id; nothing of this batch was committed here"
        )


class _KeptCoordinators(CoordinatorRoute[str]):
    """Is asked through again and again, so a node that gives no answer must not stay."""

    async def locate(self, cluster: ClusterClient, keys: Sequence[str]) -> Located[str]:
        if len(self._nodes) > _COORDINATORS_MAX:
            self._nodes.clear()
        return await super().locate(cluster, keys)

    def failed(self, cluster: ClusterClient, key: str, error: KafkaError) -> None:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            self._nodes.pop(key, None)


class SinkOperations(AdminBase):
    """See the module. Created and used on one event loop."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._connection = AdminConnection(config, {})
        super().__init__(self._connection.driver)
        self._cluster = self._connection.cluster
        self._topics = TopicOperations(self._driver)
        self._configs = ConfigOperations(self._driver)
        self.transactions = TransactionOperations(self._driver)
        # Kept from batch to batch: to ask who coordinates or leads would double the requests.
        self._coordinators = _KeptCoordinators(CoordinatorType.TRANSACTION)
        self._leaders = LeaderRoute()

    async def close(self) -> None:
        await self._connection.close(_CLOSE_S)

    async def init_producer(self, key: str, expected: Token | None) -> Token | None:
        """The next epoch of a transactional id; None if `expected` is not the last one."""
        producer_id, epoch = expected or Token(-1, -1)

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, Token]:
            response: InitProducerIdResponse = await call(
                InitProducerIdRequest(
                    transactional_id=key,
                    transaction_timeout_ms=_DECISION_TIMEOUT_MS,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                )
            )
            answer: Answer[str, Token] = Answer()
            token = Token(response.producer_id, response.producer_epoch)
            answer.settle(key, response.error_code, f"transactional id {key}", token)
            return answer

        results = await self._ask_coordinators("InitProducerId", [key], ask)
        if expected is not None and results.errors and results.errors[key].code in _REFUSED:
            return None
        return results.check()[key]

    async def end_transactions(
        self, transactions: Iterable[Transaction], *, is_commit: bool
    ) -> frozenset[str]:
        """The transactional ids of those that were refused."""
        by_id = {each.transactional_id: each for each in transactions}

        async def end(call: Call, each: Transaction) -> EndTxnResponse:
            response: EndTxnResponse = await call(
                EndTxnRequest(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    committed=is_commit,
                ),
                max_version=None if each.version >= 2 else _END_TXN_V1,
            )
            return response

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, None]:
            answer: Answer[str, None] = Answer()
            responses = await asyncio.gather(*(end(call, by_id[key]) for key in keys))
            for key, response in zip(keys, responses, strict=True):
                answer.settle(key, response.error_code, f"transactional id {key}", None)
            return answer

        results = await self._ask_coordinators("EndTxn", by_id, ask)
        refused = {key for key, error in results.errors.items() if error.code in _REFUSED}
        for key, error in results.errors.items():
            if key not in refused:
                raise error
        return frozenset(refused)

    async def gone(self, transactions: Iterable[Transaction]) -> frozenset[str]:
        """Those that are no longer open."""
        by_id = {each.transactional_id: each for each in transactions}

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, bool]:
            response: DescribeTransactionsResponse = await call(
                DescribeTransactionsRequest(transactional_ids=list(keys))
            )
            answer: Answer[str, bool] = Answer()
            for each in response.transaction_states:
                key = each.transactional_id
                token = (each.producer_id, each.producer_epoch)
                is_open = each.transaction_state == "Ongoing" and token == by_id[key][1:3]
                answer.settle(key, each.error_code, f"transactional id {key}", is_open)
            return answer

        found = await self._ask_coordinators("DescribeTransactions", by_id, ask)
        for error in found.errors.values():
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise error
        still_open = {key for key, is_open in found.values_by_key.items() if is_open}
        return frozenset(by_id.keys() - still_open)

    async def write_decision(
        self, key: str, token: Token, partition: int, record: tuple[bytes, bytes]
    ) -> None:
        """A record in a transaction of its own. Raises TakenOverError."""
        node = await self._cluster.coordinator(CoordinatorType.TRANSACTION, key)
        levels = (await self._cluster.versions(node)).finalized_features
        version = 2 if levels.get("transaction.version", 0) >= 2 else 1
        place = TopicPartition(TOPIC, partition)
        if version == 1:
            await self._add_partition(key, token, place)
        now_ms = round(time.time() * 1000)
        batch = encode_batch(
            [(*record, now_ms, ())],
            producer_id=token.producer_id,
            producer_epoch=token.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        await self._produce(key, place, batch, _PRODUCE_BY_NAME if version == 2 else _PRODUCE_V1)
        transaction = Transaction(key, *token, version)
        if await self.end_transactions([transaction], is_commit=True):
            raise TakenOverError(key)

    async def _add_partition(self, key: str, token: Token, place: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, None]:
            response: AddPartitionsToTxnResponse = await call(
                request(
                    v3_and_below_transactional_id=key,
                    v3_and_below_producer_id=token.producer_id,
                    v3_and_below_producer_epoch=token.producer_epoch,
                    v3_and_below_topics=[
                        request.AddPartitionsToTxnTopic(
                            name=place.topic, partitions=[place.partition]
                        )
                    ],
                ),
                max_version=_ADD_PARTITIONS_V1,
            )
            answer: Answer[str, None] = Answer()
            for topic in response.results_by_topic_v3_and_below:
                for each in topic.results_by_partition:
                    answer.settle(key, each.partition_error_code, str(place), None)
            return answer

        results = await self._ask_coordinators("AddPartitionsToTxn", [key], ask)
        _check(key, results.errors.values())

    async def _produce(
        self, key: str | None, place: TopicPartition, batch: bytes, max_version: int
    ) -> None:
        async def ask(call: Call, keys: Sequence[TopicPartition]) -> Answer[TopicPartition, None]:
            data = ProduceRequest.PartitionProduceData(index=place.partition, records=batch)
            topic = ProduceRequest.TopicProduceData(name=place.topic, partition_data=[data])
            response: ProduceResponse = await call(
                ProduceRequest(
                    transactional_id=key, acks=-1, timeout_ms=call.timeout_ms, topic_data=[topic]
                ),
                max_version=max_version,
            )
            answer: Answer[TopicPartition, None] = Answer()
            for found in response.responses:
                for each in found.partition_responses:
                    code = each.error_code
                    if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                        code = ErrorCode.NONE
                    answer.settle(place, code, each.error_message or str(place), None)
            return answer

        results = await self._run(
            "Produce", [place], self._leaders, ask, timeout=None, check=False, retried=_PASSES
        )
        _check(key, results.errors.values())

    async def forget(self, partition: int, keys: Iterable[bytes]) -> None:
        """Tombstones for what will not be asked for again."""
        now_ms = round(time.time() * 1000)
        batch = encode_batch([(key, None, now_ms, ()) for key in keys])
        await self._produce(None, TopicPartition(TOPIC, partition), batch, _PRODUCE_BY_NAME)

    async def _ask_coordinators(
        self, what: str, keys: Iterable[str], ask: Ask[str, V]
    ) -> Results[str, V]:
        """Of transactional ids. What was refused is among the results."""
        return await self._run(
            what,
            keys,
            self._coordinators,
            ask,
            timeout=None,
            check=False,
            retried=_PASSES,
        )

    # The sinks' topic.

    async def ensure_topic(self) -> None:
        """The topic with all its partitions."""
        deadline = self._driver.deadline(None)
        picture = await self._cluster.refresh([TOPIC], deadline=deadline)
        count = picture.partition_count(TOPIC) or 0
        if count >= PARTITION_COUNT:
            return
        if count == 0:
            factor = min(3, len(picture.nodes))
            topic = NewTopic(TOPIC, PARTITION_COUNT, factor, _TOPIC_CONFIGS)
            try:
                await self._topics.create_topics([topic])
            except TopicExistsError:
                await self.ensure_topic()
        else:
            await self._topics.create_partitions({TOPIC: NewPartitions(PARTITION_COUNT)})

    async def read_log(self, partition: int, log: SinksLog) -> SinksLog:
        """Read on from where `log` ends, to the end of the partition."""
        place = TopicPartition(TOPIC, partition)
        deadline = self._driver.deadline(None)
        high_watermark = log.next_offset + 1
        while log.next_offset < high_watermark:
            if deadline.passed:
                raise KafkaTimeoutError(f"{place} was not read within {deadline.timeout_ms} ms")
            found = await self._fetch(place, log.next_offset)
            if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # Compaction has no lower end, but the topic may have been created again.
                log = SinksLog()
                log.next_offset = max(0, found.log_start_offset)
                found = await self._fetch(place, log.next_offset)
                if found.error_code:
                    raise error_for(found.error_code, str(place))
            high_watermark = found.high_watermark
            _tell(log, found.records or b"")
        return log

    async def _fetch(self, place: TopicPartition, offset: int) -> FetchResponse.PartitionData:
        async def ask(
            call: Call, keys: Sequence[TopicPartition]
        ) -> Answer[TopicPartition, FetchResponse.PartitionData]:
            wanted = FetchRequest.FetchPartition(
                partition=place.partition,
                fetch_offset=offset,
                partition_max_bytes=_FETCH_BYTES,
            )
            topic = FetchRequest.FetchTopic(topic=place.topic, partitions=[wanted])
            response: FetchResponse = await call(
                FetchRequest(topics=[topic], max_bytes=_FETCH_BYTES), max_version=_FETCH_BY_NAME
            )
            answer: Answer[TopicPartition, FetchResponse.PartitionData] = Answer()
            for found in response.responses:
                for each in found.partitions:
                    code = each.error_code
                    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        code = ErrorCode.NONE
                    answer.settle(place, code, str(place), each)
            return answer

        results = await self._run(
            "Fetch", [place], self._leaders, ask, timeout=None, check=True, retried=_PASSES
        )
        return results[place]

    async def transaction_timeout_ms_max(self) -> int | None:
        """What brokers accept at most; None where they do not say."""
        picture = self._cluster.metadata
        for node_id in sorted(picture.nodes):
            resource = ConfigResource.broker(node_id)
            results = await self._configs.describe_configs([resource], check=False)
            found: Any = results.values_by_key.get(resource, {}).get("transaction.max.timeout.ms")
            if found is not None and found.value is not None:
                return int(found.value)
        return None


def _tell(log: SinksLog, records: bytes) -> None:
    for position, header in iterate_headers(records):
        if header.next_offset <= log.next_offset:
            # A fetch from within a batch brings the whole of it.
            continue
        found = decode_batch(records, position)
        if not header.is_control:
            log.appended(
                header.producer_id,
                header.producer_epoch,
                [(each.key, each.value) for each in found],
                is_transactional=header.is_transactional,
            )
        elif found:
            kind = decode_control_type(found[0].key)
            log.ended(header.producer_id, is_commit=kind == ControlType.COMMIT)
        log.next_offset = header.next_offset


def _check(key: str | None, errors: Iterable[KafkaError]) -> None:
    for error in errors:
        if error.code in _REFUSED and key is not None:
            raise TakenOverError(key) from error
        raise error
