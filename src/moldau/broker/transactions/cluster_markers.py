"""Markers for partitions wherever they are led.

Decided here: which broker is told of which partition. What is led by this node goes no further;
for each other broker one request is under way at a time, and holds all markers that have gathered.
Nothing is tried again here: the sender does, and finds out anew who leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from moldau.broker.calls.brokers import (
    NO_LEADER,
    BrokerChannels,
    PartitionLeaders,
    known_code,
)
from moldau.broker.calls.gathering import Gathering
from moldau.broker.coordinator.transaction.interface import MarkerWriter
from moldau.broker.coordinator.transaction.machine.values import (
    Marker,
    MarkerResult,
    TopicPartition,
)
from moldau.invariant import of_type
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

logger = logging.getLogger(__name__)

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class ClusterMarkers:
    """Implements `MarkerWriter` for the partitions of all nodes."""

    def __init__(
        self,
        local: MarkerWriter,
        leaders: PartitionLeaders,
        channels: BrokerChannels,
        *,
        node_id: int,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`timeout_ms` is for one request: request.timeout.ms."""
        self._local = local
        self._leaders = leaders
        self._channels = channels
        self._node_id = node_id
        self._timeout_ms = timeout_ms
        # A response names producers: one marker of each at a time.
        self._requests: Gathering[int, Marker, MarkerResult] = Gathering(
            self._send, key=lambda marker: marker.producer_id
        )

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        results: list[MarkerResult] = [{} for _ in markers]
        mine: list[Marker] = []
        my_results: list[MarkerResult] = []
        calls = []
        for marker, result in zip(markers, results, strict=True):
            for leader, names in self._by_leader(marker).items():
                if leader is None:
                    result.update(dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                elif leader == NO_LEADER:
                    result.update(dict.fromkeys(names, ErrorCode.NOT_LEADER_OR_FOLLOWER))
                elif leader == self._node_id:
                    mine.append(_for(marker, names))
                    my_results.append(result)
                else:
                    calls.append(self._write_remotely(leader, _for(marker, names), result))
        if mine:
            calls.append(self._write_locally(mine, my_results))
        if len(calls) == 1:
            await calls[0]
        elif calls:
            await asyncio.gather(*calls)
        return results

    def _by_leader(self, marker: Marker) -> dict[int | None, list[TopicPartition]]:
        places: dict[int | None, list[TopicPartition]] = {}
        for name in marker.partitions:
            places.setdefault(self._leaders.leader(*name), []).append(name)
        return places

    async def _write_locally(
        self, markers: Sequence[Marker], results: Sequence[MarkerResult]
    ) -> None:
        for result, written in zip(results, await self._local.write(markers), strict=True):
            result.update(written)

    async def _write_remotely(self, leader: int, marker: Marker, result: MarkerResult) -> None:
        try:
            result.update(await self._requests.call(leader, marker))
        except ChannelError as error:
            # Whether they were written is not known; written twice they end nothing twice.
            logger.info("markers of producer %d: %s", marker.producer_id, error)
            result.update(dict.fromkeys(marker.partitions, ErrorCode.NETWORK_EXCEPTION))

    async def _send(self, leader: int, markers: Sequence[Marker]) -> list[MarkerResult]:
        answer = await self._channels.call(
            leader,
            ApiKey.WRITE_TXN_MARKERS,
            WriteTxnMarkersRequest(markers=[_encoded(marker) for marker in markers]),
            timeout_ms=self._timeout_ms(),
        )
        response = of_type(answer, WriteTxnMarkersResponse)
        told = {
            result.producer_id: {
                (topic.name, partition.partition_index): known_code(partition.error_code)
                for topic in result.topics
                for partition in topic.partitions
            }
            for result in response.markers
        }
        return [
            {
                name: told.get(marker.producer_id, {}).get(name, ErrorCode.UNKNOWN_SERVER_ERROR)
                for name in marker.partitions
            }
            for marker in markers
        ]

    def close(self) -> None:
        self._requests.close()


def _for(marker: Marker, names: Sequence[TopicPartition]) -> Marker:
    if len(names) == len(marker.partitions):
        return marker
    return replace(marker, partitions=tuple(names))


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
