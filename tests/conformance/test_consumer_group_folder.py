"""Consumer groups move with their folder: members go on under the other broker as if nothing was.

Kafka, then Moldau, then Kafka again on the same files. What one broker described before it
stopped the next describes after it started, and the members' epochs are good everywhere.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    OffsetFetchRequest,
)
from support.both import READY_SECONDS_MAX, Side, prepare
from support.processes import BrokerProcess, apache_kafka, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOPICS = [("t", 2), ("u", 1), ("v", 1)]
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    # Longer than any of this takes, however slow the machine is.
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}


class Group:
    def __init__(self, broker: BrokerProcess) -> None:
        self.side = Side(broker.port)
        prepare(self.side, TOPICS)

    def beat(
        self, member: str, epoch: int, owned: dict[str, list[int]] | None = None, **fields: Any
    ) -> Any:
        topics = None
        if owned is not None:
            topics = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=self.side.topic_ids[name], partitions=partitions
                )
                for name, partitions in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, topic_partitions=topics, **fields
        )
        answer = self.side.connection("x").call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
        assert answer.error_code == ErrorCode.NONE, answer
        return answer

    def join(self, member: str, **fields: Any) -> Any:
        return self.beat(member, 0, {}, rebalance_timeout_ms=300_000, **fields)

    def described(self) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        answer = self.side.connection("x").call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)
        assert answer.groups[0].error_code == ErrorCode.NONE, answer
        return self.side.comparable(answer.groups[0])

    def offsets(self) -> Any:
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id="g", member_id="a", member_epoch=2, topics=None
                )
            ]
        )
        answer = self.side.connection("x").call(ApiKey.OFFSET_FETCH, 9, request)
        assert answer.groups[0].error_code == ErrorCode.NONE, answer
        return answer.groups[0]

    def until_epoch(self, epoch: int) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while self.described()["group_epoch"] != epoch:
            assert time.monotonic() < deadline


@pytest.mark.long(
    "starts Apache Kafka twice; what is written is compared in test_same_consumer_answers"
)
@pytest.mark.slow("Apache Kafka starts twice, and Moldau in between")
def test_there_and_back(tmp_path: Path) -> None:
    with apache_kafka(tmp_path, SETTINGS) as kafka:
        group = Group(kafka)
        assert group.join("a", subscribed_topic_names=["t"], rack_id="r").member_epoch == 2
        group.join("r", subscribed_topic_regex="u|none")
        group.until_epoch(3)
        group.join("s1", subscribed_topic_names=["v"], instance_id="s", server_assignor="range")
        group.beat("r", 2)
        group.beat("s1", -2, instance_id="s")
        # One more wants a part of what `a` has; `a` was asked, and has not given it up yet.
        group.join("b", subscribed_topic_names=["t"])
        kept = group.beat("a", 2, {"t": [0, 1]})
        (topic,) = kept.assignment.topic_partitions
        group.offsets()
        before = group.described()
        group.side.close()

    command = [sys.executable, "-m", "moldau.cli", "server-start"]
    config = str(tmp_path / "server.properties")
    with BrokerProcess([*command, config], kafka.port, tmp_path / "moldau.log") as ours:
        group = Group(ours)
        assert group.described() == before
        group.offsets()
        assert before["group_state"] == "Reconciling"
        epoch = before["group_epoch"]
        assert group.beat("b", epoch).assignment is None
        assert group.beat("a", 2, {"t": topic.partitions}).member_epoch == epoch
        (given,) = group.beat("b", epoch).assignment.topic_partitions
        assert sorted(topic.partitions + given.partitions) == [0, 1]
        back = group.join("s2", subscribed_topic_names=["v"], instance_id="s")
        assert len(back.assignment.topic_partitions) == 1
        group.beat("r", next(e["member_epoch"] for e in _members(before) if e["member_id"] == "r"))
        assert group.described()["group_state"] == "Stable"
        group.beat("b", -1)
        group.join("n", subscribed_topic_regex="t|u")
        group.side.close()

    # As it was written: whether the expression was resolved before the end is a matter of time.
    with BrokerProcess([*command, config], kafka.port, tmp_path / "moldau2.log") as ours:
        group = Group(ours)
        after = group.described()
        group.side.close()

    with BrokerProcess(kafka.command, kafka.port, tmp_path / "kafka2.log") as again:
        group = Group(again)
        assert group.described() == after
        for member in _members(after):
            group.beat(
                member["member_id"], member["member_epoch"], instance_id=member["instance_id"]
            )
        for member in _members(group.described()):
            group.beat(member["member_id"], -1, instance_id=member["instance_id"])
        assert group.described()["group_state"] == "Empty"
        group.side.close()


def _members(described: Any) -> list[Any]:
    members: list[Any] = described["members"]
    return members
