"""The controller decides as Apache Kafka's: random lives of a cluster, told to both.

Ours is driven here, Kafka's by tests/java/ControllerDecisions.java. After every step the answers
and all brokers and partitions are the same, epochs and all.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.machine.activation import activate
from moldau.broker.metadata.machine.broker_lifecycle import process_heartbeat
from moldau.broker.metadata.machine.brokers import register_broker, unregister_broker
from moldau.broker.metadata.machine.configs import incremental_alter_configs
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.leadership import (
    elect_leaders,
    preferred_elections,
    unclean_elections,
)
from moldau.broker.metadata.machine.model import Broker, Partition, ResourceType, Topic
from moldau.broker.metadata.machine.partitions import alter_partition, assign_replicas_to_dirs
from moldau.broker.metadata.machine.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from moldau.broker.metadata.machine.topics import create_topics, delete_topics
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.broker.raft.machine.record_versions import record_version
from moldau.sim.metadata import AnyRules
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FeatureLevelRecord,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from moldau.wire.record_values import encode_metadata_record
from support.java import SOURCES
from support.kafka_controller import (
    KafkaController,
    KafkaIsBroken,
    broker_line,
    partition_line,
    remembers_former_replica,
    sorted_answer,
)
from support.processes import KAFKA_JARS, kafka_missing

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
SESSION_MS = 9_000
LIVES = 25
STEPS = 100
BROKERS = range(1, 6)


class Life:
    """One cluster, twice."""

    def __init__(self, kafka: KafkaController, seed: int, *, elr: bool) -> None:
        self.kafka = kafka
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.history: list[str] = []
        self.incarnations = 0
        # When a broker was last told to stop.
        self.goodbyes: dict[int, int] = {}
        config = ControllerConfig(
            node_id=0, cluster_id=CLUSTER_ID, broker_session_timeout_ms=SESSION_MS
        )
        self.controller = Controller(config, AnyRules(), self.rng)
        records = activate(self.controller, default_bootstrap_records()).records
        self.controller.replay(records, base_offset=0)
        kafka.ask(f"new {CLUSTER_ID} {SESSION_MS} {self.controller.next_offset}")
        for name, level in self.controller.image.features.items():
            self.tell([FeatureLevelRecord(name=name, feature_level=level)])
        if not elr:
            off = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)
            self.controller.replay([off], base_offset=self.controller.next_offset)
            self.tell([off])
        self.controller.lead(0)

    @property
    def topics(self) -> list[Topic]:
        return list(self.controller.image.topics_by_id.values())

    def tell(self, records: Sequence[Any]) -> None:
        """Kafka's controller reads what ours has written."""
        for record in records:
            version = record_version(record, self.controller.image.metadata_version)
            self.kafka.ask(f"replay 0 {encode_metadata_record(record, version).hex()}")

    def apply(self, decision: Decision[Any]) -> Any:
        self.controller.replay(decision.records, base_offset=self.controller.next_offset)
        return decision.response

    def both(
        self,
        command: str,
        version: int,
        request: Message,
        decide: Callable[[], Decision[Any]],
        response_type: type[Message],
    ) -> Any:
        self.history.append(f"{command} {request!r}")
        # A no-op that only one of them writes must not make epochs differ for ever.
        self.kafka.ask(f"offset 0 {self.controller.next_offset}")
        theirs = self.kafka.ask(f"{command} {version} {encode(request, version).hex()}")
        response: Any = None
        error = "NONE"
        try:
            response = self.apply(decide())
        except ApiError as refused:
            error = refused.code.name
        assert error == theirs.error, self.story()
        if theirs.response is not None:
            expected = decode(response_type, version, theirs.response)
            ours = decode(response_type, version, encode(response, version))
            assert sorted_answer(ours) == sorted_answer(expected), self.story()
        self.compare(theirs.state)
        return response

    def compare(self, state: list[str]) -> None:
        if any(remembers_former_replica(line) for line in state):
            raise KafkaIsBroken
        assert self.state() == state, self.story()

    def story(self) -> str:
        return "\n".join(self.history[-6:])

    def state(self) -> list[str]:
        brokers = sorted(self.controller.image.brokers.values(), key=lambda each: each.id)
        lines = [broker_line(broker) for broker in brokers]
        for topic in self.topics:
            lines += [
                partition_line(topic.id, index, partition)
                for index, partition in topic.partitions.items()
            ]
        return lines

    # What may happen --------------------------------------------------------------------

    def step(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (6, self.register),
            (30, self.heartbeat),
            (10, self.wait),
            (5, self.create),
            (16, self.alter),
            (5, self.elect),
            (8, self.reassign),
            (2, self.list),
            (3, self.assign),
            (1, self.unregister),
            (1, self.configure),
            (3, self.balance),
            (1, self.delete),
        ]
        weights, choices = zip(*actions, strict=True)
        self.rng.choices(choices, weights)[0]()

    def register(self) -> None:
        broker_id = self.rng.choice(BROKERS)
        existing = self.controller.image.brokers.get(broker_id)
        if self.now_ms - self.goodbyes.get(broker_id, -SESSION_MS - 1) <= SESSION_MS:
            # Kafka's waits until the session of a broker that stopped in order is over; ours not.
            return
        self.incarnations += 1
        previous = -1
        if existing is not None and self.rng.random() < 0.5:
            # The same where a broker proves that its former process stopped in order.
            alive = self.controller.has_session(existing, self.now_ms)
            previous = -1 if alive else existing.epoch
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=(
                existing.incarnation_id
                if existing is not None
                and not existing.in_controlled_shutdown
                and self.rng.random() < 0.1
                else UUID(int=self.incarnations)
            ),
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[UUID(int=broker_id * 1000 + number) for number in range(1 + broker_id % 2)],
            previous_broker_epoch=previous,
        )
        response = self.both(
            "register",
            4,
            request,
            lambda: register_broker(self.controller, request, now_ms=self.now_ms),
            BrokerRegistrationResponse,
        )
        if response is not None:
            self.beat_again(self.controller.image.brokers[broker_id])

    def heartbeat(self) -> None:
        broker = self.some_broker()
        if broker is None:
            return
        rng = self.rng
        want_fence = rng.random() < 0.05
        want_shut_down = rng.random() < (0.7 if broker.in_controlled_shutdown else 0.06)
        lost = []
        if rng.random() < 0.03 and not broker.fenced and not want_fence and not want_shut_down:
            # Together with another change Kafka's writes some partitions twice.
            lost = [rng.choice(broker.log_dirs)]
        request = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch - (rng.random() < 0.02),
            current_metadata_offset=(
                self.controller.next_offset - 1 if rng.random() < 0.8 else broker.epoch - 1
            ),
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=lost,
        )
        self.beat(request)

    def beat(self, request: BrokerHeartbeatRequest) -> None:
        self.pass_time(1)
        brokers = self.controller.image.brokers
        before = brokers[request.broker_id]
        response = self.both(
            "heartbeat",
            2,
            request,
            lambda: process_heartbeat(self.controller, request, now_ms=self.now_ms),
            BrokerHeartbeatResponse,
        )
        if response is not None and response.should_shut_down:
            self.goodbyes[request.broker_id] = self.now_ms
        if brokers[request.broker_id] != before or request.offline_log_dirs:
            self.beat_again(before)

    def beat_again(self, broker: Broker) -> None:
        """Kafka's forgets how far a broker is whenever its registration changes."""
        self.beat(
            BrokerHeartbeatRequest(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                current_metadata_offset=self.controller.next_offset - 1,
                want_shut_down=self.controller.image.brokers[broker.id].in_controlled_shutdown,
            )
        )

    def wait(self) -> None:
        self.pass_time(self.rng.randrange(3_000))

    def pass_time(self, passed_ms: int) -> None:
        """One session after the other ends: Kafka's has no order for those that end together."""
        heartbeats = self.controller.heartbeats
        assert heartbeats is not None
        until_ms = self.now_ms + passed_ms
        while self.now_ms < until_ms:
            self.now_ms = min(heartbeats.expires_at_ms() or until_ms, until_ms)
            self.history.append(f"time {self.now_ms}")
            theirs = self.kafka.ask(f"time 0 {self.now_ms}")
            while (decision := self.controller.on_time(self.now_ms)) is not None:
                self.apply(decision)
            self.compare(theirs.state)

    def balance(self) -> None:
        """What the periodic tasks do, without waiting for them."""
        self.history.append("balance")
        for command, elections in (
            ("balance", preferred_elections),
            ("unclean", unclean_elections),
        ):
            theirs = self.kafka.ask(f"{command} 0")
            self.apply(Decision(tuple(elections(self.controller)), None))
            self.compare(theirs.state)

    def create(self) -> None:
        alive = [each.id for each in self.controller.image.brokers.values()]
        if len(alive) < 3 or len(self.topics) > 5:
            return
        configs = {"min.insync.replicas": str(self.rng.randint(1, 3))}
        if self.rng.random() < 0.3:
            configs["unclean.leader.election.enable"] = "true"
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=f"t{self.rng.randrange(10**9)}",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreateTopicsRequest.CreatableReplicaAssignment(
                            partition_index=index, broker_ids=self.rng.sample(alive, 3)
                        )
                        for index in range(2)
                    ],
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                        for name, value in configs.items()
                    ],
                )
            ]
        )
        self.ours_alone(create_topics(self.controller, request))

    def delete(self) -> None:
        if not self.topics:
            return
        name = self.rng.choice(self.topics).name
        topics = [DeleteTopicsRequest.DeleteTopicState(name=name)]
        self.ours_alone(delete_topics(self.controller, DeleteTopicsRequest(topics=topics)))

    def configure(self) -> None:
        """Another minimum for one topic or for all.

        Only while nobody is eligible: Kafka's index of those is not told that they are cleared,
        and then it changes partitions twice, or fails over topics that are gone.
        """
        if not self.topics or any(
            partition.elr for topic in self.topics for partition in topic.partitions.values()
        ):
            return
        data = IncrementalAlterConfigsRequest
        cluster = self.rng.random() < 0.3
        request = data(
            resources=[
                data.AlterConfigsResource(
                    resource_type=ResourceType.BROKER if cluster else ResourceType.TOPIC,
                    resource_name="" if cluster else self.rng.choice(self.topics).name,
                    configs=[
                        data.AlterableConfig(
                            name="min.insync.replicas", value=str(self.rng.randint(1, 3))
                        )
                    ],
                )
            ]
        )
        self.ours_alone(incremental_alter_configs(self.controller, request))

    def ours_alone(self, decision: Decision[Any]) -> None:
        """Topic ids are random and configs have rules of their own: Kafka's takes our word."""
        self.history.append(f"{decision.records}")
        self.apply(decision)
        self.kafka.ask(f"offset 0 {self.controller.next_offset - len(decision.records)}")
        self.tell(decision.records)

    def some_broker(self) -> Broker | None:
        brokers = list(self.controller.image.brokers.values())
        return self.rng.choice(brokers) if brokers else None

    def some_partition(self) -> tuple[Topic, int, Partition] | None:
        if not self.topics:
            return None
        topic = self.rng.choice(self.topics)
        index = self.rng.choice(list(topic.partitions))
        return topic, index, topic.partitions[index]

    def alter(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, partition = found
        rng, brokers = self.rng, self.controller.image.brokers
        sender = partition.leader
        if sender not in brokers or rng.random() < 0.05:
            sender = rng.choice(partition.replicas)
        if sender not in brokers:
            return
        isr = [sender] if rng.random() < 0.97 else []
        others = [each for each in partition.replicas if each != sender]
        isr += rng.sample(others, rng.randint(0, len(others)))
        if rng.random() < 0.03:
            isr.append(rng.choice(BROKERS))
        data = AlterPartitionRequest
        request = data(
            broker_id=sender,
            broker_epoch=brokers[sender].epoch,
            topics=[
                data.TopicData(
                    topic_id=topic.id,
                    partitions=[
                        data.PartitionData(
                            partition_index=index + 5 * (rng.random() < 0.02),
                            leader_epoch=partition.leader_epoch + self.slip(),
                            partition_epoch=partition.partition_epoch + self.slip(),
                            leader_recovery_state=int(rng.random() < 0.05),
                            new_isr_with_epochs=[
                                data.BrokerState(
                                    broker_id=each,
                                    broker_epoch=(
                                        brokers[each].epoch
                                        if each in brokers and rng.random() < 0.9
                                        else rng.choice([-1, 3])
                                    ),
                                )
                                for each in isr
                            ],
                        )
                    ],
                )
            ],
        )
        self.both(
            "alter",
            3,
            request,
            lambda: alter_partition(self.controller, request),
            AlterPartitionResponse,
        )

    def slip(self) -> int:
        return self.rng.choice([-1, 1]) if self.rng.random() < 0.03 else 0

    def elect(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, _ = found
        request = ElectLeadersRequest(
            election_type=self.rng.randrange(2),
            topic_partitions=None
            if self.rng.random() < 0.3
            else [
                ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[index, 9]),
                ElectLeadersRequest.TopicPartitions(topic="nowhere", partitions=[0]),
            ],
        )
        self.both(
            "elect",
            2,
            request,
            lambda: elect_leaders(self.controller, request),
            ElectLeadersResponse,
        )

    def reassign(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, _ = found
        data, rng = AlterPartitionReassignmentsRequest, self.rng
        replicas: list[int] | None = rng.sample(BROKERS, rng.randint(2, 4))
        if rng.random() < 0.25:
            replicas = None
        elif rng.random() < 0.05:
            replicas = [1, 1]
        request = data(
            allow_replication_factor_change=rng.random() < 0.8,
            topics=[
                data.ReassignableTopic(
                    name=topic.name,
                    partitions=[
                        data.ReassignablePartition(partition_index=index, replicas=replicas)
                    ],
                )
            ],
        )
        self.both(
            "reassign",
            1,
            request,
            lambda: alter_partition_reassignments(self.controller, request),
            AlterPartitionReassignmentsResponse,
        )

    def list(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        asked = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
            name=found[0].name, partition_indexes=[0, 1, 2]
        )
        request = ListPartitionReassignmentsRequest(
            topics=None if self.rng.random() < 0.7 else [asked]
        )
        self.both(
            "list",
            0,
            request,
            lambda: Decision((), list_partition_reassignments(self.controller, request)),
            ListPartitionReassignmentsResponse,
        )

    def assign(self) -> None:
        found = self.some_partition()
        broker = self.some_broker()
        if found is None or broker is None:
            return
        topic, index, partition = found
        if partition.leader == -1:
            # Ours lets a replica that found another folder lead again; Kafka's waits.
            return
        data = AssignReplicasToDirsRequest
        request = data(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            directories=[
                data.DirectoryData(
                    id=self.rng.choice(broker.log_dirs),
                    topics=[
                        data.TopicData(
                            topic_id=topic.id,
                            partitions=[
                                data.PartitionData(partition_index=index),
                                data.PartitionData(partition_index=9),
                            ],
                        )
                    ],
                )
            ],
        )
        self.both(
            "assign",
            0,
            request,
            lambda: assign_replicas_to_dirs(self.controller, request),
            AssignReplicasToDirsResponse,
        )

    def unregister(self) -> None:
        broker_id = self.rng.choice(BROKERS)
        request = UnregisterBrokerRequest(broker_id=broker_id)

        def decide() -> Decision[UnregisterBrokerResponse]:
            decision = unregister_broker(self.controller, broker_id=broker_id)
            return Decision(decision.records, UnregisterBrokerResponse(error_message=None))

        self.both("unregister", 0, request, decide, UnregisterBrokerResponse)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaController]:
    if reason := kafka_missing():
        pytest.skip(reason)
    classes = tmp_path_factory.mktemp("classes")
    source = str(SOURCES / "ControllerDecisions.java")
    compiler = ["javac", "-nowarn", "-cp", f"{KAFKA_JARS}/*", "-d", str(classes), source]
    subprocess.run(compiler, check=True, capture_output=True, timeout=240)
    with KafkaController(classes) as controller:
        yield controller


@pytest.mark.parametrize("elr", [True, False], ids=["elr", "no elr"])
def test_random_lives_are_the_same(kafka: KafkaController, elr: bool) -> None:
    ended_early = 0
    for seed in range(LIVES):
        life = Life(kafka, seed, elr=elr)
        try:
            for _ in range(STEPS):
                life.step()
        except KafkaIsBroken:
            ended_early += 1
    assert ended_early < LIVES // 4
