"""Markers for partitions of all brokers.

Each part of a marker goes to the leader of its partitions. Nothing is retried here: the sender
retries, and looks up the leaders again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moldau.broker.calls.brokers import known_code
from moldau.broker.calls.leader_calls import BatchRequest, Brokers, LeaderCalls
from moldau.broker.coordinator.transaction.interface import MarkerWriter
from moldau.broker.coordinator.transaction.machine.values import (
    Marker,
    MarkerResult,
    TopicPartition,
)
from moldau.invariant import of_type
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

logger = logging.getLogger(__name__)

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class ClusterMarkers:
    """Implements `MarkerWriter` for the partitions of all brokers."""

    def __init__(self, local: MarkerWriter, brokers: Brokers) -> None:
        """`local` writes to the partitions that this broker leads."""
        self._local = local
        self._calls = LeaderCalls(
            brokers,
            BatchRequest(
                api=ApiKey.WRITE_TXN_MARKERS,
                encode=_request,
                decode=_results,
                # A response identifies a marker by its producer.
                key=lambda marker: marker.producer_id,
            ),
            no_partition=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            no_leader=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        )

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        return await _all([self._write(marker) for marker in markers])

    async def _write(self, marker: Marker) -> MarkerResult:
        led, result = self._calls.by_leader(marker.partitions)
        parts = [self._write_part(leader, _part(marker, names)) for leader, names in led.items()]
        for written in await _all(parts):
            result.update(written)
        return result

    async def _write_part(self, leader: int, marker: Marker) -> MarkerResult:
        """Write the marker to partitions that all have this leader."""
        try:
            result = await self._calls.call_broker(
                leader, marker, lambda: self._write_locally(marker)
            )
        except ApiError as error:
            # After a lost connection the markers may have been written; a second write is harmless.
            logger.info(
                "writing markers of producer %d on broker %d failed: %s",
                marker.producer_id,
                leader,
                error,
            )
            return dict.fromkeys(marker.partitions, error.code)
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return {name: result.get(name, missing) for name in marker.partitions}

    async def _write_locally(self, marker: Marker) -> MarkerResult:
        (result,) = await self._local.write([marker])
        return result


async def _all(calls: Sequence[Coroutine[Any, Any, MarkerResult]]) -> list[MarkerResult]:
    if len(calls) == 1:
        # The usual case, which needs no task of its own.
        return [await calls[0]]
    return await asyncio.gather(*calls)


def _part(marker: Marker, names: Sequence[TopicPartition]) -> Marker:
    if len(names) == len(marker.partitions):
        return marker
    return replace(marker, partitions=tuple(names))


def _request(markers: Sequence[Marker]) -> Message:
    return WriteTxnMarkersRequest(markers=[_encoded(marker) for marker in markers])


def _encoded(marker: Marker) -> WriteTxnMarkersRequest.WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for name, index in marker.partitions:
        topics.setdefault(name, []).append(index)
    return _Marker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        topics=[_Topic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
    )


def _results(message: Message) -> Mapping[Hashable, MarkerResult | ApiError]:
    response = of_type(message, WriteTxnMarkersResponse)
    return {
        result.producer_id: {
            (topic.name, partition.partition_index): known_code(partition.error_code)
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in response.markers
    }
