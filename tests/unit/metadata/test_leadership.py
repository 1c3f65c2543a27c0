"""Elections on request and from time to time; reassignments."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.metadata.machine.brokers import fence_broker, register_broker
from moldau.broker.metadata.machine.configs import incremental_alter_configs
from moldau.broker.metadata.machine.controllers import register_controller
from moldau.broker.metadata.machine.feature_updates import update_features
from moldau.broker.metadata.machine.leadership import elect_leaders
from moldau.broker.metadata.machine.model import LeaderRecoveryState
from moldau.broker.metadata.machine.partitions import alter_partition
from moldau.broker.metadata.machine.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from moldau.broker.metadata.machine.topics import create_topics
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControllerRegistrationRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    NoOpRecord,
    UpdateFeaturesRequest,
)
from support.broker_decisions import unfence_broker

World = Any
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def cluster(new_world: Any) -> World:
    """Brokers 1 to 5; topic t on 1, 2 and 3."""
    world = new_world(metadata_max_idle_interval_ms=0)
    for broker_id in range(1, 6):
        world.add_broker(broker_id)
    make(world, "t", [1, 2, 3])
    return world


def make(world: World, name: str, replicas: list[int], **configs: str) -> None:
    topic = world.topic(name, -1, -1, configs, assignments={0: replicas})
    world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
    assert name in world.image.topics_by_name


def partition(world: World, name: str = "t") -> Any:
    return world.image.topics_by_name[name].partitions[0]


def fence(world: World, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        epoch = world.image.brokers[broker_id].epoch
        world.apply(fence_broker(world.controller, broker_id=broker_id, broker_epoch=epoch))


def unfence(world: World, broker_id: int) -> None:
    epoch = world.image.brokers[broker_id].epoch
    world.apply(unfence_broker(world.controller, broker_id=broker_id, broker_epoch=epoch))


def restart_after_crash(world: World, broker_id: int, incarnation: int) -> None:
    request = world.registration(broker_id, incarnation=incarnation)
    world.apply(register_broker(world.controller, request))
    unfence(world, broker_id)


def set_isr(world: World, *isr: int, name: str = "t") -> ErrorCode:
    now = partition(world, name)
    data = AlterPartitionRequest
    request = data(
        broker_id=now.leader,
        broker_epoch=world.image.brokers[now.leader].epoch,
        topics=[
            data.TopicData(
                topic_id=world.image.topics_by_name[name].id,
                partitions=[
                    data.PartitionData(
                        partition_index=0,
                        leader_epoch=now.leader_epoch,
                        partition_epoch=now.partition_epoch,
                        new_isr_with_epochs=[
                            data.BrokerState(broker_id=each, broker_epoch=-1) for each in isr
                        ],
                    )
                ],
            )
        ],
    )
    response = world.apply(alter_partition(world.controller, request))
    return ErrorCode(response.topics[0].partitions[0].error_code)


def elect(world: World, kind: int, name: str | None = "t", index: int = 0) -> dict[str, str]:
    topics = None
    if name is not None:
        topics = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=[index])]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics)
    response = world.apply(elect_leaders(world.controller, request))
    return {
        f"{topic.topic}-{result.partition_id}": ErrorCode(result.error_code).name
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def test_preferred_leaders_on_request(cluster: World) -> None:
    assert elect(cluster, PREFERRED) == {"t-0": "ELECTION_NOT_NEEDED"}
    fence(cluster, 1)
    assert elect(cluster, PREFERRED) == {"t-0": "PREFERRED_LEADER_NOT_AVAILABLE"}
    unfence(cluster, 1)
    assert elect(cluster, PREFERRED) == {"t-0": "PREFERRED_LEADER_NOT_AVAILABLE"}
    set_isr(cluster, 2, 3, 1)
    assert elect(cluster, PREFERRED) == {"t-0": "NONE"}
    assert (partition(cluster).leader, partition(cluster).leader_epoch) == (1, 2)


@pytest.mark.parametrize(("name", "index"), [("nowhere", 0), ("t", 7)])
def test_elections_of_what_is_not_there(cluster: World, name: str, index: int) -> None:
    answer = elect(cluster, PREFERRED, name, index)
    assert answer == {f"{name}-{index}": "UNKNOWN_TOPIC_OR_PARTITION"}


def test_an_unknown_kind_of_election(cluster: World) -> None:
    with pytest.raises(ApiError) as caught:
        elect(cluster, 5)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_without_a_list_only_who_needs_one_is_in_the_answer(cluster: World) -> None:
    make(cluster, "other", [2, 1])
    fence(cluster, 1)
    assert elect(cluster, PREFERRED, None) == {"t-0": "PREFERRED_LEADER_NOT_AVAILABLE"}
    assert elect(cluster, UNCLEAN, None) == {}


def test_an_unclean_leader_on_request_whatever_the_topic_says(cluster: World) -> None:
    assert elect(cluster, UNCLEAN) == {"t-0": "ELECTION_NOT_NEEDED"}
    set_isr(cluster, 1)
    fence(cluster, 1)
    assert (partition(cluster).leader, partition(cluster).elr) == (-1, (1,))
    assert elect(cluster, UNCLEAN) == {"t-0": "NONE"}
    now = partition(cluster)
    assert (now.leader, now.isr, now.elr, now.last_known_elr) == (2, (2,), (), ())
    assert now.leader_recovery_state == LeaderRecoveryState.RECOVERING


def test_nobody_alive_to_be_elected(cluster: World) -> None:
    fence(cluster, 1, 2, 3)
    assert elect(cluster, UNCLEAN) == {"t-0": "ELIGIBLE_LEADERS_NOT_AVAILABLE"}


class TestEligibleLeaderReplicas:
    def test_who_was_in_sync_below_the_minimum_may_lead(self, cluster: World) -> None:
        make(cluster, "safe", [1, 2, 3], min__insync__replicas="2")
        fence(cluster, 3, 2, 1)
        left = partition(cluster, "safe")
        assert (left.leader, left.isr, left.elr, left.last_known_elr) == (-1, (), (1, 2), (1,))
        unfence(cluster, 3)
        # It left while two were still in sync and may miss what they committed.
        assert partition(cluster, "safe").leader == -1
        unfence(cluster, 2)
        now = partition(cluster, "safe")
        assert (now.leader, now.isr, now.elr, now.last_known_elr) == (2, (2,), (1,), ())
        assert now.leader_recovery_state == LeaderRecoveryState.RECOVERED
        assert set_isr(cluster, 2, 3, name="safe") == ErrorCode.NONE
        assert partition(cluster, "safe").elr == ()

    def test_a_crash_costs_eligibility_and_the_last_leader_is_the_last_resort(
        self, cluster: World
    ) -> None:
        make(cluster, "safe", [1, 2, 3], min__insync__replicas="2")
        fence(cluster, 3, 2, 1)
        restart_after_crash(cluster, 2, 22)
        left = partition(cluster, "safe")
        assert (left.leader, left.elr, left.last_known_elr) == (-1, (1,), (1,))
        restart_after_crash(cluster, 1, 11)
        now = partition(cluster, "safe")
        assert (now.leader, now.isr, now.last_known_elr) == (1, (1,), ())
        assert now.leader_recovery_state == LeaderRecoveryState.RECOVERING

    def test_a_new_minimum_clears_it(self, cluster: World) -> None:
        make(cluster, "safe", [1, 2, 3], min__insync__replicas="2")
        fence(cluster, 3, 2)
        assert partition(cluster, "safe").elr == (2,)
        data = IncrementalAlterConfigsRequest
        config = data.AlterableConfig(name="min.insync.replicas", value="3")
        resource = data.AlterConfigsResource(
            resource_type=2, resource_name="safe", configs=[config]
        )
        request = data(resources=[resource])
        cluster.apply(incremental_alter_configs(cluster.controller, request))
        assert partition(cluster, "safe").elr == ()

    def test_who_left_the_partition_is_not_eligible_when_it_returns(self, cluster: World) -> None:
        make(cluster, "safe", [1, 2, 3], min__insync__replicas="3")
        set_isr(cluster, 1, 2, name="safe")
        assert partition(cluster, "safe").elr == (3,)
        assert reassign(cluster, [1, 2], name="safe") == ErrorCode.NONE
        assert partition(cluster, "safe").replicas == (1, 2)
        assert partition(cluster, "safe").elr == ()

    def test_switched_on_later_the_minimum_becomes_one_for_all(self, new_world: Any) -> None:
        world = new_world(min_insync_replicas=2)
        world.add_broker(1)
        world.controller.image.features.pop("eligible.leader.replicas.version")
        world.controller.image.configs.clear()
        world.controller.image.configs[(4, "1")] = {"min.insync.replicas": "1"}
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature="eligible.leader.replicas.version", max_version_level=1, upgrade_type=1
        )
        request = UpdateFeaturesRequest(feature_updates=[update])
        assert world.apply(update_features(world.controller, request)).error_code == 0
        assert world.image.configs == {(4, ""): {"min.insync.replicas": "2"}}


class TestTime:
    def test_leadership_goes_back_to_the_preferred(self, cluster: World) -> None:
        fence(cluster, 1)
        unfence(cluster, 1)
        set_isr(cluster, 2, 3, 1)
        cluster.controller.lead(now_ms=0)
        for now_ms in range(0, 300_000, 5_000):
            assert self.run(cluster, now_ms) == []
        assert self.run(cluster, 300_000) == ["PartitionChangeRecord"]
        assert partition(cluster).leader == 1
        assert self.run(cluster, 600_000) == []

    def test_unless_the_operator_does_not_want_it(self, new_world: Any) -> None:
        world = new_world(auto_leader_rebalance_enable=False)
        for broker_id in (1, 2, 3):
            world.add_broker(broker_id)
        make(world, "t", [1, 2, 3])
        fence(world, 1)
        unfence(world, 1)
        set_isr(world, 2, 3, 1)
        world.controller.lead(now_ms=0)
        assert self.run(world, 300_000) == []
        assert partition(world).leader == 2

    def test_an_unclean_leader_where_the_topic_allows_it(self, cluster: World) -> None:
        fence(cluster, 3, 2, 1)
        restart_after_crash(cluster, 3, 33)
        assert partition(cluster).leader == -1
        cluster.controller.lead(now_ms=0)
        assert self.run(cluster, 300_000) == []
        data = IncrementalAlterConfigsRequest
        config = data.AlterableConfig(name="unclean.leader.election.enable", value="true")
        resource = data.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
        request = data(resources=[resource])
        cluster.apply(incremental_alter_configs(cluster.controller, request))
        assert self.run(cluster, 600_000) == ["PartitionChangeRecord"]
        assert (partition(cluster).leader, partition(cluster).isr) == (3, (3,))

    def test_no_op_records_for_those_who_wait_for_news(self, new_world: Any) -> None:
        world = new_world(metadata_max_idle_interval_ms=500)
        world.controller.lead(now_ms=0)
        assert world.controller.due_at_ms() == 500
        world.apply(world.controller.on_time(500))
        assert world.records == [NoOpRecord()]
        assert world.controller.due_at_ms() == 1_000

    def test_a_long_round_goes_on_soon(self, new_world: Any) -> None:
        world = new_world()
        world.add_broker(1)
        world.add_broker(2)
        assignments = {index: [1, 2] for index in range(1_200)}
        topic = world.topic("many", -1, -1, assignments=assignments)
        world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
        fence(world, 1)
        unfence(world, 1)
        for each in world.image.topics_by_name["many"].partitions.values():
            assert each.leader == 2
        data = AlterPartitionRequest
        request = data(
            broker_id=2,
            broker_epoch=world.image.brokers[2].epoch,
            topics=[
                data.TopicData(
                    topic_id=world.image.topics_by_name["many"].id,
                    partitions=[
                        data.PartitionData(
                            partition_index=index,
                            leader_epoch=each.leader_epoch,
                            partition_epoch=each.partition_epoch,
                            new_isr=[1, 2],
                        )
                        for index, each in world.image.topics_by_name["many"].partitions.items()
                    ],
                )
            ],
        )
        world.apply(alter_partition(world.controller, request))
        world.controller.lead(now_ms=0, departed={1, 2})
        world.apply(world.controller.on_time(300_000))
        assert len(world.records) == 1_000
        assert self.run(world, 300_009) == []
        world.apply(world.controller.on_time(300_010))
        assert len(world.records) == 200
        assert not world.controller.index.imbalanced()

    def run(self, world: World, now_ms: int) -> list[str]:
        """The kinds of the records that time alone brings; everybody sends heartbeats."""
        for broker in world.image.brokers.values():
            world.controller.heartbeats.contact(broker.id, broker.epoch, now_ms=now_ms)
        kinds = []
        while (decision := world.controller.on_time(now_ms)) is not None:
            world.apply(decision)
            kinds += [type(record).__name__ for record in decision.records]
        return kinds


def reassign(
    world: World,
    replicas: list[int] | None,
    *,
    name: str = "t",
    index: int = 0,
    may_change_factor: bool = True,
) -> ErrorCode:
    data = AlterPartitionReassignmentsRequest
    request = data(
        allow_replication_factor_change=may_change_factor,
        topics=[
            data.ReassignableTopic(
                name=name,
                partitions=[data.ReassignablePartition(partition_index=index, replicas=replicas)],
            )
        ],
    )
    response = world.apply(alter_partition_reassignments(world.controller, request))
    return ErrorCode(response.responses[0].partitions[0].error_code)


def ongoing(world: World, *names: str) -> list[tuple[str, list[int], list[int], list[int]]]:
    data = ListPartitionReassignmentsRequest
    topics = [
        data.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 1]) for name in names
    ]
    request = data(topics=topics if names else None)
    response = list_partition_reassignments(world.controller, request)
    return [
        (topic.name, each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    ]


class TestReassignments:
    def test_from_first_to_last(self, cluster: World) -> None:
        assert reassign(cluster, [4, 5, 1]) == ErrorCode.NONE
        moving = ("t", [4, 5, 1, 2, 3], [4, 5], [2, 3])
        assert ongoing(cluster) == ongoing(cluster, "t") == [moving]
        assert ongoing(cluster, "other") == []
        now = partition(cluster)
        assert (now.leader, now.isr, now.leader_epoch) == (1, (1, 2, 3), 0)
        assert set_isr(cluster, 1, 2, 3, 4) == ErrorCode.NONE
        assert ongoing(cluster) == [moving]
        assert set_isr(cluster, 1, 2, 3, 4, 5) == ErrorCode.NONE
        done = partition(cluster)
        assert (done.replicas, done.isr, done.leader) == ((4, 5, 1), (1, 4, 5), 1)
        assert not done.reassigning
        # Those who left must not be followers of the old epoch.
        assert done.leader_epoch == 1
        assert len(done.directories) == 3
        assert ongoing(cluster) == []

    def test_the_old_leader_hears_that_it_is_out(self, cluster: World) -> None:
        reassign(cluster, [4, 5])
        assert set_isr(cluster, 1, 4, 5) == ErrorCode.NEW_LEADER_ELECTED
        done = partition(cluster)
        assert (done.replicas, done.isr, done.leader) == ((4, 5), (4, 5), 4)

    def test_another_order_is_done_at_once(self, cluster: World) -> None:
        assert reassign(cluster, [3, 1, 2]) == ErrorCode.NONE
        now = partition(cluster)
        assert (now.replicas, now.leader, now.reassigning) == ((3, 1, 2), 1, False)

    def test_cancelled(self, cluster: World) -> None:
        before = partition(cluster)
        reassign(cluster, [4, 5, 1])
        set_isr(cluster, 1, 2, 3, 4)
        assert reassign(cluster, None) == ErrorCode.NONE
        now = partition(cluster)
        assert (set(now.replicas), now.isr, now.leader) == ({1, 2, 3}, (1, 2, 3), 1)
        assert not now.reassigning
        assert now.leader_epoch == before.leader_epoch + 1
        assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    def test_no_way_back_when_only_the_new_ones_have_the_data(self, cluster: World) -> None:
        reassign(cluster, [4, 5, 1])
        set_isr(cluster, 1, 4)
        fence(cluster, 1)
        assert partition(cluster).isr == (4,)
        assert reassign(cluster, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert partition(cluster).reassigning

    @pytest.mark.parametrize(
        ("replicas", "name", "index", "code"),
        [
            ([1, 2], "nowhere", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
            ([1, 2], "t", 9, "UNKNOWN_TOPIC_OR_PARTITION"),
            ([], "t", 0, "INVALID_REPLICA_ASSIGNMENT"),
            ([1, 1], "t", 0, "INVALID_REPLICA_ASSIGNMENT"),
            ([1, 77], "t", 0, "INVALID_REPLICA_ASSIGNMENT"),
        ],
    )
    def test_refused(
        self, cluster: World, replicas: list[int], name: str, index: int, code: str
    ) -> None:
        assert reassign(cluster, replicas, name=name, index=index).name == code
        assert cluster.records == []

    def test_the_number_of_replicas_may_be_kept(self, cluster: World) -> None:
        wrong = reassign(cluster, [4, 5], may_change_factor=False)
        assert wrong == ErrorCode.INVALID_REPLICATION_FACTOR
        assert reassign(cluster, [4, 5, 1], may_change_factor=False) == ErrorCode.NONE
        # What counts is how many there will be, not how many there are on the way.
        assert reassign(cluster, [4, 2, 1], may_change_factor=False) == ErrorCode.NONE

    def test_a_partition_named_twice_changes_twice(self, cluster: World) -> None:
        data = AlterPartitionReassignmentsRequest
        wanted = [
            data.ReassignablePartition(partition_index=0, replicas=[4, 5, 1]),
            data.ReassignablePartition(partition_index=0, replicas=None),
        ]
        request = data(topics=[data.ReassignableTopic(name="t", partitions=wanted)])
        cluster.apply(alter_partition_reassignments(cluster.controller, request))
        assert not partition(cluster).reassigning
        assert set(partition(cluster).replicas) == {1, 2, 3}


def test_controllers_register_with_the_active_one(new_world: Any) -> None:
    world = new_world(quorum_node_ids=(1, 7))
    world.add_broker(1)
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="group.version", max_version_level=0, upgrade_type=2
    )
    request = UpdateFeaturesRequest(feature_updates=[update])
    refused = world.apply(update_features(world.controller, request))
    assert "controller 7 has not registered" in refused.error_message
    data = ControllerRegistrationRequest
    registration = data(
        controller_id=7,
        listeners=[data.Listener(name="CONTROLLER", host="seven", port=9093)],
        features=[
            data.Feature(name="group.version", min_supported_version=0, max_supported_version=1)
        ],
    )
    world.apply(register_controller(world.controller, registration))
    assert world.image.controllers[7].endpoints[0].host == "seven"
    assert world.apply(update_features(world.controller, request)).error_code == 0


@pytest.mark.parametrize(
    ("current", "level", "code"), [(29, 24, 0), (29, 23, 0), (29, 22, 95), (30, 29, 95)]
)
def test_metadata_version_goes_down_where_no_record_is_lost(
    world: World, current: int, level: int, code: int
) -> None:
    world.controller.image.features["metadata.version"] = current
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="metadata.version", max_version_level=level, upgrade_type=2
    )
    request = UpdateFeaturesRequest(feature_updates=[update])
    assert world.apply(update_features(world.controller, request)).error_code == code


def test_an_isr_that_names_a_replica_twice_is_refused(cluster: World) -> None:
    assert set_isr(cluster, 1, 2, 2) == ErrorCode.INVALID_REQUEST
