"""Replication as a broker starts it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from moldau.broker.config import BrokerConfig
from moldau.broker.replication.fetchers import FetcherSettings
from moldau.broker.replication.service import ReplicationService
from moldau.peers.channel import Transport
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import AlterPartitionRequest, AlterPartitionResponse
from support.hosting import NODE_ID, OTHER_NODE_ID, Host, VirtualLoop

LAG_MS = 20_000


def config_of(folder: Path) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": str(NODE_ID),
            "controller.quorum.voters": f"{NODE_ID}@localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "log.dirs": str(folder),
            "replica.lag.time.max.ms": str(LAG_MS),
            "replica.fetch.max.bytes": "77",
        }
    )


def test_settings_are_those_of_the_broker(tmp_path: Path) -> None:
    settings = FetcherSettings.of(config_of(tmp_path))
    assert settings == FetcherSettings(replica_fetch_max_bytes=77)


def test_who_is_not_heard_of_is_proposed_to_leave_until_the_controller_answers(
    tmp_path: Path,
) -> None:
    asked: list[AlterPartitionRequest] = []

    async def alter_partition(request: AlterPartitionRequest) -> AlterPartitionResponse:
        asked.append(request)
        if len(asked) == 1:
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        (topic,) = request.topics
        answer = AlterPartitionResponse.PartitionData(
            leader_id=NODE_ID, partition_epoch=1, isr=[NODE_ID]
        )
        if len(asked) == 2:
            answer = AlterPartitionResponse.PartitionData(error_code=ErrorCode.NOT_CONTROLLER)
        return AlterPartitionResponse(
            topics=[AlterPartitionResponse.TopicData(topic_id=topic.topic_id, partitions=[answer])]
        )

    async def run() -> None:
        loop = VirtualLoop()
        service = ReplicationService(
            node_id=NODE_ID,
            transport=cast(Transport, None),
            clock=loop.clock,
            inter_broker_listener="PLAINTEXT",
            config=config_of(tmp_path).__getitem__,
            broker_epoch=lambda: 41,
            alter_partition=alter_partition,
        )
        host = Host(tmp_path / "logs", replication=service.replication)
        topic_id = host.create_topic("t", replicas=(NODE_ID, OTHER_NODE_ID))
        host.append("t", b"x")
        service.start(host.replicas)

        async def advance(ms: int) -> None:
            loop.advance(ms)
            for _ in range(10):
                await asyncio.sleep(0)

        await advance(LAG_MS)
        assert asked == []
        await advance(LAG_MS // 2)
        assert len(asked) == 1
        (request,) = asked
        assert (request.broker_id, request.broker_epoch) == (NODE_ID, 41)
        ((data,),) = (topic.partitions for topic in request.topics)
        assert request.topics[0].topic_id == topic_id
        assert [each.broker_id for each in data.new_isr_with_epochs] == [NODE_ID]
        await advance(50)
        assert len(asked) == 2
        assert host.partition("t").high_watermark == 0
        await advance(50)
        assert len(asked) == 3
        assert (host.partition("t").high_watermark, host.partition("t").partition_epoch) == (1, 1)
        await service.stop()
        await advance(LAG_MS)

    asyncio.run(run())


def test_a_failure_while_one_partition_is_checked_or_answered_is_its_own(tmp_path: Path) -> None:
    """Neither the checks nor the requests end with it: a leader proposes nothing else before it has
    its response."""
    asked: list[set[int]] = []

    async def alter_partition(request: AlterPartitionRequest) -> AlterPartitionResponse:
        (topic,) = request.topics
        asked.append({each.partition_index for each in topic.partitions})
        if len(asked) == 1:
            raise RuntimeError("a bug on the way to the controller")
        answers = [
            AlterPartitionResponse.PartitionData(
                partition_index=each.partition_index,
                leader_id=NODE_ID,
                partition_epoch=1,
                isr=[NODE_ID],
            )
            for each in topic.partitions
        ]
        return AlterPartitionResponse(
            topics=[AlterPartitionResponse.TopicData(topic_id=topic.topic_id, partitions=answers)]
        )

    def fail(error: ErrorCode) -> None:
        raise RuntimeError("a bug in what waits for the commit")

    async def run() -> None:
        loop = VirtualLoop()
        service = ReplicationService(
            node_id=NODE_ID,
            transport=cast(Transport, None),
            clock=loop.clock,
            inter_broker_listener="PLAINTEXT",
            config=config_of(tmp_path).__getitem__,
            broker_epoch=lambda: 41,
            alter_partition=alter_partition,
        )
        host = Host(tmp_path / "logs", replication=service.replication)
        host.create_topic("t", partitions=3, replicas=(NODE_ID, OTHER_NODE_ID))
        for index in range(3):
            host.append("t", b"x", index=index)
        service.start(host.replicas)
        # The first cannot even be checked; the second fails when its response arrives.
        host.partition("t", 0)._surroundings = cast(Any, None)
        host.partition("t", 1).when_committed(1, fail)
        for ms in (LAG_MS, LAG_MS // 2, 50, LAG_MS):
            loop.advance(ms)
            for _ in range(10):
                await asyncio.sleep(0)
        assert asked == [{1, 2}, {1, 2}]
        assert [host.partition("t", index).high_watermark for index in range(3)] == [0, 1, 1]
        await service.stop()

    asyncio.run(run())
