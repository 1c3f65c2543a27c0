"""Heartbeats: sessions, fencing and unfencing, controlled shutdown, folders."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from moldau.broker.metadata.machine.broker_lifecycle import process_heartbeat
from moldau.broker.metadata.machine.brokers import fence_broker, register_broker
from moldau.broker.metadata.machine.heartbeats import OFFSET_MAX, BrokerHeartbeats, BrokerState
from moldau.broker.metadata.machine.topics import create_topics
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationChangeRecord,
    CreateTopicsRequest,
)

World = Any


def beat(world: World, broker_id: int, now_ms: int = 0, **fields: Any) -> Any:
    made: dict[str, Any] = {
        "broker_id": broker_id,
        "broker_epoch": world.image.brokers[broker_id].epoch,
        "current_metadata_offset": world.controller.next_offset - 1,
    }
    request = BrokerHeartbeatRequest(**(made | fields))
    return world.apply(process_heartbeat(world.controller, request, now_ms=now_ms))


def outcome(answer: Any) -> tuple[bool, bool, bool]:
    return (answer.is_caught_up, answer.is_fenced, answer.should_shut_down)


@pytest.fixture
def cluster(new_world: Any) -> World:
    """Brokers 1, 2 and 3 alive, topic t on all of them and led by 2."""
    world = new_world()
    world.controller.lead(now_ms=0)
    for broker_id in (1, 2, 3):
        world.add_broker(broker_id, fenced=True)
        beat(world, broker_id)
    topic = world.topic("t", -1, -1, assignments={0: [2, 3, 1]})
    world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
    return world


def partition(world: World) -> Any:
    return world.image.topics_by_name["t"].partitions[0]


def test_a_broker_serves_once_it_has_read_its_registration(new_world: Any) -> None:
    world = new_world()
    world.controller.lead(now_ms=0)
    epoch = world.add_broker(1, fenced=True)
    registered_at = world.controller.next_offset - 1
    early = beat(world, 1, current_metadata_offset=registered_at - 1)
    assert outcome(early) == (False, True, False)
    unwilling = beat(world, 1, want_fence=True)
    assert outcome(unwilling) == (True, True, False)
    assert world.records == []
    ready = beat(world, 1, current_metadata_offset=registered_at)
    assert outcome(ready) == (True, False, False)
    assert world.records == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)
    ]
    assert outcome(beat(world, 1)) == (True, False, False)
    assert world.records == []


def test_without_leading_nobody_is_listened_to(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        beat(world, 1)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    world.controller.lead(now_ms=0)
    beat(world, 1)
    world.controller.resign()
    assert world.controller.due_at_ms() is None
    assert world.controller.on_time(10**9) is None


@pytest.mark.parametrize(("broker_id", "broker_epoch"), [(1, 1), (9, 3)])
def test_strangers_get_no_session(cluster: World, broker_id: int, broker_epoch: int) -> None:
    due_ms = cluster.controller.due_at_ms()
    request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    with pytest.raises(ApiError) as caught:
        process_heartbeat(cluster.controller, request, now_ms=5)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.controller.due_at_ms() == due_ms


def test_the_silent_are_fenced_one_by_one(cluster: World) -> None:
    beat(cluster, 1, now_ms=500)
    assert cluster.controller.due_at_ms() == 9_001
    assert cluster.controller.on_time(9_000) is None
    fenced, reported = [], []
    while (decision := cluster.controller.on_time(9_001)) is not None:
        cluster.apply(decision)
        reported.append(decision.response)
        fenced.append([each.id for each in cluster.image.brokers.values() if each.fenced])
    assert fenced == [[2], [2, 3]]
    epochs = {each.id: each.epoch for each in cluster.image.brokers.values()}
    assert reported == [
        f"fencing broker {each} at epoch {epochs[each]}: no heartbeat for 9000 ms"
        for each in (2, 3)
    ]
    assert (partition(cluster).leader, partition(cluster).isr) == (1, (1,))
    assert cluster.controller.due_at_ms() == 9_501
    # Who comes back leads nothing that has a leader, and may join again.
    assert outcome(beat(cluster, 2, now_ms=9_100)) == (True, False, False)
    assert partition(cluster).leader == 1


def test_the_records_of_a_fencing_end_with_it(cluster: World) -> None:
    cluster.apply(cluster.controller.on_time(9_001))
    epoch = cluster.image.brokers[1].epoch
    assert cluster.records[-1] == BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=epoch, fenced=1
    )


def test_a_new_controller_gives_everybody_a_session_but_who_has_surely_gone(
    cluster: World,
) -> None:
    cluster.controller.lead(now_ms=50_000, departed={3})
    brokers = cluster.image.brokers
    alive = [cluster.controller.has_session(brokers[each], 59_000) for each in (1, 2, 3)]
    assert alive == [True, True, False]
    assert not cluster.controller.has_session(brokers[1], 59_001)
    again = cluster.registration(3, incarnation=77)
    cluster.apply(register_broker(cluster.controller, again, now_ms=50_000))
    with pytest.raises(ApiError) as caught:
        register_broker(cluster.controller, cluster.registration(2, incarnation=78), now_ms=50_000)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


class TestControlledShutdown:
    def test_leaders_go_first_and_everybody_has_seen_it(self, cluster: World) -> None:
        first = beat(cluster, 2, want_shut_down=True)
        assert outcome(first) == (True, False, False)
        assert (partition(cluster).leader, partition(cluster).isr) == (3, (3, 1))
        moved_at = cluster.controller.next_offset - 1
        # Broker 1 has not heard of it.
        beat(cluster, 3, current_metadata_offset=moved_at)
        assert not beat(cluster, 2, want_shut_down=True).should_shut_down
        beat(cluster, 1, current_metadata_offset=moved_at)
        last = beat(cluster, 2, want_shut_down=True)
        assert outcome(last) == (True, True, True)
        assert cluster.image.brokers[2].fenced

    def test_who_leads_nothing_goes_at_once(self, cluster: World) -> None:
        assert beat(cluster, 1, want_shut_down=True).should_shut_down
        assert partition(cluster).isr == (2, 3)
        assert beat(cluster, 1, want_shut_down=True).should_shut_down
        assert cluster.records == []

    def test_who_goes_gets_no_new_replicas_and_joins_no_isr(self, cluster: World) -> None:
        beat(cluster, 2, want_shut_down=True)
        created = cluster.create("new", 4, 2)
        assert created.error_code == 0
        placed = cluster.image.topics_by_name["new"].partitions.values()
        assert all(2 not in each.replicas for each in placed)
        assert cluster.create("wide", 1, 3).error_code == ErrorCode.INVALID_REPLICATION_FACTOR

    def test_after_a_change_of_controllers_it_goes_on(self, cluster: World) -> None:
        beat(cluster, 2, want_shut_down=True)
        cluster.controller.lead(now_ms=100)
        assert beat(cluster, 2, want_shut_down=True, now_ms=200).should_shut_down


class TestFolders:
    @pytest.fixture
    def folders(self, new_world: Any) -> World:
        """Broker 1 with two folders and broker 2; partition 0 of t lies in 1001."""
        world = new_world()
        world.controller.lead(now_ms=0)
        world.apply(register_broker(world.controller, world.registration(1, log_dirs=[1001, 1002])))
        beat(world, 1)
        world.add_broker(2)
        topic = world.topic("t", -1, -1, assignments={0: [1, 2]})
        world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
        return world

    def test_a_failed_folder_is_told_by_heartbeat(self, folders: World) -> None:
        beat(folders, 1, offline_log_dirs=[UUID(int=1001)])
        # Nobody had said yet in which folder the replica lies.
        assert partition(folders).leader == 1
        assert folders.image.brokers[1].log_dirs == (UUID(int=1002),)

    def test_what_lies_in_a_failed_folder_is_not_led_by_who_comes_back(
        self, new_world: Any
    ) -> None:
        world = new_world()
        world.controller.lead(now_ms=0)
        world.add_broker(1)
        world.create("t")
        epoch = world.image.brokers[1].epoch
        world.apply(fence_broker(world.controller, broker_id=1, broker_epoch=epoch))
        assert partition(world).leader == -1
        beat(world, 1, offline_log_dirs=[UUID(int=1000)])
        assert partition(world).leader == -1
        assert not world.image.brokers[1].fenced

    def test_one_heartbeat_may_fence_and_lose_a_folder(self, folders: World) -> None:
        before = partition(folders).partition_epoch
        beat(folders, 1, want_fence=True, offline_log_dirs=[UUID(int=1001)])
        assert (partition(folders).leader, partition(folders).isr) == (2, (2,))
        assert partition(folders).partition_epoch == before + 1

    def test_cordoned_folders(self, folders: World) -> None:
        beat(folders, 1, cordoned_log_dirs=[UUID(int=1002), UUID(int=1001)])
        assert folders.image.brokers[1].cordoned_log_dirs == (UUID(int=1001), UUID(int=1002))
        beat(folders, 1, cordoned_log_dirs=None)
        assert folders.records == []


@pytest.mark.parametrize(
    ("fenced", "shutting_down", "wants", "expected"),
    [
        pytest.param(True, False, "", BrokerState.UNFENCED, id="ready"),
        pytest.param(True, False, "f", BrokerState.FENCED, id="not ready"),
        pytest.param(True, False, "s", BrokerState.SHUTDOWN_NOW, id="fenced, goes"),
        pytest.param(False, False, "", BrokerState.UNFENCED, id="serves"),
        pytest.param(False, False, "f", BrokerState.FENCED, id="wants a rest"),
        pytest.param(False, False, "fs", BrokerState.SHUTDOWN_NOW, id="goes in a hurry"),
        pytest.param(False, False, "s", BrokerState.SHUTDOWN_NOW, id="leads nothing, goes"),
        pytest.param(False, False, "sl", BrokerState.CONTROLLED_SHUTDOWN, id="leads, waits"),
        pytest.param(False, True, "sl", BrokerState.CONTROLLED_SHUTDOWN, id="still leads"),
        pytest.param(False, True, "s", BrokerState.SHUTDOWN_NOW, id="may go"),
        pytest.param(False, True, "", BrokerState.SHUTDOWN_NOW, id="a shutdown is not undone"),
    ],
)
def test_states(fenced: bool, shutting_down: bool, wants: str, expected: BrokerState) -> None:
    heartbeats = BrokerHeartbeats(session_timeout_ms=10)
    heartbeats.register(1, fenced=fenced)
    if shutting_down:
        heartbeats.begin_shutdown(1, 5)
    after = heartbeats.next_state(
        1,
        want_fence="f" in wants,
        want_shut_down="s" in wants,
        caught_up=True,
        has_leaderships="l" in wants,
    )
    assert after == expected


def test_the_slowest_live_broker_counts() -> None:
    heartbeats = BrokerHeartbeats(session_timeout_ms=10)
    assert heartbeats.lowest_active_offset() == OFFSET_MAX
    for broker_id, offset in ((1, 7), (2, 5), (3, 5)):
        heartbeats.register(broker_id, fenced=False)
        heartbeats.touch(broker_id, 0, now_ms=0, fenced=False, metadata_offset=offset)
    assert heartbeats.lowest_active_offset() == 5
    heartbeats.begin_shutdown(2, 9)
    heartbeats.touch(3, 0, now_ms=0, fenced=True, metadata_offset=6)
    assert heartbeats.lowest_active_offset() == 7
    heartbeats.remove(1)
    assert heartbeats.lowest_active_offset() == OFFSET_MAX
