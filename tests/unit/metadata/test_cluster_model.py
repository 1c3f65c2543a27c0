"""A cluster that lives at random: brokers come, fall silent, crash and leave, leaders change their
ISR, partitions move. What must hold holds after every step, and the written records alone give the
same state again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.machine.activation import activate
from moldau.broker.metadata.machine.broker_lifecycle import process_heartbeat
from moldau.broker.metadata.machine.brokers import register_broker, unregister_broker
from moldau.broker.metadata.machine.configs import incremental_alter_configs
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.leadership import elect_leaders
from moldau.broker.metadata.machine.model import LeaderRecoveryState, Partition, Topic
from moldau.broker.metadata.machine.partition_index import PartitionIndex
from moldau.broker.metadata.machine.partitions import alter_partition
from moldau.broker.metadata.machine.reassignments import alter_partition_reassignments
from moldau.broker.metadata.machine.topics import create_topics
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.sim.metadata import AnyRules
from moldau.wire.errors import ApiError
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
BROKERS = range(1, 6)
SESSION_MS = 9_000

brokers = st.sampled_from(BROKERS)
positions = st.integers(0, 7)


class ClusterLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []
        self.now_ms = 0
        self.incarnation = 0
        self.unclean_allowed = False

    @initialize(elr=st.booleans(), min_isr=st.integers(1, 3), unclean=st.booleans())
    def begin(self, elr: bool, min_isr: int, unclean: bool) -> None:
        config = ControllerConfig(
            node_id=0,
            cluster_id=CLUSTER_ID,
            min_insync_replicas=min_isr,
            unclean_leader_election_enable=unclean,
            broker_session_timeout_ms=SESSION_MS,
        )
        self.unclean_allowed = unclean
        self.controller = Controller(config, AnyRules(), random.Random(1))
        bootstrap = [
            record
            for record in default_bootstrap_records()
            if elr or getattr(record, "name", "") != "eligible.leader.replicas.version"
        ]
        self.apply(activate(self.controller, bootstrap))
        self.controller.lead(0)
        for broker_id in BROKERS[:4]:
            self.register(broker_id, clean=True)
            self.heartbeat(broker_id, "", caught_up=True)
        for replicas in ([1, 2, 3], [2, 3, 4], [4, 1], [3, 1, 2, 4]):
            self.create(replicas)

    # What happens -----------------------------------------------------------------------

    @rule(broker_id=brokers, clean=st.booleans())
    def register(self, broker_id: int, clean: bool) -> None:
        existing = self.controller.image.brokers.get(broker_id)
        self.incarnation += 1
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=self.incarnation),
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[UUID(int=broker_id * 1000 + number) for number in range(broker_id % 2 + 1)],
            previous_broker_epoch=existing.epoch if clean and existing is not None else -1,
        )
        try:
            self.apply(register_broker(self.controller, request, now_ms=self.now_ms))
        except ApiError:
            return
        for _, _, partition in self.partitions():
            if len(partition.replicas) > 1 and self.controller.elr_enabled:
                assert broker_id not in partition.isr
                # What was not on its disk is lost, and nobody knows what that was.
                assert clean or broker_id not in partition.elr

    @rule(
        broker_id=brokers,
        wants=st.sampled_from(["", "", "", "f", "s", "fs"]),
        caught_up=st.booleans(),
    )
    def heartbeat(self, broker_id: int, wants: str, caught_up: bool, lost: int = 0) -> None:
        broker = self.controller.image.brokers.get(broker_id)
        if broker is None:
            return
        if broker.in_controlled_shutdown:
            # Who stops does not change its mind.
            wants += "s"
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=broker.epoch,
            current_metadata_offset=(
                self.controller.next_offset - 1 if caught_up else broker.epoch - 1
            ),
            want_fence="f" in wants,
            want_shut_down="s" in wants,
            offline_log_dirs=list(broker.log_dirs[:lost]),
        )
        answer = self.apply(process_heartbeat(self.controller, request, now_ms=self.now_ms))
        if answer.should_shut_down:
            assert not self.controller.index.has_leaderships(broker_id)

    @rule(broker_id=brokers, wants=st.sampled_from(["", "f", "s"]))
    def lose_a_folder(self, broker_id: int, wants: str) -> None:
        """But not its last: a broker without folders ends, it does not say so."""
        broker = self.controller.image.brokers.get(broker_id)
        if broker is not None and len(broker.log_dirs) > 1:
            self.heartbeat(broker_id, wants, caught_up=True, lost=1)

    @rule(passed_ms=st.integers(1, 12_000))
    def wait(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        while (decision := self.controller.on_time(self.now_ms)) is not None:
            self.apply(decision)
        due_ms = self.controller.due_at_ms()
        assert due_ms is None or due_ms > self.now_ms

    @rule()
    def balance(self) -> None:
        """The periodic tasks run, while everybody who lives sends heartbeats."""
        heartbeats = self.controller.heartbeats
        assert heartbeats is not None
        self.now_ms += 300_000
        for broker in self.controller.image.brokers.values():
            if not broker.fenced:
                heartbeats.contact(broker.id, broker.epoch, now_ms=self.now_ms)
        self.wait(1)

    @precondition(lambda self: len(self.controller.image.topics_by_id) < 8)
    @rule(replicas=st.lists(brokers, min_size=1, max_size=4, unique=True))
    def create(self, replicas: list[int]) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=f"t{len(self.records)}",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(
                    partition_index=0, broker_ids=replicas
                )
            ],
        )
        self.apply(create_topics(self.controller, CreateTopicsRequest(topics=[topic])))

    @rule(position=positions, wanted=st.sets(brokers), recovered=st.booleans())
    def alter(self, position: int, wanted: set[int], recovered: bool) -> None:
        """A leader proposes an ISR of replicas that live, as far as it knows."""
        topic, now = self.some(position)
        leader = self.controller.image.brokers.get(now.leader)
        if leader is None:
            return
        isr = {now.leader, *(wanted & set(now.replicas))}
        data = AlterPartitionRequest
        request = data(
            broker_id=leader.id,
            broker_epoch=leader.epoch,
            topics=[
                data.TopicData(
                    topic_id=topic.id,
                    partitions=[
                        data.PartitionData(
                            partition_index=0,
                            leader_epoch=now.leader_epoch,
                            partition_epoch=now.partition_epoch,
                            leader_recovery_state=(
                                0 if recovered else int(now.leader_recovery_state)
                            ),
                            new_isr=sorted(isr),
                        )
                    ],
                )
            ],
        )
        self.apply(alter_partition(self.controller, request))

    @rule(
        position=positions,
        replicas=st.none() | st.lists(brokers, min_size=1, max_size=4, unique=True),
    )
    def reassign(self, position: int, replicas: list[int] | None) -> None:
        topic, _ = self.some(position)
        data = AlterPartitionReassignmentsRequest
        wanted = data.ReassignablePartition(partition_index=0, replicas=replicas)
        request = data(topics=[data.ReassignableTopic(name=topic.name, partitions=[wanted])])
        self.apply(alter_partition_reassignments(self.controller, request))

    @rule()
    def elect_preferred(self) -> None:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None)
        self.apply(elect_leaders(self.controller, request))

    @rule(position=positions)
    def elect_unclean(self, position: int) -> None:
        topic, _ = self.some(position)
        wanted = ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[0])
        request = ElectLeadersRequest(election_type=1, topic_partitions=[wanted])
        self.apply(elect_leaders(self.controller, request), unclean_asked=True)

    @rule(minimum=st.integers(1, 3))
    def change_the_minimum(self, minimum: int) -> None:
        data = IncrementalAlterConfigsRequest
        config = data.AlterableConfig(name="min.insync.replicas", value=str(minimum))
        resource = data.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
        request = data(resources=[resource])
        self.apply(incremental_alter_configs(self.controller, request))

    @rule(broker_id=brokers)
    def unregister(self, broker_id: int) -> None:
        with suppress(ApiError):
            self.apply(unregister_broker(self.controller, broker_id=broker_id))

    @rule()
    def fail_over(self) -> None:
        """Another controller takes over with nothing but the log."""
        old = self.controller
        image = MetadataImage()
        image.replay_all(self.records)
        self.controller = Controller(
            old.config, old.rules, old.random, image, next_offset=old.next_offset
        )
        self.controller.lead(self.now_ms)

    # What must hold ---------------------------------------------------------------------

    def apply(self, decision: Decision[Any], *, unclean_asked: bool = False) -> Any:
        before = {(topic.id, index): partition for topic, index, partition in self.partitions()}
        alive_before = {
            broker.id for broker in self.controller.image.brokers.values() if broker.active
        }
        self.controller.replay(decision.records, base_offset=self.controller.next_offset)
        self.records += decision.records
        alive = alive_before | {
            broker.id for broker in self.controller.image.brokers.values() if broker.active
        }
        for topic, index, after in self.partitions():
            old = before.get((topic.id, index))
            if old is not None and old != after:
                self.check_step(old, after, alive, unclean=unclean_asked or self.unclean_allowed)
        return decision.response

    def check_step(self, old: Partition, new: Partition, alive: set[int], *, unclean: bool) -> None:
        assert new.partition_epoch > old.partition_epoch
        assert new.leader_epoch >= old.leader_epoch
        if new.leader in (-1, old.leader):
            return
        assert new.leader_epoch > old.leader_epoch
        assert new.leader in alive
        sure = {*old.isr, *old.elr}
        if new.leader in sure:
            return
        # It may have joined with the very record that made it leader, at the end of a move.
        joined = new.leader in new.isr and old.leader in alive and not new.reassigning
        if joined and new.leader_recovery_state == LeaderRecoveryState.RECOVERED:
            assert old.reassigning
            return
        assert new.leader_recovery_state == LeaderRecoveryState.RECOVERING
        assert new.isr == (new.leader,)
        last_known = not old.isr and old.last_known_elr == (new.leader,)
        assert unclean or last_known

    def partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        for topic in self.controller.image.topics_by_id.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition

    def some(self, position: int) -> tuple[Topic, Partition]:
        topics = list(self.controller.image.topics_by_id.values())
        topic = topics[position % len(topics)]
        return topic, topic.partitions[0]

    @invariant()
    def partitions_are_sound(self) -> None:
        if not hasattr(self, "controller"):
            return
        elr_enabled = self.controller.elr_enabled
        for _, _, partition in self.partitions():
            replicas = set(partition.replicas)
            assert len(replicas) == len(partition.replicas) == len(partition.directories)
            assert set(partition.isr) <= replicas
            assert len(set(partition.isr)) == len(partition.isr)
            assert set(partition.elr) <= replicas - set(partition.isr)
            assert set(partition.adding_replicas) <= replicas
            assert set(partition.removing_replicas) <= replicas
            if partition.leader != -1:
                assert partition.leader in partition.isr
            if not partition.isr:
                assert elr_enabled
            if partition.leader_recovery_state == LeaderRecoveryState.RECOVERING:
                assert len(partition.isr) <= 1 or partition.leader == -1

    @invariant()
    def only_who_lives_leads(self) -> None:
        if not hasattr(self, "controller"):
            return
        for _, _, partition in self.partitions():
            broker = self.controller.image.brokers.get(partition.leader)
            # A sole replica that came back before its silence was noticed leads on.
            if partition.leader != -1 and len(partition.replicas) > 1:
                assert broker is not None
                assert broker.active

    @invariant()
    def who_can_lead_cleanly_does(self) -> None:
        if not hasattr(self, "controller"):
            return
        for _, _, partition in self.partitions():
            if partition.leader != -1:
                continue
            for replica in partition.isr or partition.elr:
                broker = self.controller.image.brokers.get(replica)
                able = broker is not None and broker.active
                assert not able or not broker.has_online(partition.directory_of(replica))

    @invariant()
    def the_log_alone_gives_the_same_state(self) -> None:
        if not hasattr(self, "controller"):
            return
        image = MetadataImage()
        image.replay_all(self.records)
        assert image == self.controller.image
        index = PartitionIndex(image.topics_by_id.values())
        mine = self.controller.index
        for broker_id in BROKERS:
            assert set(index.of_broker(broker_id)) == set(mine.of_broker(broker_id))
            assert index.has_leaderships(broker_id) == mine.has_leaderships(broker_id)
        assert set(index.leaderless()) == set(mine.leaderless())
        assert set(index.imbalanced()) == set(mine.imbalanced())
        assert set(index.reassigning()) == set(mine.reassigning())


TestClusterLife = ClusterLife.TestCase
TestClusterLife.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
