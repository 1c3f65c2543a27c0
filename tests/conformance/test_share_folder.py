"""One data folder, two brokers: a share group goes on where the other broker has stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from support.either import create_and_wait
from support.processes import apache_kafka, kafka_missing, moldau
from support.raw import RawConnection
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

START_OFFSET = 5


def altered(to: RawConnection) -> bool:
    request = AlterShareGroupOffsetsRequest
    partition = request.AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=START_OFFSET
    )
    topic = request.AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[partition])
    made = request(group_id="g", topics=[topic])
    answer = to.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, made)
    # The coordinator of the share state may not serve yet: that is told of the partition.
    return bool(
        answer.error_code == ErrorCode.NONE
        and answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    )


def offsets(to: RawConnection) -> dict[int, int] | None:
    request = DescribeShareGroupOffsetsRequest
    wanted = request.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    (group,) = to.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request(groups=[wanted])).groups
    if group.error_code != ErrorCode.NONE or not group.topics:
        return None
    return {each.partition_index: each.start_offset for each in group.topics[0].partitions}


def heartbeat(to: RawConnection, epoch: int) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        subscribed_topic_names=["t"] if epoch == 0 else None,
    )
    return to.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)


def joined_with_everything(to: RawConnection) -> int:
    """The epoch of a member that has both partitions."""
    epoch = heartbeat(to, 0).member_epoch

    def assigned() -> int:
        answer = heartbeat(to, epoch)
        topics = answer.assignment.topic_partitions if answer.assignment else []
        return int(answer.member_epoch) if topics and len(topics[0].partitions) == 2 else 0

    return eventually(assigned, what="both partitions are assigned")


def described(to: RawConnection) -> str:
    answer = to.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, ShareGroupDescribeRequest(group_ids=["g"]))
    return repr(answer)


@pytest.mark.long("both brokers start twice; test_kafka_folder moves a whole directory")
@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param(apache_kafka, moldau, id="to Moldau"),
     pytest.param(moldau, apache_kafka, id="to Kafka", marks=pytest.mark.long("the way back"))],
)  # fmt: skip
def test_a_share_group_moves_between_brokers(first: Any, second: Any, tmp_path: Path) -> None:
    with first(tmp_path) as broker, RawConnection(broker.port) as to:
        create_and_wait(to, "t", 2)
        to.call(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=["g"]))
        eventually(lambda: altered(to), what="the start offset is set")
        epoch = joined_with_everything(to)
        assert offsets(to) == {0: START_OFFSET, 1: -1}
        before = described(to)
    with second(tmp_path) as broker, RawConnection(broker.port) as to:
        eventually(lambda: offsets(to) == {0: START_OFFSET, 1: -1}, what="the offsets are there")
        assert described(to) == before
        # Also the hash of the topics is the same, or the group would have to rebalance.
        assert heartbeat(to, epoch).member_epoch == epoch
