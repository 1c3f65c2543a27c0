"""Produce (key 0), v3-13: append one batch to each of the request's partitions.

The handler decodes, has transactions verified (`transactions/produce_verification.py`) and batches
appended (`replication/appends.py`), and encodes the response when they are safe.

Invariants: every partition gets its own outcome; nothing of the frame is used after the handler has
returned: a request whose transaction must be verified first is copied. A connection's next request
waits for this one, so a producer's batches stay in order meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Protocol

from moldau.broker.handlers.support._produce_codec import (
    CURRENT_LEADER_SINCE,
    PartitionAnswer,
    ProduceBody,
    decode_produce,
    decode_single_produce,
    encode_produce_response,
    encode_produce_success,
    with_throttle_time,
)
from moldau.broker.handlers.support.refused_batches import count_refused
from moldau.broker.log.context import AppendInfo
from moldau.broker.log.machine.validation import RecordValidationError
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.broker.replication.appends import Appended, ProduceAppends, is_safe
from moldau.broker.replication.delayed_produce import DelayedProduce
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey
from moldau.broker.replication.machine.produced_batch import MalformedRequest, looks_transactional
from moldau.broker.replication.machine.purgatory import WAITERS_MAX, Purgatory, Timers
from moldau.broker.replication.partition import Partition
from moldau.broker.schemas.gate import Inspection, SchemaGate
from moldau.broker.security.authorization.topic_guard import TopicGuard
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.broker.transactions.produce_verification import ProduceVerification
from moldau.broker.transactions.verification import (
    UNVERIFIED,
    TransactionVerifier,
    Verified,
    produce_error,
    produce_operation,
)
from moldau.clock import Clock
from moldau.invariant import present
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

# With these Kafka does not return the log start offset.
_WITHOUT_LOG_START = frozenset(
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


class _Unverified(ApiError):
    """Its transaction is not known to be open."""

    def __init__(self, code: ErrorCode, version: int) -> None:
        error = produce_error(code, produce_operation(version))
        super().__init__(error.code, error.message)


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
        clock: Clock,
        verifier: TransactionVerifier | None = None,
        guard: TopicGuard | None = None,
        waiters_max: int = WAITERS_MAX,
        quotas: ClientQuotas | None = None,
        schemas: SchemaGate | None = None,
    ) -> None:
        """Without a `verifier` any transaction is assumed to be open, without a `guard` everybody
        may write, and without `schemas` no topic's records are checked for theirs."""
        self._schemas = schemas
        self._guard = guard
        self._quotas = quotas
        self._replicas = replicas
        self._verification = None if verifier is None else ProduceVerification(replicas, verifier)
        self._loop = loop
        self._appends = ProduceAppends(timers=loop, clock=clock, waiters_max=waiters_max)

    @property
    def purgatory(self) -> Purgatory:
        return self._appends.purgatory

    def handle(
        self, context: RequestContext, frame: memoryview, body_position: int
    ) -> bytes | Awaitable[bytes | None] | None:
        if self._quotas is not None and self._quotas.active:
            return self._handle_limited(self._quotas, context, frame, body_position)
        return self._handle(context, frame, body_position)

    def _handle_limited(
        self, quotas: ClientQuotas, context: RequestContext, frame: memoryview, body_position: int
    ) -> bytes | Awaitable[bytes | None] | None:
        started_ns = quotas.cpu_ns()
        reply = self._handle(context, frame, body_position)
        throttle_ms = quotas.on_produced(
            context, len(frame), quotas.cpu_ns() - started_ns, acks_zero=reply is None
        )
        if not throttle_ms or reply is None:
            return reply
        if isinstance(reply, bytes):
            return with_throttle_time(context.api_version, reply, throttle_ms)
        return _throttled(context.api_version, reply, throttle_ms)

    def _handle(
        self, context: RequestContext, frame: memoryview, body_position: int
    ) -> bytes | Awaitable[bytes | None] | None:
        version = context.api_version
        single = decode_single_produce(version, frame, body_position)
        if single is None:
            body = decode_produce(version, frame, body_position)
            if self._guard is not None:
                if _is_denied_transaction(self._guard, context, body):
                    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                    return self._answer(context, body.acks, _all_refused(body, code))
                body = _with_denied(self._guard, context, body)
            if body.transactional_id is None or self._verification is None:
                return self._handle_many(context, body, UNVERIFIED)
            return self._handle_transactional(context, body, body.transactional_id)
        # Nearly every request: no lists, no answer objects unless there is an error.
        acks, timeout_ms, key, index, records = single
        if (
            self._guard is not None
            and key not in context.connection.grants.writes
            and self._guard.denies_write(context, key)
        ):
            denied = _without_transactional_id(index, records) or _denied(index)
            return self._answer(context, acks, [(key, [denied])])
        partition = self._replicas.find(key, index)
        if partition is not None:
            if partition.log.rules.schemas is not None:
                body = ProduceBody(None, acks, timeout_ms, [(key, [(index, records)])])
                return self._handle_many(context, body, UNVERIFIED)
            try:
                info = self._appends.append(
                    partition, records, version=version, acks=acks, client_id=context.client_id
                )
            except Exception as error:
                answer = _without_transactional_id(index, records) or self._refused(
                    index, partition, error, records
                )
                return self._answer(context, acks, [(key, [answer])])
            if is_safe(partition, info, acks):
                if not acks:
                    return None
                return encode_produce_success(
                    version, context.correlation_id, key, index, info.base_offset,
                    info.log_append_time_ms, info.log_start_offset,
                )  # fmt: skip
            return self._wait(
                context, acks, timeout_ms, [(key, [_appended(index, info)])],
                [Appended((0, 0), partition, info)],
            )  # fmt: skip
        answer = _without_transactional_id(index, records) or PartitionAnswer(
            index, self._replicas.absence(key, index)
        )
        return self._answer(context, acks, [(key, [answer])])

    def _handle_transactional(
        self,
        context: RequestContext,
        body: ProduceBody,
        transactional_id: str,
    ) -> bytes | Awaitable[bytes | None] | None:
        verification = present(self._verification, "there is no transaction verifier")
        try:
            topics = [each for each in body.topics if each[0] not in body.denied]
            verified = verification.start(transactional_id, topics, context.api_version)
        except ApiError as error:
            return self._answer(context, body.acks, _all_refused(body, error.code))
        if isinstance(verified, Verified):
            return self._handle_many(context, body, verified)
        # The frame is gone by the time the coordinator responds.
        return self._handle_verified(context, _own_copy(body), verified)

    async def _handle_verified(
        self,
        context: RequestContext,
        body: ProduceBody,
        verified: Awaitable[Verified],
    ) -> bytes | None:
        reply = self._handle_many(context, body, await verified)
        return await reply if isinstance(reply, Awaitable) else reply

    def _handle_many(
        self, context: RequestContext, body: ProduceBody, verified: Verified
    ) -> bytes | Awaitable[bytes | None] | None:
        inspection = None
        if self._schemas is not None:
            inspection = self._schemas.inspect(body.topics, context.api_version)
            if inspection is not None and inspection.unknown:
                # The frame is gone by the time the registry responds.
                return self._handle_looked_up(
                    self._schemas, context, _own_copy(body), verified, inspection
                )
        return self._append_many(context, body, verified, inspection)

    async def _handle_looked_up(
        self,
        schemas: SchemaGate,
        context: RequestContext,
        body: ProduceBody,
        verified: Verified,
        inspection: Inspection,
    ) -> bytes | None:
        await schemas.look_up(inspection)
        reply = self._append_many(context, body, verified, inspection)
        return await reply if isinstance(reply, Awaitable) else reply

    def _append_many(
        self,
        context: RequestContext,
        body: ProduceBody,
        verified: Verified,
        inspection: Inspection | None,
    ) -> bytes | asyncio.Future[bytes] | None:
        answers: list[tuple[TopicKey, list[PartitionAnswer]]] = []
        unsafe: list[Appended] = []
        refusal = _transaction_refusal(body)
        for key, partitions in body.topics:
            topic_answers: list[PartitionAnswer] = []
            answers.append((key, topic_answers))
            if refusal is None and key in body.denied:
                topic_answers += [_denied(index) for index, _ in partitions]
                continue
            for index, records in partitions:
                partition = self._replicas.find(key, index)
                if refusal is not None or partition is None:
                    code = refusal or self._replicas.absence(key, index)
                    topic_answers.append(PartitionAnswer(index, code))
                    continue
                try:
                    if inspection is not None and self._schemas is not None:
                        self._schemas.check(inspection, key, index, partition)
                    info = self._append_verified(context, body, partition, records, verified)
                except Exception as error:
                    topic_answers.append(self._refused(index, partition, error, records))
                    continue
                if not is_safe(partition, info, body.acks):
                    key_in_answers = len(answers) - 1, len(topic_answers)
                    unsafe.append(Appended(key_in_answers, partition, info))
                topic_answers.append(_appended(index, info))
        if unsafe:
            return self._wait(context, body.acks, body.timeout_ms, answers, unsafe)
        return self._answer(context, body.acks, answers)

    def _append_verified(
        self,
        context: RequestContext,
        body: ProduceBody,
        partition: Partition,
        records: memoryview | None,
        verified: Verified,
    ) -> AppendInfo:
        guard = None
        if verified is not UNVERIFIED:
            name = partition.topic, partition.index
            if code := verified.errors.get(name):
                raise _Unverified(code, context.api_version)
            guard = verified.guard(name)
        return self._appends.append(
            partition,
            records,
            version=context.api_version,
            acks=body.acks,
            client_id=context.client_id,
            transactional_id=body.transactional_id,
            guard=guard,
        )

    def _refused(
        self, index: int, partition: Partition, error: Exception, records: memoryview | None
    ) -> PartitionAnswer:
        if partition.meters is not None:
            compacted = "compact" in partition.log.config.cleanup_policy
            size = len(records or b"")
            count_refused(partition.meters, error, size=size, compacted=compacted)
        if isinstance(error, _Unverified):
            return PartitionAnswer(index, error.code, error_message=error.message or None)
        if isinstance(error, MalformedRequest):
            return PartitionAnswer(index, error.code, error_message=error.message)
        if isinstance(error, ApiError):
            has_log_start = error.code not in _WITHOUT_LOG_START
            return PartitionAnswer(
                index,
                error.code,
                log_start_offset=partition.log.log_start_offset if has_log_start else -1,
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
        unsafe: list[Appended],
    ) -> asyncio.Future[bytes] | None:
        """Answer once the `unsafe` batches are committed or flushed, as the case may be."""
        if acks == 0:
            self._appends.flush_in_background(unsafe)
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

        request = self._appends.wait(unsafe, acks=acks, timeout_ms=timeout_ms, on_end=end)
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
            self._add_leaders(context.listener_name, answers, nodes)
        return encode_produce_response(
            context.api_version, context.correlation_id, answers, list(nodes.values())
        )

    def _add_leaders(
        self,
        listener_name: str,
        answers: list[tuple[TopicKey, list[PartitionAnswer]]],
        nodes: dict[int, NodeEndpoint],
    ) -> None:
        """Add the leaders of partitions that this node does not lead (KIP-951)."""
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


async def _throttled(
    version: int, reply: Awaitable[bytes | None], throttle_ms: int
) -> bytes | None:
    answer = await reply
    return None if answer is None else with_throttle_time(version, answer, throttle_ms)


def _appended(index: int, info: AppendInfo) -> PartitionAnswer:
    return PartitionAnswer(
        index, 0, info.base_offset, info.log_append_time_ms, info.log_start_offset
    )


def _denied(index: int) -> PartitionAnswer:
    return PartitionAnswer(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _is_denied_transaction(guard: TopicGuard, context: RequestContext, body: ProduceBody) -> bool:
    """The transactional id matters only if there are transactional records."""
    return (
        body.transactional_id is not None
        and any(
            looks_transactional(records)
            for _, partitions in body.topics
            for _, records in partitions
        )
        and guard.denies_transaction(context, body.transactional_id)
    )


def _with_denied(guard: TopicGuard, context: RequestContext, body: ProduceBody) -> ProduceBody:
    granted = context.connection.grants.writes
    denied = frozenset(
        key for key, _ in body.topics if key not in granted and guard.denies_write(context, key)
    )
    return body._replace(denied=denied) if denied else body


def _without_transactional_id(index: int, records: memoryview | None) -> PartitionAnswer | None:
    """For a request that has none: Kafka checks this before anything else."""
    if not looks_transactional(records):
        return None
    return PartitionAnswer(
        index,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        error_message="transactional records in a request without a transactional id",
    )


def _transaction_refusal(body: ProduceBody) -> ErrorCode | None:
    """Transactional records without a transactional id: the whole request is rejected."""
    if body.transactional_id is None:
        for _, partitions in body.topics:
            if any(looks_transactional(records) for _, records in partitions):
                return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


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
    """A producer with acks=0 gets no response: a closed connection is the only sign of errors."""
    errors = [
        f"{key if isinstance(key, str) else key.hex()}-{answer.partition}:"
        f" {ErrorCode(answer.error_code).name}"
        for key, topic_answers in answers
        for answer in topic_answers
        if answer.error_code
    ]
    if errors:
        raise InvalidRequest(f"acks=0 and {len(errors)} partitions failed: {', '.join(errors[:5])}")
