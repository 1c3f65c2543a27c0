"""Our broker's side of the protocol with the controller, against Apache Kafka's controller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from moldau.broker.controller_channel import ControllerChannel, ControllerNode
from moldau.broker.forwarding import ForwardingManager
from moldau.broker.lifecycle.machine.events import BrokerState
from moldau.broker.lifecycle.machine.lifecycle import BrokerLifecycle, Identity
from moldau.broker.lifecycle.shell import BrokerLifecycleManager
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.clock import LoopClock
from moldau.peers.node_channel import NodeTransport
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from support.channels import transport, until
from support.processes import apache_kafka, kafka_missing

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


class Kafka(NamedTuple):
    broker_port: int
    controller_port: int


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    with apache_kafka(folder) as process:
        properties = (folder / "server.properties").read_text()
        quorum = properties.split("controller.quorum.bootstrap.servers=127.0.0.1:")[1]
        yield Kafka(process.port, int(quorum.split()[0]))


@asynccontextmanager
async def way(kafka: Kafka) -> AsyncIterator[tuple[NodeTransport, ControllerChannel]]:
    channels = transport(LoopClock())
    node = ControllerNode(1, "127.0.0.1", kafka.controller_port, "CONTROLLER")
    channel = ControllerChannel(channels, lambda: node, LoopClock(), request_timeout_ms=30_000)
    try:
        async with asyncio.timeout(60):
            yield channels, channel
    finally:
        channel.close()
        channels.close()


def asking(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(
        key, version, 4711, "an app", principal="User:alice", client_host="10.0.0.7"
    )


def topics(*names: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=2, replication_factor=1) for name in names],
        timeout_ms=30_000,
    )


def test_forwarded_requests_are_understood_and_answered(kafka: Kafka) -> None:
    async def scenario() -> None:
        async with way(kafka) as (_, channel):
            forward = ForwardingManager(channel).forward
            for version in range(2, 8):
                context = asking(ApiKey.CREATE_TOPICS, version)
                response = await forward(context, topics(f"v{version}"))
                assert isinstance(response, CreateTopicsResponse)
                assert [topic.error_code for topic in response.topics] == [0]
            again = await forward(asking(ApiKey.CREATE_TOPICS, 7), topics("v7", "bad/name"))
            assert isinstance(again, CreateTopicsResponse)
            assert {topic.name: topic.error_code for topic in again.topics} == {
                "v7": ErrorCode.TOPIC_ALREADY_EXISTS,
                "bad/name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            }
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=2,
                resource_name="v7",
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(
                        name="retention.ms", config_operation=0, value="1000"
                    )
                ],
            )
            altered = await forward(
                asking(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1),
                IncrementalAlterConfigsRequest(resources=[resource]),
            )
            assert isinstance(altered, IncrementalAlterConfigsResponse)
            assert [each.error_code for each in altered.responses] == [0]
            quorum = DescribeQuorumRequest.TopicData(
                topic_name="__cluster_metadata",
                partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)],
            )
            described = await forward(
                asking(ApiKey.DESCRIBE_QUORUM, 2), DescribeQuorumRequest(topics=[quorum])
            )
            assert isinstance(described, DescribeQuorumResponse)
            assert described.topics[0].partitions[0].leader_id == 1

    asyncio.run(scenario())


def test_what_is_not_to_be_forwarded_is_refused_as_here(kafka: Kafka) -> None:
    async def scenario() -> None:
        async with way(kafka) as (_, channel):
            forward = ForwardingManager(channel).forward
            # The envelope's INVALID_REQUEST is nothing that the client could make sense of.
            refused = await forward(asking(ApiKey.DESCRIBE_CLUSTER, 2), DescribeClusterRequest())
            assert isinstance(refused, DescribeClusterResponse)
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(scenario())


def lifecycle(
    channel: ControllerChannel,
    failures: list[BaseException],
    *,
    run: int,
    cluster_id: str = CLUSTER_ID,
    registration_timeout_ms: int = 60_000,
) -> BrokerLifecycleManager:
    identity = Identity(
        broker_id=7,
        cluster_id=cluster_id,
        incarnation_id=UUID(int=run),
        endpoints=(Endpoint(name="PLAINTEXT", host="127.0.0.1", port=9),),
        features={
            name: (each.min_version, each.max_version) for name, each in SUPPORTED_FEATURES.items()
        },
        log_dirs=(UUID(int=1_000), UUID(int=1_001)),
    )
    machine = BrokerLifecycle(
        identity, heartbeat_interval_ms=50, registration_timeout_ms=registration_timeout_ms
    )
    return BrokerLifecycleManager(
        machine,
        channel,
        LoopClock(),
        session_timeout_ms=9_000,
        # It takes over everything at once.
        metadata_offset=lambda: machine.broker_epoch + 1_000_000,
        cordoning_supported=lambda: True,
        on_failure=failures.append,
    )


async def brokers(channels: NodeTransport, kafka: Kafka) -> dict[int, bool]:
    """Who is in the cluster, and whether fenced."""
    channel = channels.channel(1, "127.0.0.1", kafka.broker_port, "PLAINTEXT")
    request = DescribeClusterRequest(include_fenced_brokers=True)
    response: Message = await channel.call(ApiKey.DESCRIBE_CLUSTER, request, timeout_ms=30_000)
    channel.close()
    assert isinstance(response, DescribeClusterResponse)
    return {broker.broker_id: broker.is_fenced for broker in response.brokers}


def test_a_broker_joins_serves_and_leaves(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "moldau")

    async def scenario() -> None:
        async with way(kafka) as (channels, channel):
            failures: list[BaseException] = []
            manager = lifecycle(channel, failures, run=1)
            manager.start()
            await manager.caught_up
            assert (await brokers(channels, kafka)).get(7, True)
            manager.propagate_directories_cordoned(frozenset({UUID(int=1_000)}))
            manager.set_ready_to_unfence()
            await manager.unfenced
            while (await brokers(channels, kafka)).get(7, True):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            manager.propagate_directory_failure(UUID(int=1_001), timeout_ms=20_000)
            manager.resend_registration()
            await _refused_while_another_lives(channel)
            assert manager.state is BrokerState.RUNNING
            manager.begin_controlled_shutdown(30_000)
            await manager.stopped
            assert failures == []
            while not (await brokers(channels, kafka))[7]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    asyncio.run(scenario())
    lines = [record.message for record in caplog.records if "lifecycle" in record.name]
    assert "controlled shutdown complete" in lines
    assert any("DUPLICATE_BROKER_REGISTRATION" in line for line in lines)
    assert any("INCONSISTENT_CLUSTER_ID" in line for line in lines)


async def _refused_while_another_lives(channel: ControllerChannel) -> None:
    for cluster_id, error in (
        (CLUSTER_ID, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        ("AAAAAAAAAAAAAAAAAAAAAA", ErrorCode.INCONSISTENT_CLUSTER_ID),
    ):
        failures: list[BaseException] = []
        other = lifecycle(
            channel, failures, run=2, cluster_id=cluster_id, registration_timeout_ms=5_000
        )
        other.start()
        await until(lambda failures=failures: bool(failures))  # type: ignore[misc]
        assert error.name in str(failures[0])


def test_a_version_that_no_controller_knows_closes_the_connection(kafka: Kafka) -> None:
    class Newer(ControllerChannel):
        """The request says a version that it has not."""

        async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
            data = bytearray(request.request_data)  # type: ignore[attr-defined]
            data[3] = 99
            request.request_data = bytes(data)  # type: ignore[attr-defined]
            return await super().call(key, request, timeout_ms=timeout_ms)

    async def scenario() -> None:
        async with way(kafka) as (channels, _):
            node = ControllerNode(1, "127.0.0.1", kafka.controller_port, "CONTROLLER")
            newer = Newer(channels, lambda: node, LoopClock(), request_timeout_ms=30_000)
            with pytest.raises(InvalidRequest, match="CreateTopics v7"):
                await ForwardingManager(newer).forward(
                    asking(ApiKey.CREATE_TOPICS, 7), topics("never")
                )
            newer.close()

    asyncio.run(scenario())
