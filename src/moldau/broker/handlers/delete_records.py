"""DeleteRecords: advance the log start of partitions."""

from __future__ import annotations

from typing import Protocol

from moldau.broker.handlers.partition_errors import error_of
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.partition import Partition
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

NO_LOW_WATERMARK = -1


class DeleteRecordsReplicas(Protocol):
    def get(self, key: str | bytes, index: int) -> Partition: ...


class DeleteRecordsHandler:
    """Answers DeleteRecords."""

    def __init__(self, replicas: DeleteRecordsReplicas) -> None:
        self._replicas = replicas

    def handle(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsResponse.DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        self._delete(topic.name, wanted.partition_index, wanted.offset)
                        for wanted in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _delete(
        self, topic: str, index: int, offset: int
    ) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
        code = ErrorCode.NONE
        low_watermark = NO_LOW_WATERMARK
        try:
            partition = self._replicas.get(topic, index)
            if partition.internal:
                raise ApiError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Cannot delete records of internal topic {topic}",
                )
            low_watermark = partition.delete_records(offset)
        except Exception as error:
            code, _ = error_of(error, f"DeleteRecords of {topic}-{index}")
        return DeleteRecordsResponse.DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=low_watermark, error_code=code
        )
