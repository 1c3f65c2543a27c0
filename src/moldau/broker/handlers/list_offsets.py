"""ListOffsets (key 2), v1-11: the offset for a timestamp, or a special offset of a partition."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from moldau.broker.handlers.support.partition_errors import error_of
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    find_offset,
)
from moldau.broker.replication.partition import Partition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse

CONSUMER = -1
READ_COMMITTED = 1
LEADER_EPOCH_SINCE = 4
OFFSET_NOT_AVAILABLE_SINCE = 5

_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 32767


class ListOffsetsReplicas(Protocol):
    def get(self, key: str | bytes, index: int) -> Partition: ...


class ListOffsetsHandler:
    """Answers ListOffsets."""

    def __init__(self, replicas: ListOffsetsReplicas) -> None:
        self._replicas = replicas

    def handle(self, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
        named = Counter(
            (topic.name, each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        )
        response = ListOffsetsResponse()
        for topic in request.topics:
            answers = [
                _failed(wanted, ErrorCode.INVALID_REQUEST)
                if named[topic.name, wanted.partition_index] > 1
                else self._find(context.api_version, request, topic.name, wanted)
                for wanted in topic.partitions
            ]
            response.topics.append(
                ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=answers)
            )
        return response

    def _find(
        self,
        version: int,
        request: ListOffsetsRequest,
        topic: str,
        wanted: ListOffsetsRequest.ListOffsetsPartition,
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        if wanted.timestamp < 0 and version < _SINCE.get(wanted.timestamp, _NEVER):
            return _failed(wanted, ErrorCode.UNSUPPORTED_VERSION)
        try:
            partition = self._replicas.get(topic, wanted.partition_index)
            partition.role.check_leader_epoch(wanted.current_leader_epoch)
            found = find_offset(
                partition,
                wanted.timestamp,
                read_committed=request.isolation_level == READ_COMMITTED,
                for_client=request.replica_id == CONSUMER,
            )
        except Exception as error:
            code, _ = error_of(error, f"ListOffsets of {topic}-{wanted.partition_index}")
            if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_SINCE:
                code = ErrorCode.LEADER_NOT_AVAILABLE
            return _failed(wanted, code)
        answer = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            timestamp=found.timestamp,
            offset=found.offset,
        )
        if version >= LEADER_EPOCH_SINCE:
            answer.leader_epoch = found.leader_epoch
        return answer


def _failed(
    wanted: ListOffsetsRequest.ListOffsetsPartition, code: ErrorCode
) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
    return ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, error_code=code
    )
