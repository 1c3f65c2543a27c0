"""Produce requests and what their responses say of each batch."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.client import errors
from moldau.client.machine.metadata import EMPTY
from moldau.client.producer.machine.produce import produce_request, read_produce_response
from moldau.client.topics import TopicPartition
from moldau.peers.channel import RawResponse
from moldau.wire.codec import encode
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ProduceResponse
from moldau.wire.records import decode_batch, read_header
from support.producer_stage import Stage, picture

ID = UUID(int=1)


@pytest.mark.parametrize(
    ("known", "transactional_id", "is_v2", "max_version"),
    [
        pytest.param(True, None, True, None, id="ids are known"),
        pytest.param(False, None, True, 12, id="a topic without id goes by its name"),
        pytest.param(True, "x", False, 11, id="transactions of version 1"),
        pytest.param(True, "x", True, None, id="transactions of version 2"),
    ],
)
def test_requests(
    known: bool, transactional_id: str | None, is_v2: bool, max_version: int | None
) -> None:
    stage = Stage({"t": [1, 1]})
    batches = [stage.batch(partition=index) for index in range(2)]
    batches[1].set_producer_state(7, 1, 5)
    request, found_max, names = produce_request(
        batches,
        picture=picture({"t": [1, 1]}) if known else EMPTY,
        acks=-1,
        timeout_ms=100,
        transactional_id=transactional_id,
        is_v2=is_v2,
    )
    assert found_max == max_version
    (topic,) = request.topic_data
    assert (topic.name, [each.index for each in topic.partition_data]) == ("t", [0, 1])
    assert names["t"] == names[topic.topic_id] == "t"
    records = topic.partition_data[1].records
    assert records is not None
    header = read_header(records)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 5)
    assert header.is_transactional is (transactional_id is not None)
    assert [record.value for record in decode_batch(records)] == [bytes(10)]


def test_responses() -> None:
    partition = ProduceResponse.PartitionProduceResponse
    response = ProduceResponse(
        throttle_time_ms=5,
        responses=[
            ProduceResponse.TopicProduceResponse(
                topic_id=ID,
                partition_responses=[
                    partition(index=0, base_offset=3, log_append_time_ms=9, log_start_offset=1),
                    partition(
                        index=1,
                        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        current_leader=ProduceResponse.LeaderIdAndEpoch(
                            leader_id=2, leader_epoch=8
                        ),
                    ),
                ],
            ),
            ProduceResponse.TopicProduceResponse(
                topic_id=UUID(int=99), partition_responses=[partition(index=0)]
            ),
        ],
        node_endpoints=[ProduceResponse.NodeEndpoint(node_id=2, host="h", port=1)],
    )
    raw = RawResponse(13, memoryview(encode(response, 13)))
    answer = read_produce_response(raw, {"t": "t", ID: "t"})
    first, second = answer.partitions[TopicPartition("t", 0)], TopicPartition("t", 1)
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 3, 9)
    assert answer.leaders == {second: (2, 8)}
    assert answer.nodes == [(2, "h", 1, None)]
    assert answer.throttle_time_ms == 5
    assert len(answer.partitions) == 2


@pytest.mark.parametrize(
    ("bad", "kinds"),
    [
        ([0], [errors.InvalidTimestampError]),
        ([0, 2], [errors.InvalidRecordError, errors.InvalidRecordError]),
    ],
)
def test_errors_of_records(bad: list[int], kinds: list[type[Exception]]) -> None:
    response = ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name="t",
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        index=0,
                        error_code=ErrorCode.INVALID_TIMESTAMP,
                        error_message="of the batch",
                        record_errors=[
                            ProduceResponse.BatchIndexAndErrorMessage(batch_index=index)
                            for index in bad
                        ],
                    )
                ],
            )
        ]
    )
    answer = read_produce_response(RawResponse(9, memoryview(encode(response, 9))), {"t": "t"})
    found = answer.partitions[TopicPartition("t", 0)].record_errors
    assert found is not None
    assert list(found) == bad
    assert [type(error) for error in found.values()] == kinds
    assert "of the batch" in str(found[bad[0]])
