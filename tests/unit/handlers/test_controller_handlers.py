"""What brokers and operators ask the controller, from the request to the answer on the wire."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.handlers.allocate_producer_ids import AllocateProducerIdsHandler
from moldau.broker.handlers.alter_partition import AlterPartitionHandler
from moldau.broker.handlers.alter_partition_reassignments import (
    AlterPartitionReassignmentsHandler,
)
from moldau.broker.handlers.assign_replicas_to_dirs import AssignReplicasToDirsHandler
from moldau.broker.handlers.broker_heartbeat import BrokerHeartbeatHandler
from moldau.broker.handlers.broker_registration import BrokerRegistrationHandler
from moldau.broker.handlers.controller_registration import ControllerRegistrationHandler
from moldau.broker.handlers.elect_leaders import ElectLeadersHandler
from moldau.broker.handlers.list_partition_reassignments import (
    ListPartitionReassignmentsHandler,
)
from moldau.broker.handlers.unregister_broker import UnregisterBrokerHandler
from moldau.broker.handlers.update_features import UpdateFeaturesHandler
from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.machine.activation import activate
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.topics import create_topics
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.broker.network.context import ConnectionInfo
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Rules:
    """Everything may be set."""

    def __getattr__(self, name: str) -> Callable[..., list[Any]]:
        return lambda *values, **named: []


class Context:
    def __init__(self, api_version: int) -> None:
        self.api_version = api_version
        self.connection = ConnectionInfo()


class Metadata:
    """A metadata shell whose log commits at once, and that may have lost its lead."""

    def __init__(self) -> None:
        config = ControllerConfig(node_id=1, cluster_id=CLUSTER_ID)
        rules: Any = Rules()
        self.controller = Controller(config, rules, random.Random(3))
        self.leads = True
        self.apply(activate(self.controller, default_bootstrap_records()))
        self.controller.lead(0)

    def apply(self, decision: Decision[Any]) -> Any:
        self.controller.replay(decision.records, base_offset=self.controller.next_offset)
        return decision.response

    async def run(self, decide: Callable[..., Decision[Any]], *args: Any, **options: Any) -> Any:
        if not self.leads:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")
        return self.apply(decide(self.controller, *args, **options))


class Stage:
    def __init__(self) -> None:
        self.metadata = metadata = Metadata()
        shell: Any = metadata
        self.now_ms = 0
        self.handlers: dict[type[Message], Any] = {
            AllocateProducerIdsRequest: AllocateProducerIdsHandler(shell),
            AlterPartitionRequest: AlterPartitionHandler(shell),
            AlterPartitionReassignmentsRequest: AlterPartitionReassignmentsHandler(shell),
            AssignReplicasToDirsRequest: AssignReplicasToDirsHandler(shell),
            BrokerHeartbeatRequest: BrokerHeartbeatHandler(
                shell, elapsed_ms=lambda: self.now_ms, on_heartbeat=lambda *_: None
            ),
            BrokerRegistrationRequest: BrokerRegistrationHandler(
                shell, elapsed_ms=lambda: self.now_ms
            ),
            ControllerRegistrationRequest: ControllerRegistrationHandler(shell),
            ElectLeadersRequest: ElectLeadersHandler(shell),
            ListPartitionReassignmentsRequest: ListPartitionReassignmentsHandler(shell),
            UnregisterBrokerRequest: UnregisterBrokerHandler(shell),
            UpdateFeaturesRequest: UpdateFeaturesHandler(shell),
        }

    @property
    def image(self) -> Any:
        return self.metadata.controller.image

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The answer as it comes out of the wire again."""
        if version is None:
            version = type(request).HIGHEST_VERSION
        request = decode(type(request), version, encode(request, version))
        response = asyncio.run(self.handlers[type(request)].handle(Context(version), request))
        return decode(type(response), version, encode(response, version))

    def join(self, broker_id: int, incarnation: int | None = None) -> int:
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=broker_id * 1000 if incarnation is None else incarnation),
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[UUID(int=broker_id * 1000)],
        )
        epoch = (self.ask(request)).broker_epoch
        answer = self.ask(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=epoch,
                current_metadata_offset=self.metadata.controller.next_offset - 1,
            )
        )
        assert not answer.is_fenced
        return int(epoch)


@pytest.fixture
def stage() -> Stage:
    """Brokers 1, 2 and 3 alive; topic t on 1 and 2."""
    made = Stage()
    for broker_id in (1, 2, 3):
        made.join(broker_id)
    topic = CreateTopicsRequest.CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
        ],
    )
    request = CreateTopicsRequest(topics=[topic])
    made.metadata.apply(create_topics(made.metadata.controller, request))
    return made


def test_a_restarted_broker_waits_until_its_old_session_is_over(stage: Stage) -> None:
    with pytest.raises(ApiError) as caught:
        stage.join(2, incarnation=77)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    stage.now_ms = 9_001
    assert stage.join(2, incarnation=77) == stage.image.brokers[2].epoch


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_proposes_an_isr(stage: Stage, version: int) -> None:
    topic = stage.image.topics_by_name["t"]
    data = AlterPartitionRequest
    change = data.PartitionData(partition_index=0, leader_epoch=0, partition_epoch=0)
    if version == 2:
        change.new_isr = [1]
    else:
        change.new_isr_with_epochs = [data.BrokerState(broker_id=1, broker_epoch=-1)]
    request = data(
        broker_id=1,
        broker_epoch=stage.image.brokers[1].epoch,
        topics=[data.TopicData(topic_id=topic.id, partitions=[change])],
    )
    answer = (stage.ask(request, version)).topics[0].partitions[0]
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, [1], 1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elections_are_answered_in_every_version(stage: Stage, version: int) -> None:
    wanted = ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0, 5])
    request = ElectLeadersRequest(topic_partitions=[wanted])

    def codes() -> list[str]:
        answer = stage.ask(request, version)
        if version > 0:
            top.append(ErrorCode(answer.error_code).name)
        results = answer.replica_election_results[0].partition_result
        return [ErrorCode(result.error_code).name for result in results]

    top: list[str] = []
    assert codes() == ["ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION"]
    stage.metadata.leads = False
    assert codes() == ["NOT_CONTROLLER", "NOT_CONTROLLER"]
    assert top == ([] if version == 0 else ["NONE", "NOT_CONTROLLER"])


def test_a_move_is_listed_until_it_is_cancelled(stage: Stage) -> None:
    data = AlterPartitionReassignmentsRequest

    def move(replicas: list[int] | None) -> None:
        wanted = data.ReassignablePartition(partition_index=0, replicas=replicas)
        topics = [data.ReassignableTopic(name="t", partitions=[wanted])]
        answer = stage.ask(data(topics=topics))
        assert answer.responses[0].partitions[0].error_code == 0

    move([3, 1])
    listed = stage.ask(ListPartitionReassignmentsRequest(topics=None))
    assert [each.adding_replicas for each in listed.topics[0].partitions] == [[3]]
    move(None)
    assert (stage.ask(ListPartitionReassignmentsRequest(topics=None))).topics == []


def test_folders_features_controllers_and_leaving(stage: Stage) -> None:
    data = AssignReplicasToDirsRequest
    partitions = [data.PartitionData(partition_index=0)]
    topics = [data.TopicData(topic_id=stage.image.topics_by_name["t"].id, partitions=partitions)]
    request = data(
        broker_id=1,
        broker_epoch=stage.image.brokers[1].epoch,
        directories=[data.DirectoryData(id=UUID(int=1000), topics=topics)],
    )
    answer = stage.ask(request)
    assert answer.directories[0].topics[0].partitions[0].error_code == 0

    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="group.version", max_version_level=0, upgrade_type=2
    )
    answer = stage.ask(UpdateFeaturesRequest(feature_updates=[update]))
    assert (answer.error_code, answer.error_message) == (0, None)

    answer = stage.ask(ControllerRegistrationRequest(controller_id=7))
    assert (answer.error_code, list(stage.image.controllers)) == (0, [7])

    answer = stage.ask(UnregisterBrokerRequest(broker_id=3))
    assert (answer.error_code, sorted(stage.image.brokers)) == (0, [1, 2])
    with pytest.raises(ApiError) as caught:
        stage.ask(UnregisterBrokerRequest(broker_id=3))
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_blocks_of_producer_ids_do_not_overlap(stage: Stage) -> None:
    blocks = []
    for broker_id in (1, 2):
        epoch = stage.image.brokers[broker_id].epoch
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        answer = stage.ask(request)
        blocks.append(range(answer.producer_id_start, answer.producer_id_start + 1_000))
        assert answer.producer_id_len == 1_000
    assert not set(blocks[0]) & set(blocks[1])
    with pytest.raises(ApiError) as caught:
        stage.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=-1))
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
