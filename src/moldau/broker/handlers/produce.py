"""Produce (key 0), v3-13: append one batch to each of the request's partitions.

Decided here: what is refused before the log sees it (unknown partitions, anything but exactly
one batch of the current format, clients writing to internal topics) and when the answer goes
out. What always holds: every partition gets its own outcome; nothing of the frame is kept once
the handler has returned: a request whose transaction must be verified first is copied. A
connection's next request waits for this one, so a producer's batches stay in order meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from moldau.broker.handlers.support.produce_codec import (
    CURRENT_LEADER_SINCE,
    PartitionAnswer,
    ProduceBody,
    decode_produce,
    decode_single_produce,
    encode_produce_response,
    encode_produce_success,
)
from moldau.broker.log.context import AppendInfo
from moldau.broker.log.machine.validation import RecordValidationError
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.broker.replication.delayed_produce import DelayedProduce
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey
from moldau.broker.replication.machine.purgatory import WAITERS_MAX, Purgatory, Timers
from moldau.broker.replication.partition import Partition
from moldau.broker.transactions.verification import (
    UNVERIFIED,
    Claim,
    TransactionVerifier,
    Verified,
    produce_error,
    produce_operation,
)
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

ACKS_ALL = -1
ADMIN_CLIENT_ID = "__admin_client"
ZSTD_SINCE = 7

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes (low byte).
_BATCH_START = struct.Struct(">8xi4xb5xB")
# What follows attributes, last offset delta and timestamps: producer id, epoch, base sequence.
_PRODUCER = struct.Struct(">43xqhi")
_LOG_OVERHEAD = 12
_MAGIC_END = 17
_MAGIC = 2
_COMPRESSION_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL = 0x10

# With these Kafka does not tell where the log starts: the log was not reached, or not believed.
_LOG_START_UNTOLD = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)

_Appended = tuple[tuple[int, int], Partition, AppendInfo]
"""The place of the answer in the response, the partition, and what became of its batch."""


class _MalformedRequest(ApiError):
    """Refused before any log is asked."""


class _Unverified(ApiError):
    """Its transaction is not known to be open."""

    def __init__(self, code: ErrorCode, version: int) -> None:
        told = produce_error(code, produce_operation(version))
        super().__init__(told.code, told.message)


class ProduceReplicas(Protocol):
    def find(self, key: TopicKey, index: int) -> Partition | None: ...

    def absence(self, key: TopicKey, index: int) -> ErrorCode: ...

    def current_leader(
        self, key: TopicKey, index: int, listener_name: str
    ) -> CurrentLeader | None: ...


class ProduceLoop(Timers, Protocol):
    def create_future(self) -> asyncio.Future[Any]: ...


class ProduceHandler:
    """Answers Produce."""

    def __init__(
        self,
        replicas: ProduceReplicas,
        *,
        loop: ProduceLoop,
        clock_ms: Callable[[], int],
        verifier: TransactionVerifier | None = None,
        waiters_max: int = WAITERS_MAX,
    ) -> None:
        """Without a `verifier` any transaction is taken to be open."""
        self._replicas = replicas
        self._verifier = verifier
        self._loop = loop
        self._clock_ms = clock_ms
        self.purgatory = Purgatory(loop, waiters_max)

    def handle(
        self, context: RequestContext, frame: memoryview, body_position: int
    ) -> bytes | Awaitable[bytes | None] | None:
        version = context.api_version
        single = decode_single_produce(version, frame, body_position)
        if single is None:
            body = decode_produce(version, frame, body_position)
            if body.transactional_id is None or self._verifier is None:
                return self._handle_many(context, body, UNVERIFIED)
            return self._handle_transactional(context, body, body.transactional_id, self._verifier)
        # Nearly every request: no lists, no answer objects unless something is wrong.
        acks, timeout_ms, key, index, records = single
        partition = self._replicas.find(key, index)
        if partition is not None:
            try:
                info = self._append(context, acks, None, partition, records)
            except Exception as error:
                answer = self._refused(index, partition, error)
                return self._answer(context, acks, [(key, [answer])])
            if not info.flush_due and (
                acks != ACKS_ALL or partition.log.high_watermark > info.last_offset
            ):
                if not acks:
                    return None
                return encode_produce_success(
                    version, context.correlation_id, key, index, info.base_offset,
                    info.log_append_time_ms, info.log_start_offset,
                )  # fmt: skip
            return self._wait(
                context, acks, timeout_ms, [(key, [_appended(index, info)])],
                [((0, 0), partition, info)],
            )  # fmt: skip
        answer = PartitionAnswer(index, self._replicas.absence(key, index))
        return self._answer(context, acks, [(key, [answer])])

    def _handle_transactional(
        self,
        context: RequestContext,
        body: ProduceBody,
        transactional_id: str,
        verifier: TransactionVerifier,
    ) -> bytes | Awaitable[bytes | None] | None:
        claims = self._claims(body, context.api_version)
        if len({(claim.producer_id, claim.producer_epoch) for claim in claims}) > 1:
            return self._answer(context, body.acks, _all_refused(body, _TWO_PRODUCERS))
        verified = verifier.start(transactional_id, claims, produce_operation(context.api_version))
        if isinstance(verified, Verified):
            return self._handle_many(context, body, verified)
        # The frame is gone by the time the coordinator answers.
        return self._handle_verified(context, _own_copy(body), verified)

    async def _handle_verified(
        self, context: RequestContext, body: ProduceBody, verified: Awaitable[Verified]
    ) -> bytes | None:
        reply = self._handle_many(context, body, await verified)
        return await reply if isinstance(reply, Awaitable) else reply

    def _claims(self, body: ProduceBody, version: int) -> list[Claim]:
        """The batches that have to be in a transaction, malformed ones left out."""
        claims = []
        for key, partitions in body.topics:
            for index, records in partitions:
                partition = self._replicas.find(key, index)
                if partition is None or partition.internal:
                    continue
                try:
                    batch, attributes = _one_batch(records, version)
                except _MalformedRequest:
                    continue
                if attributes & _TRANSACTIONAL and len(batch) >= _PRODUCER.size:
                    producer_id, epoch, sequence = _PRODUCER.unpack_from(batch)
                    if producer_id >= 0:
                        claims.append(Claim(partition, producer_id, epoch, sequence))
        return claims

    def _handle_many(
        self, context: RequestContext, body: ProduceBody, verified: Verified
    ) -> bytes | asyncio.Future[bytes] | None:
        answers: list[tuple[TopicKey, list[PartitionAnswer]]] = []
        unsafe: list[_Appended] = []
        refusal = _transaction_refusal(body)
        for key, partitions in body.topics:
            topic_answers: list[PartitionAnswer] = []
            answers.append((key, topic_answers))
            for index, records in partitions:
                partition = self._replicas.find(key, index)
                if refusal is not None or partition is None:
                    code = refusal or self._replicas.absence(key, index)
                    topic_answers.append(PartitionAnswer(index, code))
                    continue
                try:
                    info = self._append(
                        context, body.acks, body.transactional_id, partition, records, verified
                    )
                except Exception as error:
                    topic_answers.append(self._refused(index, partition, error))
                    continue
                if info.flush_due or (
                    body.acks == ACKS_ALL and partition.high_watermark <= info.last_offset
                ):
                    unsafe.append(((len(answers) - 1, len(topic_answers)), partition, info))
                topic_answers.append(_appended(index, info))
        if unsafe:
            return self._wait(context, body.acks, body.timeout_ms, answers, unsafe)
        return self._answer(context, body.acks, answers)

    def _append(
        self,
        context: RequestContext,
        acks: int,
        transactional_id: str | None,
        partition: Partition,
        records: memoryview | None,
        verified: Verified = UNVERIFIED,
    ) -> AppendInfo:
        batch, attributes = _one_batch(records, context.api_version)
        if attributes & _TRANSACTIONAL and transactional_id is None:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "transactional records in a request without a transactional id",
            )
        if not -1 <= acks <= 1:
            raise ApiError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}; allowed are -1, 0 and 1"
            )
        if partition.internal and context.client_id != ADMIN_CLIENT_ID:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Cannot append to internal topic {partition.topic}",
            )
        if verified is UNVERIFIED:
            return partition.append(
                batch, now_ms=self._clock_ms(), acks=acks, produce_version=context.api_version
            )
        name = partition.topic, partition.index
        if code := verified.errors.get(name):
            raise _Unverified(code, context.api_version)
        return partition.append(
            batch,
            now_ms=self._clock_ms(),
            acks=acks,
            produce_version=context.api_version,
            guard=verified.guard(name),
        )

    def _refused(self, index: int, partition: Partition, error: Exception) -> PartitionAnswer:
        if isinstance(error, _Unverified):
            return PartitionAnswer(index, error.code, error_message=error.message or None)
        if isinstance(error, _MalformedRequest):
            return PartitionAnswer(index, error.code, error_message=error.message)
        if isinstance(error, ApiError):
            told = error.code not in _LOG_START_UNTOLD
            return PartitionAnswer(
                index,
                error.code,
                log_start_offset=partition.log.log_start_offset if told else -1,
                record_errors=(
                    error.record_errors if isinstance(error, RecordValidationError) else ()
                ),
                error_message=error.message or None,
            )
        logger.error("append to %s failed: %s", partition, error, exc_info=error)
        return PartitionAnswer(index, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _wait(
        self,
        context: RequestContext,
        acks: int,
        timeout_ms: int,
        answers: list[tuple[TopicKey, list[PartitionAnswer]]],
        unsafe: list[_Appended],
    ) -> asyncio.Future[bytes] | None:
        """Answer once `unsafe` appends are committed or flushed, as the case may be."""
        if acks == 0:
            for _, partition, _ in unsafe:
                partition.log.request_flush(now_ms=self._clock_ms())
            _close_on_error(answers)
            return None
        future = self._loop.create_future()

        def end(request: DelayedProduce) -> None:
            for (topic, place), code in request.outcomes.items():
                if code:
                    failed = answers[topic][1]
                    failed[place] = failed[place]._replace(error_code=code)
            if not future.done():
                future.set_result(self._answer(context, acks, answers))

        request = DelayedProduce(self.purgatory, end)
        for key, partition, info in unsafe:
            if info.flush_due:
                request.expect_flush(key, partition, info.last_offset + 1, self._clock_ms())
            if acks == ACKS_ALL:
                request.expect_commit(key, partition, info.last_offset + 1)
        request.start(timeout_ms)
        future.add_done_callback(lambda done: request.cancel() if done.cancelled() else None)
        return future

    def _answer(
        self,
        context: RequestContext,
        acks: int,
        answers: list[tuple[TopicKey, list[PartitionAnswer]]],
    ) -> bytes | None:
        if acks == 0:
            _close_on_error(answers)
            return None
        nodes: dict[int, NodeEndpoint] = {}
        if context.api_version >= CURRENT_LEADER_SINCE:
            self._tell_leaders(context.listener_name, answers, nodes)
        return encode_produce_response(
            context.api_version, context.correlation_id, answers, list(nodes.values())
        )

    def _tell_leaders(
        self,
        listener_name: str,
        answers: list[tuple[TopicKey, list[PartitionAnswer]]],
        nodes: dict[int, NodeEndpoint],
    ) -> None:
        """Tell who leads the partitions that were asked of the wrong node (KIP-951)."""
        for key, topic_answers in answers:
            for place, answer in enumerate(topic_answers):
                if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    continue
                leader = self._replicas.current_leader(key, answer.partition, listener_name)
                if leader is None:
                    continue
                leader_id, epoch, node = leader
                topic_answers[place] = answer._replace(current_leader=(leader_id, epoch))
                if node is not None:
                    nodes[leader_id] = node


def _appended(index: int, info: AppendInfo) -> PartitionAnswer:
    return PartitionAnswer(
        index, 0, info.base_offset, info.log_append_time_ms, info.log_start_offset
    )


def _one_batch(records: memoryview | None, version: int) -> tuple[memoryview, int]:
    """The one batch that `records` must be, and its attributes' low byte."""
    size = 0 if records is None else len(records)
    if records is None or size < _MAGIC_END:
        raise _MalformedRequest(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch"
            " per partition",
        )
    if size < _BATCH_START.size:
        raise _MalformedRequest(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes has no header")
    batch_length, magic, attributes = _BATCH_START.unpack_from(records)
    batch_size = batch_length + _LOG_OVERHEAD
    if batch_size != size:
        records = _first_batch(records, batch_size, version)
    if magic != _MAGIC:
        raise _MalformedRequest(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain record batches"
            f" with magic version 2, not {magic}",
        )
    if version < ZSTD_SINCE and attributes & _COMPRESSION_MASK == _ZSTD:
        raise _MalformedRequest(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    return records, attributes


def _first_batch(records: memoryview, batch_size: int, version: int) -> memoryview:
    """`records` without the incomplete batch that may follow the first, as Kafka trims them."""
    if batch_size < _MAGIC_END:
        raise _MalformedRequest(
            ErrorCode.CORRUPT_MESSAGE, f"a batch claims a size of {batch_size} bytes"
        )
    if batch_size > len(records):
        raise _MalformedRequest(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one whole record batch"
            f" per partition; this one has {len(records)} of {batch_size} bytes",
        )
    rest = records[batch_size:]
    if len(rest) >= _BATCH_START.size:
        (batch_length, _, _) = _BATCH_START.unpack_from(rest)
        if batch_length + _LOG_OVERHEAD <= len(rest):
            raise _MalformedRequest(
                ErrorCode.INVALID_RECORD,
                f"Produce requests with version {version} are only allowed to contain exactly"
                " one record batch per partition",
            )
    return records[:batch_size]


def _transaction_refusal(body: ProduceBody) -> ErrorCode | None:
    """Transactional records without a transactional id refuse the whole request."""
    if body.transactional_id is None:
        for _, partitions in body.topics:
            for _, records in partitions:
                if (
                    records is not None
                    and len(records) >= _BATCH_START.size
                    and records[_BATCH_START.size - 1] & _TRANSACTIONAL
                ):
                    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


_TWO_PRODUCERS = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def _all_refused(
    body: ProduceBody, code: ErrorCode
) -> list[tuple[TopicKey, list[PartitionAnswer]]]:
    return [
        (key, [PartitionAnswer(index, code) for index, _ in partitions])
        for key, partitions in body.topics
    ]


def _own_copy(body: ProduceBody) -> ProduceBody:
    return body._replace(
        topics=[
            (
                key,
                [
                    (index, None if records is None else memoryview(bytearray(records)))
                    for index, records in partitions
                ],
            )
            for key, partitions in body.topics
        ]
    )


def _close_on_error(answers: list[tuple[TopicKey, list[PartitionAnswer]]]) -> None:
    """A producer that wants no answer learns of errors by losing its connection."""
    errors = [
        f"{key if isinstance(key, str) else key.hex()}-{answer.partition}:"
        f" {ErrorCode(answer.error_code).name}"
        for key, topic_answers in answers
        for answer in topic_answers
        if answer.error_code
    ]
    if errors:
        raise InvalidRequest(f"acks=0 and {len(errors)} partitions failed: {', '.join(errors[:5])}")
