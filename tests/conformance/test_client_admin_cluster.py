"""The admin client on three nodes: it finds who answers for what, also when that changes.

Runs against Moldau, and with --against-kafka against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from moldau.client import errors
from moldau.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigResource,
    ElectionType,
    FeatureUpdate,
    NewPartitionReassignment,
    NewTopic,
    OffsetSpec,
    PartitionReassignment,
    RaftVoterEndpoint,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from support.cluster import ClusterUnderTest, always_whole, cluster_for
from support.waiting import eventually


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    # Leaders move when the admin says so.
    settings = {"auto.leader.rebalance.enable": "false"}
    with cluster_for(request, tmp_path_factory.mktemp("cluster"), settings) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(shared: ClusterUnderTest) -> Iterator[Admin]:
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        yield admin


def test_each_broker_is_asked_for_its_own(cluster: ClusterUnderTest, admin: Admin) -> None:
    cluster.create_topic("spread", assignment=[(1,), (2,), (3,)])
    keys = [TopicPartition("spread", index) for index in range(3)]
    offsets = admin.list_offsets({key: OffsetSpec.latest() for key in keys})
    assert [offsets[key].offset for key in keys] == [0, 0, 0]
    directories = admin.describe_log_dirs([1, 2, 3])
    for key, broker_id in zip(keys, (1, 2, 3), strict=True):
        (directory,) = directories[broker_id].values()
        assert [each for each in directory.replica_infos if each.topic == "spread"] == [key]
    brokers = [ConfigResource.broker(broker_id) for broker_id in (1, 2, 3)]
    configs = admin.describe_configs(brokers)
    assert [configs[broker]["node.id"].value for broker in brokers] == ["1", "2", "3"]
    assert [node.id for node in admin.describe_cluster().nodes] == [1, 2, 3]
    groups = [f"group-{number}" for number in range(8)]
    for group in groups:
        admin.alter_consumer_group_offsets(group, {keys[0]: OffsetAndMetadata(0)})
    assert [each.group_id for each in admin.list_groups()] == groups
    described = admin.describe_consumer_groups(groups)
    assert len({each.coordinator.id for each in described.values()}) > 1
    assert len(admin.delete_consumer_groups(groups)) == 8


@pytest.mark.long("nodes stop; leaders that move are found in tests of producer and consumer")
def test_leaders_and_controllers_that_moved_are_found(
    cluster: ClusterUnderTest, admin: Admin
) -> None:
    victim = admin.describe_metadata_quorum().leader_id
    others = cluster.others(victim)
    cluster.create_topic("moving", assignment=[(victim, *others)])
    key = TopicPartition("moving", 0)
    assert admin.list_offsets({key: OffsetSpec.latest()})[key].offset == 0
    with Admin(bootstrap_controllers=cluster.controller_bootstrap) as of_controllers:
        assert of_controllers.describe_metadata_quorum().leader_id == victim
        cluster.kill(victim)
        assert of_controllers.describe_metadata_quorum().leader_id in others
    assert admin.list_offsets({key: OffsetSpec.latest()})[key].offset == 0
    admin.create_topics([NewTopic("after", 1, 2)])
    cluster.wait_until_fenced(victim)
    fenced = admin.describe_cluster(include_fenced_brokers=True).nodes
    assert [(node.id, node.is_fenced) for node in fenced] == [
        (node_id, node_id == victim) for node_id in (1, 2, 3)
    ]
    listed = admin.list_groups(check=False)
    assert listed.errors == {}
    cluster.start_node(victim)
    cluster.wait_until_whole("moving")
    assert cluster.leader("moving") != victim
    assert list(admin.elect_leaders(ElectionType.PREFERRED, [key])) == [key]
    eventually(lambda: cluster.leader("moving") == victim, what="the preferred replica leads")
    refused = admin.elect_leaders(ElectionType.UNCLEAN, [key], check=False)
    assert isinstance(refused.errors[key], errors.ElectionNotNeededError)


def test_reassignment_is_begun_listed_and_cancelled(
    cluster: ClusterUnderTest, admin: Admin
) -> None:
    cluster.create_topic("reassigned", assignment=[(1, 2), (1, 2)])
    first, second = TopicPartition("reassigned", 0), TopicPartition("reassigned", 1)
    # A replica cannot be added while its broker is away, so that the reassignment stays.
    cluster.kill(3)
    cluster.wait_until_fenced(3)
    admin.alter_partition_reassignments({first: NewPartitionReassignment((2, 3)), second: [3, 1]})
    ongoing = admin.list_partition_reassignments([first])
    assert ongoing == {first: PartitionReassignment((2, 3, 1), (3,), (1,))}
    assert set(admin.list_partition_reassignments()) == {first, second}
    admin.alter_partition_reassignments({first: None})
    assert set(admin.list_partition_reassignments()) == {second}
    cluster.start_node(3)
    eventually(lambda: not admin.list_partition_reassignments(), what="it is done")
    topic = eventually(
        lambda: _described(admin, "reassigned", second, (3, 1)), what="and the brokers know"
    )
    assert {replica.id for replica in topic.partitions[0].replicas} == {1, 2}
    with pytest.raises(errors.InvalidReplicationFactorError):
        admin.alter_partition_reassignments(
            {first: [1, 2, 3]}, allow_replication_factor_change=False
        )


def _described(admin: Admin, name: str, key: TopicPartition, replicas: tuple[int, ...]):  # type: ignore[no-untyped-def]
    topic = admin.describe_topics([name])[name]
    ids = tuple(replica.id for replica in topic.partitions[key.partition].replicas)
    return topic if ids == replicas else None


def test_controllers_serve_what_is_theirs(cluster: ClusterUnderTest) -> None:
    with Admin(bootstrap_controllers=cluster.controller_bootstrap) as admin:
        described = admin.describe_cluster()
        assert [node.id for node in described.nodes] == [1, 2, 3]
        assert described.controller is not None
        assert str(described.controller.port) in cluster.controller_bootstrap
        quorum = admin.describe_metadata_quorum()
        assert quorum.leader_id == described.controller.id
        assert {voter.replica_id for voter in quorum.voters} == {1, 2, 3}
        level = admin.describe_features().finalized_features["metadata.version"]
        updates = {"metadata.version": FeatureUpdate(level.max_version_level)}
        admin.update_features(updates, validate_only=True)
        assert admin.list_partition_reassignments() == {}
        broker = ConfigResource.broker(2)
        for operation in (AlterConfigOp.set("log.cleaner.threads", "2"),
                          AlterConfigOp.delete("log.cleaner.threads")):  # fmt: skip
            admin.incremental_alter_configs({broker: [operation]})
        with pytest.raises(errors.InvalidRequestError, match="fenced"):
            admin.describe_cluster(include_fenced_brokers=True)
        with pytest.raises(errors.UnsupportedEndpointTypeError, match=r"bootstrap\.servers"):
            admin.create_topics([NewTopic("x")])
        with pytest.raises(errors.UnsupportedEndpointTypeError):
            admin.list_groups()


def test_voters_leave_and_come_back(cluster: ClusterUnderTest, admin: Admin) -> None:
    quorum = admin.describe_metadata_quorum()
    voter = next(each for each in quorum.voters if each.replica_id != quorum.leader_id)
    endpoints = quorum.nodes[voter.replica_id].endpoints
    with pytest.raises(errors.DuplicateVoterError):
        admin.add_raft_voter(voter.replica_id, voter.replica_directory_id, endpoints)
    with pytest.raises(errors.VoterNotFoundError):
        admin.remove_raft_voter(voter.replica_id, UUID(int=77))
    admin.remove_raft_voter(voter.replica_id, voter.replica_directory_id)

    def observes() -> bool:
        now = admin.describe_metadata_quorum()
        return any(
            (each.replica_id, each.replica_directory_id) == voter[:2] for each in now.observers
        )

    eventually(observes, what="it observes")

    def added() -> bool:
        try:
            admin.add_raft_voter(
                voter.replica_id,
                voter.replica_directory_id,
                [RaftVoterEndpoint(*each) for each in endpoints],
            )
        except errors.RequestTimedOutError:
            return False
        except errors.DuplicateVoterError:
            return True
        return True

    eventually(added, what="it votes again")
    voters = {each.replica_id for each in admin.describe_metadata_quorum().voters}
    assert voters == {1, 2, 3}
