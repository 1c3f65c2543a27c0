"""Single requests to one node over a bare socket: what the cluster measurements ask and watch."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateTopicsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from moldau.wire.records import encode_batch

METADATA_TOPIC = "__cluster_metadata"
PREFERRED = 0
ELECTION_NOT_NEEDED = 84
LATEST = -1


class Unreachable(Exception):
    """The node does not answer, or not any more."""


class Connection:
    """One connection; requests are answered one by one."""

    def __init__(self, port: int, *, timeout: float = 60.0) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        except OSError as error:
            raise Unreachable(str(error)) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, key: ApiKey, version: int, request: Message) -> Any:
        self._correlation_id += 1
        api = API_BY_KEY[key]
        frame = encode_request_frame(api, version, self._correlation_id, "bench", request)
        try:
            self._socket.sendall(frame)
            (size,) = struct.unpack(">i", self._receive(4))
            return decode_response(api, version, self._receive(size))[1]
        except OSError as error:
            raise Unreachable(str(error)) from None

    def _receive(self, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            received = self._socket.recv_into(view)
            if not received:
                raise Unreachable("the node closed the connection")
            view = view[received:]
        return bytes(data)

    def metadata(self, *topics: str) -> MetadataResponse:
        wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        response: MetadataResponse = self.call(ApiKey.METADATA, 9, request)
        return response

    def partitions(self, topic: str) -> dict[int, Any]:
        """The partitions of one topic by index; empty while it is not known."""
        (found,) = self.metadata(topic).topics
        return {partition.partition_index: partition for partition in found.partitions}

    def create_topic(
        self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str] | None = None
    ) -> int:
        """The error code."""
        entries = [
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, configs=entries
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        response = self.call(ApiKey.CREATE_TOPICS, 5, request)
        return int(response.topics[0].error_code)

    def elect_preferred(self, topic: str, partitions: Iterable[int]) -> bool:
        """Ask for preferred leaders; whether every one of them leads now."""
        wanted = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=list(partitions))
        request = ElectLeadersRequest(
            election_type=PREFERRED, topic_partitions=[wanted], timeout_ms=30_000
        )
        response = self.call(ApiKey.ELECT_LEADERS, 2, request)
        codes = {
            partition.error_code
            for result in response.replica_election_results
            for partition in result.partition_result
        }
        return not response.error_code and codes <= {0, ELECTION_NOT_NEEDED}

    def produce(self, topic: str, partitions: Iterable[int], *, acks: int = -1) -> set[int]:
        """One record to each partition; those that did not take it."""
        # A record of 1970 would be past its retention.
        batch = encode_batch([(None, b"x" * 100, int(time.time() * 1000), ())])
        data = [
            ProduceRequest.PartitionProduceData(index=index, records=batch) for index in partitions
        ]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=data)],
        )
        response = self.call(ApiKey.PRODUCE, 9, request)
        return {
            partition.index
            for partition in response.responses[0].partition_responses
            if partition.error_code
        }

    def offsets_missing(self, topic: str, partitions: Iterable[int]) -> set[int]:
        """Ask where partitions end; those that are not served."""
        wanted = [
            ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
            for index in partitions
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=wanted)],
        )
        response = self.call(ApiKey.LIST_OFFSETS, 5, request)
        return {
            partition.partition_index
            for partition in response.topics[0].partitions
            if partition.error_code
        }

    def is_quorum_leader(self) -> bool:
        """Whether the controller behind this listener leads the metadata quorum."""
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        response = self.call(ApiKey.DESCRIBE_QUORUM, 1, DescribeQuorumRequest(topics=[topic]))
        if response.error_code:
            return False
        (found,) = response.topics[0].partitions
        return not found.error_code
