"""DescribeQuorum can be told in every version, though only the last knows directories."""

from __future__ import annotations

import asyncio
from typing import cast
from uuid import UUID

import pytest

from moldau.broker.handlers.describe_quorum import DescribeQuorumHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.wire.uuids import ZERO_UUID

DIRECTORY = UUID(int=7)


class FakeRaft:
    def describe_quorum(self, _: DescribeQuorumRequest) -> DescribeQuorumResponse:
        voter = DescribeQuorumResponse.ReplicaState(
            replica_id=1, replica_directory_id=DIRECTORY, log_end_offset=9
        )
        observer = DescribeQuorumResponse.ReplicaState(
            replica_id=4, replica_directory_id=DIRECTORY, log_end_offset=8
        )
        partition = DescribeQuorumResponse.PartitionData(
            leader_id=1, current_voters=[voter], observers=[observer]
        )
        topic = DescribeQuorumResponse.TopicData(
            topic_name="__cluster_metadata", partitions=[partition]
        )
        listener = DescribeQuorumResponse.Listener(name="CONTROLLER", host="h", port=1)
        node = DescribeQuorumResponse.Node(node_id=1, listeners=[listener])
        return DescribeQuorumResponse(topics=[topic], nodes=[node])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_is_answered(version: int) -> None:
    handler = DescribeQuorumHandler(cast(RaftService, FakeRaft()))
    context = RequestContext(ApiKey.DESCRIBE_QUORUM, version)
    response = asyncio.run(handler.handle(context, DescribeQuorumRequest()))
    told = decode(DescribeQuorumResponse, version, encode(response, version))
    (partition,) = told.topics[0].partitions
    (voter,), (observer,) = partition.current_voters, partition.observers
    assert (voter.replica_id, voter.log_end_offset) == (1, 9)
    assert (observer.replica_id, observer.log_end_offset) == (4, 8)
    assert len(told.nodes) == (1 if version == 2 else 0)
    assert voter.replica_directory_id == (DIRECTORY if version == 2 else ZERO_UUID)
