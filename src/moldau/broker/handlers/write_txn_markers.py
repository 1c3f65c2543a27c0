"""WriteTxnMarkers (key 27), v1-2: end transactions in partitions led here.

Sent by transaction coordinators, and by tools that abort a hanging transaction. v2 added the
transaction version of the marker, which decides how its epoch is checked.
"""

from __future__ import annotations

from moldau.broker.coordinator.transaction.interface import MarkerWriter
from moldau.broker.coordinator.transaction.machine.values import Marker, MarkerResult
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
_TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class WriteTxnMarkersHandler:
    def __init__(self, markers: MarkerWriter) -> None:
        self._markers = markers

    async def handle(
        self, context: RequestContext, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse:
        results = await self._markers.write(
            [
                Marker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    coordinator_epoch=marker.coordinator_epoch,
                    committed=marker.transaction_result,
                    transaction_version=marker.transaction_version,
                    partitions=tuple(
                        (topic.name, index)
                        for topic in marker.topics
                        for index in topic.partition_indexes
                    ),
                )
                for marker in request.markers
            ]
        )
        # One result per producer, whatever the number of its markers.
        by_producer: dict[int, MarkerResult] = {}
        for marker, result in zip(request.markers, results, strict=True):
            by_producer.setdefault(marker.producer_id, {}).update(result)
        return WriteTxnMarkersResponse(
            markers=[
                _Result(producer_id=producer_id, topics=_topics(result))
                for producer_id, result in by_producer.items()
            ]
        )


def _topics(result: MarkerResult) -> list[_TopicResult]:
    topics: dict[str, _TopicResult] = {}
    for (name, index), error in result.items():
        topic = topics.setdefault(name, _TopicResult(name=name))
        topic.partitions.append(_PartitionResult(partition_index=index, error_code=error))
    return list(topics.values())
