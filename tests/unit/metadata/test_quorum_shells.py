"""The metadata of several nodes: elected, replicated, taken over, cut, fetched and voted on."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.metadata import shell as metadata_shell
from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.raft.machine.errors import MetadataError
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    DescribeQuorumRequest,
    FeatureLevelRecord,
)
from support.metadata_quorum import (
    Quorum,
    beat,
    create,
    delete,
    now_ms,
    play,
    register,
    registration,
)

NO_BEATS = {"metadata_max_idle_interval_ms": "0"}


@pytest.fixture
def new_quorum(tmp_path: Path, new_world: Any) -> Callable[..., Quorum]:
    return lambda **options: Quorum(tmp_path, new_world().controller.rules, **options)


@pytest.mark.parametrize("static", [False, True])
def test_all_have_what_the_active_one_decided_and_lose_nothing_with_it(
    new_quorum: Any, static: bool
) -> None:
    voters = {"controller_quorum_voters": "1@localhost:1,2@localhost:2,3@localhost:3"}
    quorum: Quorum = new_quorum(**(voters if static else {}))

    async def main() -> None:
        first = await quorum.start()
        first_id = first.leader_id
        await register(quorum)
        created = await quorum.run(create("a", "b", partitions=3))
        image = await quorum.until_equal()
        assert sorted(image.topics_by_name) == ["a", "b"]
        follower = next(n for n in quorum.nodes.values() if n.node_id != first_id)
        assert not follower.shell.is_active
        with pytest.raises(ApiError) as refused:
            await quorum.run_on(follower.node_id, create("c"))
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        with pytest.raises(ApiError):
            _ = follower.shell.controller
        quorum.nodes[first_id].kill()
        second = await quorum.active()
        assert second.leader_id != first_id
        assert second.leader_epoch > first.leader_epoch
        assert second.controller.image.topics_by_name["a"].id == created.topics[0].topic_id
        await quorum.run(delete("b"))
        await quorum.nodes[first_id].start()
        image = await quorum.until_equal()
        assert list(image.topics_by_name) == ["a"]
        assert image.brokers[11].active
        await quorum.stop()

    play(main())


def test_what_a_leader_without_a_majority_appended_is_cut_and_answered_so(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(**NO_BEATS)

    async def main() -> None:
        old = await quorum.start()
        old_id = old.leader_id
        await register(quorum)
        await quorum.until_equal()
        end = old.raft.log.end_offset
        quorum.isolate(old_id)
        lost = asyncio.ensure_future(quorum.run_on(old_id, create("lost", partitions=5)))
        await quorum.until(lambda: old.raft.log.end_offset > end)
        others = [n.shell for n in quorum.nodes.values() if n.node_id != old_id]
        new = await quorum.until(lambda: next((s for s in others if s.is_active), None))
        await quorum.run_on(new.leader_id, create("kept"))
        with pytest.raises(ApiError) as refused:
            await lost
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert not old.is_active
        assert "lost" not in old.image.topics_by_name
        quorum.heal()
        image = await quorum.until_equal()
        assert list(image.topics_by_name) == ["kept"]
        assert old.raft.log.end_offset == new.raft.log.end_offset
        await quorum.stop()

    play(main())


def test_a_new_leader_goes_on_from_what_the_old_one_could_not_commit(new_quorum: Any) -> None:
    """Replicated, but not known to be committed when the leader died: it must not be lost, nor be
    decided a second time."""
    quorum: Quorum = new_quorum(**NO_BEATS)

    async def main() -> None:
        old = await quorum.start()
        old_id = old.leader_id
        await register(quorum)
        await quorum.until_equal()
        others = [n.shell for n in quorum.nodes.values() if n.node_id != old_id]
        end = old.raft.log.end_offset
        unanswered = asyncio.ensure_future(quorum.run_on(old_id, create("a")))
        await quorum.until(lambda: any(s.raft.log.end_offset > end for s in others))
        assert "a" not in old.image.topics_by_name
        quorum.nodes[old_id].kill()
        await quorum.active()
        twin = await quorum.run(create("a"))
        assert twin.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        image = await quorum.until_equal()
        assert list(image.topics_by_name) == ["a"]
        unanswered.cancel()
        await quorum.stop()

    play(main())


def test_a_leader_that_stops_hands_over_at_once(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        first = await quorum.start()
        await register(quorum)
        changes: list[Any] = []
        for node in quorum.nodes.values():
            tell = partial(lambda shell: changes.append(shell.controller_node()), node.shell)
            node.shell.on_leader_changed(tell)
        before = now_ms()
        await quorum.nodes[first.leader_id].stop()
        assert now_ms() - before < 100
        second = await quorum.active()
        assert now_ms() - before < 200
        assert changes[-1] == second.controller_node()
        await quorum.run(create("a"))
        await quorum.stop()

    play(main())


def test_the_last_of_a_quorum_stops_in_bounded_time(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        active = await quorum.start()
        for node in quorum.nodes.values():
            if node.node_id != active.leader_id:
                node.kill()
        waiting = asyncio.ensure_future(
            quorum.run_on(
                active.leader_id,
                lambda controller: register_broker(controller, registration(12), now_ms=now_ms()),
            )
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        before = now_ms()
        await quorum.nodes[active.leader_id].stop()
        assert now_ms() - before <= 2_100
        with pytest.raises(ApiError) as refused:
            await waiting
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    play(main())


def test_a_broker_follows_without_a_vote(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        await quorum.start()
        broker = quorum.add(11)
        await broker.start()
        await register(quorum)
        await quorum.run(create("a"))
        image = await quorum.until_equal()
        assert list(image.topics_by_name) == ["a"]
        active = await quorum.active()
        assert broker.shell.controller_node() == active.controller_node()
        assert 11 not in broker.shell.voters.voters
        assert not any(delta.from_snapshot for delta in broker.deltas[1:])
        described = active.service.describe_quorum(describe())
        assert [o.replica_id for o in described.topics[0].partitions[0].observers] == [11]
        quorum.nodes[active.leader_id].kill()
        await quorum.active()
        await quorum.run(create("b"))
        await quorum.until_equal()
        assert sorted(broker.shell.image.topics_by_name) == ["a", "b"]
        await quorum.stop()

    play(main())


def describe() -> DescribeQuorumRequest:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def test_who_was_away_too_long_gets_a_snapshot_and_learns_what_is_gone(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(
        metadata_log_max_record_bytes_between_snapshots="3000",
        metadata_max_retention_bytes="4000",
        internal_metadata_log_segment_bytes="2000",
        controller_quorum_fetch_snapshot_max_bytes="300",
        **NO_BEATS,
    )

    async def main() -> None:
        await quorum.start()
        broker = quorum.add(12)
        await broker.start()
        await register(quorum)
        gone = (await quorum.run(create("gone"))).topics[0].topic_id
        await quorum.run(create("stays"))
        await quorum.until_equal()
        # It keeps what it had in memory: as if its process had been paused.
        quorum.isolate(12)
        await quorum.run(delete("gone"))
        for number in range(40):
            await quorum.run(create(f"t{number}", partitions=3))
        active = await quorum.active()
        await quorum.until(lambda: active.raft.log.start_offset > broker.shell.offset + 1)
        known = len(broker.deltas)
        quorum.heal()
        image = await quorum.until_equal()
        assert "gone" not in image.topics_by_name
        whole = [delta for delta in broker.deltas[known:] if delta.from_snapshot]
        assert len(whole) == 1
        assert list(whole[0].deleted_topics) == [gone]
        stays = image.topics_by_name["stays"]
        assert not whole[0].topics[stays.id].created
        assert whole[0].topics[image.topics_by_name["t0"].id].created
        assert broker.shell.raft.log.start_offset > 0
        # One that was never there begins the same way, and so does a controller.
        await quorum.add(13).start()
        await quorum.until_equal()
        follower = next(i for i in (1, 2, 3) if i != active.leader_id)
        quorum.nodes[follower].kill()
        for number in range(40, 80):
            await quorum.run(create(f"t{number}", partitions=3))
        await quorum.nodes[follower].start()
        await quorum.until_equal()
        await quorum.stop()

    play(main())


def test_every_node_writes_its_snapshots_with_the_voters_of_then(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(metadata_log_max_record_bytes_between_snapshots="3000")

    async def main() -> None:
        await quorum.start()
        await register(quorum)
        await quorum.run(create("a", partitions=50))
        await quorum.until_equal()
        for node in quorum.nodes.values():
            await quorum.until(partial(lambda log: len(log.snapshots) > 1, node.shell.raft.log))
            found = node.shell.raft.log.latest_snapshot()
            assert found is not None
            assert found[1].voters == node.shell.voters
            assert found[1].kraft_version == 1
        for node in quorum.nodes.values():
            node.kill()
        for node in quorum.nodes.values():
            await node.start()
            # All that is sure before anybody was asked.
            assert node.shell.offset >= 0
        image = await quorum.until_equal()
        assert len(image.topics_by_name["a"].partitions) == 50
        await quorum.stop()

    play(main())


def test_a_silent_broker_is_fenced_also_by_a_new_controller(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(broker_session_timeout_ms="3000")

    async def main() -> None:
        await quorum.start()
        epoch = await register(quorum)
        for _ in range(10):
            await asyncio.sleep(1)
            assert not (await beat(quorum, 11, epoch)).is_fenced
        quorum.nodes[(await quorum.active()).leader_id].kill()
        active = await quorum.active()
        took_over = now_ms()
        assert active.controller.image.brokers[11].active
        with pytest.raises(ApiError) as refused:
            await register(quorum, incarnation=2)
        assert refused.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await quorum.until(lambda: active.image.brokers[11].fenced)
        assert 2_500 < now_ms() - took_over < 3_500
        await register(quorum, incarnation=2)
        assert active.image.brokers[11].active
        await quorum.stop()

    play(main())


def test_a_controller_that_was_stopped_for_a_while_fences_nobody_for_it(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(voters=1, broker_session_timeout_ms="3000")

    async def main() -> None:
        active = await quorum.start()
        epoch = await register(quorum)
        process = quorum.nodes[1].process
        process.pause()
        await asyncio.sleep(20)
        process.resume(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        assert active.image.brokers[11].active
        assert not (await beat(quorum, 11, epoch)).is_fenced
        before = now_ms()
        await quorum.until(lambda: active.image.brokers[11].fenced)
        assert 2_900 < now_ms() - before < 3_500
        await quorum.stop()

    play(main())


def test_idle_controllers_write_no_op_records(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        active = await quorum.start()
        await asyncio.sleep(1)
        end, heard = active.raft.log.end_offset, len(quorum.nodes[1].deltas)
        await asyncio.sleep(5)
        assert 8 <= active.raft.log.end_offset - end <= 11
        assert len(quorum.nodes[1].deltas) == heard
        await quorum.stop()

    play(main())


@pytest.mark.parametrize("node_id", [3, 11])
def test_a_node_of_another_cluster_ends(new_quorum: Any, node_id: int) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        await quorum.start()
        if node_id == 11:
            quorum.add(11)
        else:
            await quorum.nodes[node_id].stop()
        stranger = quorum.nodes[node_id]
        stranger.cluster_id = "T3RoZXJDbHVzdGVyMDAwMA"
        await stranger.start()
        await quorum.until(lambda: stranger.failures)
        told = str(stranger.failures.pop())
        assert re.search("belong to cluster T3RoZXJDbHVzdGVyMDAwMA.* Format the log dir", told)
        assert stranger.shell.offset == -1 or node_id == 3
        stranger.kill()
        await register(quorum)
        await quorum.stop()

    play(main())


def test_without_a_majority_it_says_so_now_and_then(
    new_quorum: Any, caplog: pytest.LogCaptureFixture
) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        await quorum.start()
        for node_id in (2, 3):
            quorum.nodes[node_id].kill()
        await asyncio.sleep(60)
        assert (
            quorum.nodes[1].shell.controller_node() is None or not quorum.nodes[1].shell.is_active
        )
        with pytest.raises(ApiError) as refused:
            await quorum.run_on(1, create("a"))
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        for node_id in (2, 3):
            await quorum.nodes[node_id].start()
        await register(quorum)
        await quorum.stop()

    with caplog.at_level(logging.WARNING):
        play(main())
    told = [r.getMessage() for r in caplog.records if "no leader of the metadata" in r.getMessage()]
    assert 8 <= len(told) <= 14
    assert "1 of 3 voters (1, 2, 3) can be reached, a leader needs 2" in told[-1]


def test_a_broker_that_finds_no_controller_says_whom_it_asked(
    new_quorum: Any, caplog: pytest.LogCaptureFixture
) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        await quorum.add(11).start()
        await asyncio.sleep(12)
        assert quorum.nodes[11].shell.controller_node() is None
        await quorum.start()
        await quorum.until_equal()
        await quorum.stop()

    with caplog.at_level(logging.WARNING):
        play(main())
    told = [r.getMessage() for r in caplog.records if "no leader of the metadata" in r.getMessage()]
    assert told[0].endswith("bootstrap.servers (localhost:1, localhost:2, localhost:3) knows one")


def test_a_newer_metadata_version_ends_a_follower(new_quorum: Any, monkeypatch: Any) -> None:
    quorum: Quorum = new_quorum(**NO_BEATS)

    async def main() -> None:
        await quorum.start()
        broker = quorum.add(11)
        await broker.start()
        await quorum.until_equal()
        directory = broker.shell.raft.log.directory
        monkeypatch.setattr(metadata_shell, "check_metadata_version", _refused_in(directory))
        record = FeatureLevelRecord(name="metadata.version", feature_level=30)
        await quorum.run(lambda controller: Decision((record,), None))
        await quorum.until(lambda: broker.failures)
        assert isinstance(broker.failures.pop(), MetadataError)
        broker.kill()
        await quorum.stop()

    play(main())


def _refused_in(directory: str) -> Callable[[str, int | None], None]:
    def check(checked: str, level: int | None) -> None:
        if checked == directory:
            raise MetadataError(f"metadata.version {level} is not known")

    return check
