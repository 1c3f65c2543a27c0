"""Registrations, fencing, and what they do to partitions; what leaders and folders report."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from moldau.broker.metadata.machine.broker_lifecycle import fence_dead, process_heartbeat
from moldau.broker.metadata.machine.brokers import fence_broker, register_broker, unregister_broker
from moldau.broker.metadata.machine.changes import PartitionChanges
from moldau.broker.metadata.machine.elections import ElectionRules, change_partition
from moldau.broker.metadata.machine.model import LeaderRecoveryState, Partition
from moldau.broker.metadata.machine.partitions import alter_partition, assign_replicas_to_dirs
from moldau.broker.metadata.machine.producer_ids import allocate_producer_ids
from moldau.broker.metadata.machine.topics import create_topics
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationChangeRecord,
    CreateTopicsRequest,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from support.broker_decisions import (
    begin_controlled_shutdown,
    cordon_log_dirs,
    take_log_dirs_offline,
    unfence_broker,
)

World = Any
TOPIC = UUID(int=0xAB)


def test_a_broker_epoch_is_the_offset_of_its_registration(new_world: Any) -> None:
    world = new_world()
    offset = world.controller.next_offset
    epoch = world.apply(register_broker(world.controller, world.registration(1))).broker_epoch
    assert epoch == offset
    assert isinstance(world.records[0], RegisterBrokerRecord)
    assert world.image.brokers[1].fenced
    world.apply(unfence_broker(world.controller, broker_id=1, broker_epoch=epoch))
    assert world.records == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)
    ]
    assert world.image.brokers[1].active


def test_the_same_incarnation_keeps_its_epoch_and_stays_unfenced(world: World) -> None:
    epoch = world.image.brokers[1].epoch
    request = world.registration(1, incarnation=1000, rack="r9")
    assert world.apply(register_broker(world.controller, request)).broker_epoch == epoch
    assert world.image.brokers[1].rack == "r9"
    assert world.image.brokers[1].active


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"cluster_id": "other"}, "INCONSISTENT_CLUSTER_ID", id="other cluster"),
        pytest.param({"log_dirs": [5]}, "INVALID_REGISTRATION", id="reserved folder"),
        pytest.param({"log_dirs": [500, 500]}, "INVALID_REGISTRATION", id="folder twice"),
        pytest.param({"log_dirs": [1000]}, "INVALID_REGISTRATION", id="another broker's folder"),
    ],
)
def test_refused_registrations(world: World, fields: dict[str, Any], code: str) -> None:
    request = world.registration(2, **fields)
    with pytest.raises(ApiError) as caught:
        register_broker(world.controller, request)
    assert caught.value.code.name == code


def test_a_broker_must_know_the_finalized_features(world: World) -> None:
    request = world.registration(2)
    request.features = [f for f in request.features if f.name != "share.version"]
    with pytest.raises(ApiError, match=r"does not support finalized version 1 of share\.version"):
        register_broker(world.controller, request)
    request.features = []
    with pytest.raises(ApiError, match="do not contain"):
        register_broker(world.controller, request)


def test_a_live_brokers_id_is_not_taken(world: World) -> None:
    world.controller.lead(now_ms=100)
    again = world.registration(1, incarnation=77, port=9_093)
    with pytest.raises(ApiError) as caught:
        register_broker(world.controller, again, now_ms=9_100)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    epoch = world.controller.next_offset
    answer = world.apply(register_broker(world.controller, again, now_ms=9_101))
    assert answer.broker_epoch == epoch


def beat(world: World, now_ms: int, **fields: Any) -> None:
    request = BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=world.image.brokers[1].epoch,
        current_metadata_offset=world.controller.next_offset - 1,
        **fields,
    )
    world.apply(process_heartbeat(world.controller, request, now_ms=now_ms))


def test_a_broker_that_stopped_in_order_comes_back_at_once(world: World) -> None:
    """By the word that it gave when it stopped, or by the mark in its log directory."""
    world.controller.lead(now_ms=0)
    beat(world, 10)
    by_mark = world.registration(
        1, incarnation=77, previous_epoch=world.image.brokers[1].epoch, port=9_999
    )
    world.apply(register_broker(world.controller, by_mark, now_ms=20))
    beat(world, 30)
    beat(world, 40, want_shut_down=True)
    unmarked = world.registration(1, incarnation=78)
    world.apply(register_broker(world.controller, unmarked, now_ms=50))


@pytest.mark.parametrize(
    ("port", "connected", "now_ms", "taken"),
    [
        pytest.param(9_092, False, 1_510, True, id="where the old one listened"),
        pytest.param(9_092, False, 1_509, False, id="it may be about to connect again"),
        pytest.param(9_092, True, 1_510, False, id="the old one is connected"),
        pytest.param(9_999, False, 1_510, False, id="both may listen"),
    ],
)
def test_a_new_incarnation_takes_the_place_of_one_that_was_killed(
    world: World, port: int, connected: bool, now_ms: int, taken: bool
) -> None:
    world.controller.lead(now_ms=0)
    beat(world, 1_010)
    if not connected:
        epoch = world.image.brokers[1].epoch
        assert world.controller.on_broker_disconnected(1, epoch)
    again = world.registration(1, incarnation=77, port=port)
    if taken:
        world.apply(register_broker(world.controller, again, now_ms=now_ms))
    else:
        with pytest.raises(ApiError) as caught:
            register_broker(world.controller, again, now_ms=now_ms)
        assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_broker_that_is_gone_is_fenced_before_its_session_is_over(world: World) -> None:
    world.controller.lead(now_ms=0)
    beat(world, 10)
    epoch = world.image.brokers[1].epoch
    world.apply(fence_dead(world.controller, broker_id=1, broker_epoch=epoch - 1))
    assert not world.image.brokers[1].fenced
    world.apply(fence_dead(world.controller, broker_id=1, broker_epoch=epoch))
    assert world.image.brokers[1].fenced
    assert not world.controller.has_session(world.image.brokers[1], 10)
    # It was alive after all.
    beat(world, 20)
    assert not world.image.brokers[1].fenced


def test_a_sole_replica_keeps_leading_after_a_restart(world: World) -> None:
    world.create("t", 2)
    old_epoch = world.image.brokers[1].epoch

    clean = world.registration(1, incarnation=2, previous_epoch=old_epoch)
    decision = register_broker(world.controller, clean)
    assert len(decision.records) == 1

    crashed = world.registration(1, incarnation=2)
    epoch = world.apply(register_broker(world.controller, crashed)).broker_epoch
    # Records may be lost, so consumers must be able to notice.
    partitions = world.image.topics_by_name["t"].partitions.values()
    assert [(p.leader, p.leader_epoch, p.isr) for p in partitions] == [(1, 1, (1,))] * 2
    world.apply(unfence_broker(world.controller, broker_id=1, broker_epoch=epoch))
    assert len(world.records) == 1


def test_fencing_moves_leaders_and_unfencing_brings_back_the_leaderless(world: World) -> None:
    world.add_broker(2)
    shared = world.topic("shared", -1, -1, assignments={0: [2, 1]})
    alone = world.topic("alone", -1, -1, assignments={0: [2]})
    world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[shared, alone])))
    epoch = world.image.brokers[2].epoch

    world.apply(fence_broker(world.controller, broker_id=2, broker_epoch=epoch))
    moved = world.image.topics_by_name["shared"].partitions[0]
    assert (moved.leader, moved.isr) == (1, (1,))
    left = world.image.topics_by_name["alone"].partitions[0]
    assert (left.leader, left.isr, left.elr, left.last_known_elr) == (-1, (), (2,), (2,))

    world.apply(unfence_broker(world.controller, broker_id=2, broker_epoch=epoch))
    back = world.image.topics_by_name["alone"].partitions[0]
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (2, (2,), (), ())
    assert back.leader_recovery_state == LeaderRecoveryState.RECOVERED


def test_controlled_shutdown_and_leaving(world: World) -> None:
    world.add_broker(2)
    topic = world.topic("t", -1, -1, assignments={0: [2, 1]})
    world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
    epoch = world.image.brokers[2].epoch
    world.apply(begin_controlled_shutdown(world.controller, broker_id=2, broker_epoch=epoch))
    assert world.image.topics_by_name["t"].partitions[0].leader == 1
    assert world.image.brokers[2].in_controlled_shutdown
    world.apply(unregister_broker(world.controller, broker_id=2))
    assert list(world.image.brokers) == [1]
    with pytest.raises(ApiError) as caught:
        unregister_broker(world.controller, broker_id=2)
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_an_old_incarnation_cannot_act(world: World) -> None:
    for act in (unfence_broker, fence_broker):
        with pytest.raises(ApiError) as caught:
            act(world.controller, broker_id=1, broker_epoch=-7)
        assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def shaped(**fields: Any) -> Partition:
    made: dict[str, Any] = {
        "replicas": (1, 2, 3),
        "directories": (UUID(int=500),) * 3,
        "isr": (1, 2, 3),
        "leader": 1,
    }
    return Partition(**(made | fields))


@pytest.mark.parametrize(
    ("partition", "isr", "alive", "rules", "expected"),
    [
        pytest.param(shaped(), (1, 2, 3), {1, 2, 3}, {}, None, id="nothing changes"),
        pytest.param(
            shaped(), (2, 3), {2, 3}, {}, {"leader": 2, "isr": [2, 3]}, id="next in order leads"
        ),
        pytest.param(
            shaped(leader=3), (1, 2, 3), {1, 2, 3}, {}, None, id="a good leader is not replaced"
        ),
        pytest.param(
            shaped(isr=(1,)),
            (),
            {2, 3},
            {},
            {
                "leader": -1,
                "isr": [],
                "eligible_leader_replicas": [1],
                "last_known_elr": [1],
            },
            id="nobody is sure to have the data",
        ),
        pytest.param(
            shaped(isr=(1,)),
            (),
            {2, 3},
            {"elr_enabled": False},
            {"leader": -1},
            id="without eligible replicas the last member stays",
        ),
        pytest.param(
            shaped(isr=(1,)),
            (),
            {2, 3},
            {"unclean_enabled": True},
            {"leader": 2, "isr": [2], "leader_recovery_state": 1},
            id="unclean election",
        ),
        pytest.param(
            shaped(isr=(), leader=-1, elr=(3,)),
            (),
            {2, 3},
            {},
            {"leader": 3, "isr": [3], "eligible_leader_replicas": []},
            id="an eligible replica leads cleanly",
        ),
        pytest.param(
            shaped(isr=(), leader=-1, last_known_elr=(2,)),
            (),
            {2, 3},
            {},
            {"leader": 2, "isr": [2], "leader_recovery_state": 1, "last_known_elr": []},
            id="the last known leader, when nothing else is left",
        ),
        pytest.param(
            shaped(),
            (1,),
            {1},
            {"min_isr": 2},
            {"isr": [1], "eligible_leader_replicas": [2, 3]},
            id="below the minimum the others stay eligible",
        ),
    ],
)
def test_elections(
    partition: Partition,
    isr: tuple[int, ...],
    alive: set[int],
    rules: dict[str, Any],
    expected: dict[str, Any] | None,
) -> None:
    record = change_partition(
        partition,
        topic_id=TOPIC,
        index=0,
        isr=isr,
        acceptable=alive.__contains__,
        rules=ElectionRules(**rules),
    )
    wanted = None
    if expected is not None:
        wanted = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **expected)
    assert record == wanted


def test_a_crashed_replica_is_no_longer_eligible() -> None:
    record = change_partition(
        shaped(isr=(1, 2), elr=(3,)),
        topic_id=TOPIC,
        index=0,
        isr=(1,),
        acceptable={1}.__contains__,
        rules=ElectionRules(min_isr=3),
        unclean_shutdown=(3,),
    )
    assert record is not None
    assert record.eligible_leader_replicas == [2]


def alter(world: World, **fields: Any) -> Any:
    topic = world.image.topics_by_name["t"]
    data: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr_with_epochs": {1: world.image.brokers[1].epoch},
    } | fields
    data["new_isr_with_epochs"] = [
        AlterPartitionRequest.BrokerState(broker_id=broker_id, broker_epoch=epoch)
        for broker_id, epoch in data["new_isr_with_epochs"].items()
    ]
    sender = data.pop("sender", 1)
    request = AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=world.image.brokers[sender].epoch,
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=data.pop("topic_id", topic.id),
                partitions=[AlterPartitionRequest.PartitionData(**data)],
            )
        ],
    )
    response = world.apply(alter_partition(world.controller, request))
    return response.topics[0].partitions[0]


@pytest.fixture
def replicated(world: World) -> World:
    world.add_broker(2)
    world.add_broker(3, fenced=True)
    topic = world.topic("t", -1, -1, assignments={0: [1, 2, 3]})
    world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
    return world


def test_a_leader_changes_its_isr(replicated: World) -> None:
    answer = alter(replicated)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, [1], 1)
    assert replicated.image.topics_by_name["t"].partitions[0].isr == (1,)
    again = alter(replicated, partition_epoch=1, new_isr_with_epochs={1: -1, 2: -1})
    assert (again.error_code, again.isr, again.partition_epoch) == (0, [1, 2], 2)
    unchanged = alter(replicated, partition_epoch=2, new_isr_with_epochs={1: -1, 2: -1})
    assert (unchanged.error_code, unchanged.partition_epoch) == (0, 2)
    assert replicated.records == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic_id": UUID(int=9)}, "UNKNOWN_TOPIC_ID"),
        ({"partition_index": 9}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"leader_epoch": 5}, "NOT_CONTROLLER"),
        ({"partition_epoch": 5}, "NOT_CONTROLLER"),
        ({"leader_epoch": -1}, "FENCED_LEADER_EPOCH"),
        ({"sender": 2}, "INVALID_REQUEST"),
        ({"partition_epoch": -1}, "INVALID_UPDATE_VERSION"),
        ({"new_isr_with_epochs": {1: -1, 9: -1}}, "INVALID_REQUEST"),
        ({"new_isr_with_epochs": {2: -1}}, "INVALID_REQUEST"),
        ({"leader_recovery_state": 1}, "INVALID_REQUEST"),
        ({"leader_recovery_state": 7}, "INVALID_REQUEST"),
        ({"new_isr_with_epochs": {1: -1, 3: -1}}, "INELIGIBLE_REPLICA"),
        ({"new_isr_with_epochs": {1: -1, 2: 12345}}, "INELIGIBLE_REPLICA"),
    ],
)
def test_refused_isr_changes(replicated: World, fields: dict[str, Any], code: str) -> None:
    assert ErrorCode(alter(replicated, **fields).error_code).name == code
    assert replicated.records == []


def assign(world: World, directory: UUID, topic_id: UUID, index: int, broker_id: int = 1) -> Any:
    data = AssignReplicasToDirsRequest
    request = data(
        broker_id=broker_id,
        broker_epoch=world.image.brokers[broker_id].epoch,
        directories=[
            data.DirectoryData(
                id=directory,
                topics=[
                    data.TopicData(
                        topic_id=topic_id, partitions=[data.PartitionData(partition_index=index)]
                    )
                ],
            )
        ],
    )
    response = world.apply(assign_replicas_to_dirs(world.controller, request))
    answer = response.directories[0].topics[0].partitions[0]
    return ErrorCode(answer.error_code).name


def test_replicas_are_assigned_to_folders(new_world: Any) -> None:
    world = new_world()
    request = world.registration(1, log_dirs=[500, 501])
    epoch = world.apply(register_broker(world.controller, request)).broker_epoch
    world.apply(unfence_broker(world.controller, broker_id=1, broker_epoch=epoch))
    topic_id = world.create("t").topic_id
    assert world.image.partition(topic_id, 0).directories == (UUID(int=1),)
    assert assign(world, UUID(int=501), topic_id, 0) == "NONE"
    assert world.image.partition(topic_id, 0).directories == (UUID(int=501),)
    assert assign(world, UUID(int=501), topic_id, 0) == "NONE"
    assert world.records == []
    # A folder the broker does not have any more takes the replica with it.
    assert assign(world, UUID(int=777), topic_id, 0) == "NONE"
    assert world.image.partition(topic_id, 0).leader == -1
    assert assign(world, UUID(int=501), UUID(int=9), 0) == "UNKNOWN_TOPIC_ID"
    assert assign(world, UUID(int=501), topic_id, 9) == "UNKNOWN_TOPIC_OR_PARTITION"
    world.add_broker(2)
    assert assign(world, UUID(int=2000), topic_id, 0, 2) == "NOT_LEADER_OR_FOLLOWER"


def test_producer_ids_come_in_blocks_and_never_twice(world: World) -> None:
    epoch = world.image.brokers[1].epoch
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    blocks = [world.apply(allocate_producer_ids(world.controller, request)) for _ in range(3)]
    assert [(b.producer_id_start, b.producer_id_len) for b in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    with pytest.raises(ApiError) as caught:
        allocate_producer_ids(
            world.controller, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch + 1)
        )
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


class TestLogFolders:
    """Broker 1 has folders 1001 and 1002; partition 0 lies in the first, 1 in the second."""

    @pytest.fixture
    def two_folders(self, new_world: Any) -> Any:
        world = new_world()
        request = world.registration(1, incarnation=1, log_dirs=[1001, 1002])
        epoch = world.apply(register_broker(world.controller, request)).broker_epoch
        world.apply(unfence_broker(world.controller, broker_id=1, broker_epoch=epoch))
        world.create("t", 2)
        self.assign(world, {0: 1001, 1: 1002})
        return world

    def assign(self, world: Any, folders: dict[int, int]) -> None:
        topic_id = world.image.topics_by_name["t"].id
        broker = world.image.brokers[1]
        request = AssignReplicasToDirsRequest(
            broker_id=1,
            broker_epoch=broker.epoch,
            directories=[
                AssignReplicasToDirsRequest.DirectoryData(
                    id=UUID(int=folder),
                    topics=[
                        AssignReplicasToDirsRequest.TopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequest.PartitionData(partition_index=index)
                            ],
                        )
                    ],
                )
                for index, folder in folders.items()
            ],
        )
        world.apply(assign_replicas_to_dirs(world.controller, request))

    def fail(self, world: Any, *folders: int) -> None:
        world.apply(
            take_log_dirs_offline(
                world.controller,
                broker_id=1,
                broker_epoch=world.image.brokers[1].epoch,
                directories={UUID(int=folder) for folder in folders},
            )
        )

    def restart(self, world: Any, *folders: int, clean: bool = False) -> None:
        old = world.image.brokers[1]
        request = world.registration(
            1,
            incarnation=old.incarnation_id.int + 1,
            log_dirs=folders,
            previous_epoch=old.epoch if clean else -1,
        )
        epoch = world.apply(register_broker(world.controller, request)).broker_epoch
        world.apply(unfence_broker(world.controller, broker_id=1, broker_epoch=epoch))

    def leaders(self, world: Any) -> list[int]:
        return [p.leader for p in world.image.topics_by_name["t"].partitions.values()]

    def test_a_failed_folder_takes_only_its_partitions(self, two_folders: Any) -> None:
        self.fail(two_folders, 1002)
        kept, lost = two_folders.image.topics_by_name["t"].partitions.values()
        assert (kept.leader, kept.leader_epoch, kept.isr) == (1, 0, (1,))
        assert (lost.leader, lost.leader_epoch, lost.isr, lost.elr) == (-1, 1, (), (1,))
        assert two_folders.image.brokers[1].log_dirs == (UUID(int=1001),)
        assert two_folders.image.brokers[1].active

    def test_a_failure_is_told_once_and_unknown_folders_are_nobodys(self, two_folders: Any) -> None:
        self.fail(two_folders, 1002, 77)
        self.fail(two_folders, 1002)
        assert two_folders.records == []

    def test_another_replica_takes_over(self, two_folders: Any) -> None:
        world = two_folders
        world.add_broker(2)
        topic = world.topic("both", -1, -1, assignments={0: [1, 2]})
        world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
        partition = world.image.topics_by_name["both"].partitions[0]
        record = PartitionChangeRecord(
            partition_id=0,
            topic_id=world.image.topics_by_name["both"].id,
            directories=[UUID(int=1002), partition.directories[1]],
        )
        world.controller.replay([record], base_offset=world.controller.next_offset)
        self.fail(world, 1002)
        moved = world.image.topics_by_name["both"].partitions[0]
        assert (moved.leader, moved.isr) == (2, (2,))

    @pytest.mark.parametrize("clean", [True, False])
    def test_a_mended_folder_leads_again(self, two_folders: Any, clean: bool) -> None:
        self.fail(two_folders, 1002)
        self.restart(two_folders, 1001, 1002, clean=clean)
        assert self.leaders(two_folders) == [1, 1]
        mended = two_folders.image.topics_by_name["t"].partitions[1]
        assert (mended.isr, mended.elr) == ((1,), ())
        assert mended.leader_recovery_state == LeaderRecoveryState.RECOVERED

    @pytest.mark.parametrize("clean", [True, False])
    def test_a_folder_missing_at_a_start(self, two_folders: Any, clean: bool) -> None:
        self.restart(two_folders, 1001, clean=clean)
        assert self.leaders(two_folders) == [1, -1]
        self.restart(two_folders, 1001, clean=clean)
        assert self.leaders(two_folders) == [1, -1]
        self.restart(two_folders, 1001, 1002, clean=clean)
        assert self.leaders(two_folders) == [1, 1]

    def test_a_replica_that_found_another_folder_leads_again(self, two_folders: Any) -> None:
        self.restart(two_folders, 1001)
        self.assign(two_folders, {1: 1001})
        assert self.leaders(two_folders) == [1, 1]

    def test_a_stale_broker_is_refused(self, two_folders: Any) -> None:
        with pytest.raises(ApiError) as caught:
            take_log_dirs_offline(
                two_folders.controller, broker_id=1, broker_epoch=-7, directories={UUID(int=1002)}
            )
        assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH

    def test_cordoned_folders_take_no_new_replicas(self, two_folders: Any) -> None:
        world = two_folders

        def cordon(*folders: int) -> None:
            ids = {UUID(int=folder) for folder in folders}
            epoch = world.image.brokers[1].epoch
            decision = cordon_log_dirs(
                world.controller, broker_id=1, broker_epoch=epoch, directories=ids
            )
            world.apply(decision)

        cordon(1001)
        assert world.create("one-left").error_code == 0
        cordon(1002, 1001)
        assert world.create("none-left").error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        cordon(1001, 1002)
        assert world.records == []
        cordon()
        assert world.create("free-again").error_code == 0


def test_partitions_that_are_alike_change_as_each_would_alone(new_world: Any) -> None:
    """One election serves all partitions with the same replicas, ISR and leader."""
    world = new_world(min_insync_replicas=2)
    epochs = {broker_id: world.add_broker(broker_id) for broker_id in (1, 2, 3, 4)}
    for factor in (1, 2, 3):
        world.create(f"of-{factor}", 40, factor, unclean__leader__election__enable="true")
        world.create(f"clean-{factor}", 40, factor)
    # Epochs and ISRs differ from here on.
    for broker_id in (2, 3):
        world.apply(
            fence_broker(world.controller, broker_id=broker_id, broker_epoch=epochs[broker_id])
        )
    world.apply(unfence_broker(world.controller, broker_id=3, broker_epoch=epochs[3]))
    partitions = [
        (topic, index, partition)
        for topic in world.image.topics_by_id.values()
        for index, partition in topic.partitions.items()
    ]
    for clean in (True, False):
        together = PartitionChanges(world.controller, removed=1)
        alone = []
        for topic, index, partition in partitions:
            together.remove(topic, index, partition, clean=clean)
            single = PartitionChanges(world.controller, removed=1)
            single.remove(topic, index, partition, clean=clean)
            alone += single.records
            assert together.partition(topic, index) == single.partition(topic, index)
        assert together.records == alone
        assert len(alone) > 100
