"""Produce requests made of batches, and responses read. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from moldau.client.errors import InvalidRecordError, KafkaError, error_for
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.producer.machine.transaction_requests import PRODUCE_MAX_V1
from moldau.client.topics import TopicPartition
from moldau.peers.machine.outcomes import RawResponse
from moldau.wire.codec import decode
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ProduceRequest, ProduceResponse
from moldau.wire.uuids import ZERO_UUID

if TYPE_CHECKING:
    from moldau.client.producer._batch import ProducerBatch

__all__ = ["PartitionAnswer", "ProduceAnswer", "produce_request", "read_produce_response"]

# From the next version on topics are known by their ids only.
_MAX_VERSION_WITH_NAMES = 12


class PartitionAnswer(NamedTuple):
    """What became of a batch."""

    error_code: int = ErrorCode.NONE
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: dict[int, KafkaError] | None = None


class ProduceAnswer(NamedTuple):
    partitions: dict[TopicPartition, PartitionAnswer]
    throttle_time_ms: int
    #: Leaders and their epochs that the broker knows of and we did not (KIP-951).
    leaders: dict[TopicPartition, tuple[int, int]]
    nodes: list[tuple[int, str, int, str | None]]


def produce_request(
    batches: list[ProducerBatch],
    *,
    picture: ClusterMetadata,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None,
    is_v2: bool,
) -> tuple[ProduceRequest, int | None, dict[object, str]]:
    """The request, the highest version to send it in, and topics' names by name and id."""
    topics: dict[str, ProduceRequest.TopicProduceData] = {}
    names: dict[object, str] = {}
    max_version = PRODUCE_MAX_V1 if transactional_id is not None and not is_v2 else None
    for batch in batches:
        name = batch.queue.topic
        data = topics.get(name)
        if data is None:
            topic_id: UUID = picture.topic_id(name)
            if topic_id == ZERO_UUID and max_version is None:
                max_version = _MAX_VERSION_WITH_NAMES
            data = topics[name] = ProduceRequest.TopicProduceData(name=name, topic_id=topic_id)
            names[name] = names[topic_id] = name
        data.partition_data.append(
            ProduceRequest.PartitionProduceData(
                index=batch.queue.partition,
                records=cast(bytes, batch.encoded(is_transactional=transactional_id is not None)),
            )
        )
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=list(topics.values()),
    )
    return request, max_version, names


def read_produce_response(raw: RawResponse, names: dict[object, str]) -> ProduceAnswer:
    """Raises WireError for what is no response."""
    response = decode(ProduceResponse, raw.version, raw.body)
    partitions: dict[TopicPartition, PartitionAnswer] = {}
    leaders: dict[TopicPartition, tuple[int, int]] = {}
    for topic in response.responses:
        name = names.get(topic.name or topic.topic_id)
        if name is None:
            continue
        for each in topic.partition_responses:
            key = TopicPartition(name, each.index)
            partitions[key] = PartitionAnswer(
                each.error_code,
                each.base_offset,
                each.log_append_time_ms,
                each.log_start_offset,
                each.error_message,
                _record_errors(each) if each.record_errors else None,
            )
            leader = each.current_leader
            if leader.leader_id >= 0 and leader.leader_epoch >= 0:
                leaders[key] = (leader.leader_id, leader.leader_epoch)
    nodes = [(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
    return ProduceAnswer(partitions, response.throttle_time_ms, leaders, nodes)


def _record_errors(answer: ProduceResponse.PartitionProduceResponse) -> dict[int, KafkaError]:
    """By index. Only if there is one is it sure that the batch's code is its own."""
    found: dict[int, KafkaError] = {}
    for each in answer.record_errors:
        message = each.batch_index_error_message or answer.error_message
        if len(answer.record_errors) == 1:
            found[each.batch_index] = error_for(answer.error_code, message)
        else:
            found[each.batch_index] = InvalidRecordError(message or "")
    return found
