"""The topic in which share partitions have their state stays small, and a restart finds them all.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
)
from support import asking
from support.either import create_and_wait, either_broker
from support.raw import RawConnection
from support.waiting import eventually

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.prune.interval.ms": "200",
    "share.coordinator.cold.partition.snapshot.interval.ms": "500",
}
STATE_TOPIC = "__share_group_state"
ROUND_COUNT = 10


def altered(to: RawConnection, group: str, offset: int) -> bool:
    request = AlterShareGroupOffsetsRequest
    answer = to.call(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        request(
            group_id=group,
            topics=[
                request.AlterShareGroupOffsetsRequestTopic(
                    topic_name="t",
                    partitions=[
                        request.AlterShareGroupOffsetsRequestPartition(
                            partition_index=0, start_offset=offset
                        )
                    ],
                )
            ],
        ),
    )
    return bool(
        answer.error_code == ErrorCode.NONE
        and answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    )


def alter(to: RawConnection, group: str, offset: int) -> None:
    """As a client does: find the coordinator, which makes its topic, and ask until it serves."""
    to.call(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=[group]))
    eventually(lambda: altered(to, group, offset), what=f"{group} is at {offset}")


def start_offset(to: RawConnection, group: str) -> int:
    request = DescribeShareGroupOffsetsRequest
    wanted = request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    answer = to.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request(groups=[wanted]))
    (group_answer,) = answer.groups
    if group_answer.error_code != ErrorCode.NONE or not group_answer.topics:
        return -1
    return int(group_answer.topics[0].partitions[0].start_offset)


def earliest(to: RawConnection) -> int:
    return int(asking.list_offset(to, STATE_TOPIC, 0, asking.EARLIEST).offset)


def test_old_states_are_pruned_and_no_current_one_is_missed(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    broker = either_broker(request, tmp_path, SETTINGS)
    with broker, RawConnection(broker.port) as to:
        create_and_wait(to, "t")
        alter(to, "idle", 5)
        for offset in range(ROUND_COUNT):
            alter(to, "busy", offset)
        # The idle group's only record would keep all the others: it is written anew.
        eventually(lambda: earliest(to) > ROUND_COUNT, what="the records of old are gone")
    with broker, RawConnection(broker.port) as to:
        eventually(lambda: start_offset(to, "idle") == 5, what="the idle group is known")
        assert start_offset(to, "busy") == ROUND_COUNT - 1
        assert earliest(to) > ROUND_COUNT
