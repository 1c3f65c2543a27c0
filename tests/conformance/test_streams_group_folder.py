"""Streams groups move with their folder: members go on under the other broker as if nothing was.

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
from moldau.wire.messages import StreamsGroupDescribeRequest
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Heartbeat
from support.both import READY_SECONDS_MAX, Side, prepare
from support.processes import BrokerProcess, apache_kafka, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

SETTINGS = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.num.standby.replicas": "1",
    # Longer than any of this takes, however slow the machine is.
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.session.timeout.ms": "600000",
}
TOPOLOGY = Heartbeat.Topology(
    epoch=0,
    subtopologies=[
        Heartbeat.Subtopology(
            subtopology_id="0",
            source_topics=["t"],
            state_changelog_topics=[Heartbeat.TopicInfo(name="log")],
        )
    ],
)


class Group:
    def __init__(self, broker: BrokerProcess) -> None:
        self.side = Side(broker.port)
        prepare(self.side, [("t", 4)])

    def beat(self, member: str, epoch: int, active: list[int] | None = None, **fields: Any) -> Any:
        if active is not None:
            fields["active_tasks"] = _ids(active)
            fields["standby_tasks"] = _ids(fields.pop("standby", []))
            fields["warmup_tasks"] = []
        request = Heartbeat(group_id="g", member_id=member, member_epoch=epoch, **fields)
        answer = self.side.connection("x").call(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)
        assert answer.error_code == ErrorCode.NONE, answer
        return answer

    def join(self, member: str) -> Any:
        return self.beat(
            member,
            0,
            [],
            process_id=f"process-{member}",
            rebalance_timeout_ms=300_000,
            topology=TOPOLOGY,
            user_endpoint=Heartbeat.Endpoint(host=member, port=9),
            client_tags=[Heartbeat.KeyValue(key="zone", value=member)],
        )

    def described(self) -> dict[str, Any]:
        request = StreamsGroupDescribeRequest(group_ids=["g"])
        answer = self.side.connection("x").call(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request)
        assert answer.groups[0].error_code == ErrorCode.NONE, answer
        described: dict[str, Any] = self.side.comparable(answer.groups[0])
        return described

    def settle(self) -> None:
        """Heartbeats of members that have what they were given."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while (group := self.described())["group_state"] != "Stable":
            assert time.monotonic() < deadline, group
            for member in group["members"]:
                assigned = member["assignment"]
                self.beat(
                    member["member_id"],
                    member["member_epoch"],
                    _partitions(assigned["active_tasks"]),
                    standby=_partitions(assigned["standby_tasks"]),
                )


def _ids(partitions: list[int]) -> list[Heartbeat.TaskIds]:
    return [Heartbeat.TaskIds(subtopology_id="0", partitions=partitions)] if partitions else []


def _partitions(tasks: list[dict[str, Any]]) -> list[int]:
    return [partition for each in tasks for partition in each["partitions"]]


@pytest.mark.long("starts Apache Kafka twice; records are compared in test_cli_dump_log")
def test_there_and_back(tmp_path: Path) -> None:
    with apache_kafka(tmp_path, SETTINGS) as kafka:
        group = Group(kafka)
        group.join("a")
        group.settle()
        # One more wants a part of what `a` has; `a` was asked, and has not given it up yet.
        group.join("b")
        epoch = group.described()["members"][0]["member_epoch"]
        kept = group.beat("a", epoch, [0, 1, 2, 3]).active_tasks[0].partitions
        before = group.described()
        assert before["group_state"] == "Reconciling"
        group.side.close()

    command = [sys.executable, "-m", "moldau.cli", "server-start"]
    config = str(tmp_path / "server.properties")
    with BrokerProcess([*command, config], kafka.port, tmp_path / "moldau.log") as ours:
        group = Group(ours)
        assert group.described() == before
        assert group.beat("b", before["group_epoch"]).active_tasks is None
        assert group.beat("a", epoch, kept).member_epoch == before["group_epoch"]
        group.settle()
        settled = group.described()
        assert sorted(_partitions(settled["members"][0]["assignment"]["active_tasks"])) == kept
        group.join("c")
        group.settle()
        group.beat("b", -1)
        after = group.described()
        group.side.close()

    with BrokerProcess(kafka.command, kafka.port, tmp_path / "kafka2.log") as again:
        group = Group(again)
        found = group.described()
        assert found["members"] == after["members"]
        assert (found["group_epoch"], found["group_state"]) == (after["group_epoch"], "Assigning")
        group.settle()
        # Kafka resolves the topology of a loaded group with its next heartbeat.
        assert group.described()["topology"] == after["topology"]
        for member in group.described()["members"]:
            group.beat(member["member_id"], -1)
        assert group.described()["group_state"] == "Empty"
        group.side.close()
