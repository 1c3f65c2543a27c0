"""The coordinator over a log in memory: producer ids, markers, leadership, timeouts."""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.broker.coordinator.transaction.machine.metadata import (
    PREPARE_COMMIT,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import Marker
from moldau.broker.coordinator.transaction.sending import MarkerSending
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ListTransactionsRequest
from support.transaction_world import P, World, code_of, play, settle

# Markers.


def test_a_commit_reaches_every_partition() -> None:
    async def scenario(world: World) -> None:
        await world.begin(0, 1)
        assert await world.coordinator.end_transaction("t", P, 0, committed=True) == (P, 1)
        await settle()
        (marker,) = world.markers.written
        assert marker == Marker(P, 1, 4, True, 2, (("topic", 0), ("topic", 1)))
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_the_client_does_not_wait_for_markers() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin()
        assert await world.coordinator.end_transaction("t", P, 0, committed=False) == (P, 1)
        await settle()
        assert await world.state() == "PrepareAbort"
        assert (
            await code_of(world.coordinator.init_producer_id("t", 60_000))
            is ErrorCode.CONCURRENT_TRANSACTIONS
        )
        world.markers.gate.set()
        await settle()
        assert await world.state() == "CompleteAbort"

    play(scenario)


def test_the_answer_and_the_markers_wait_for_commit() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.holding = True
        ending = asyncio.ensure_future(world.coordinator.end_transaction("t", P, 0, committed=True))
        await settle()
        assert not ending.done()
        assert not world.markers.written
        world.log.commit()
        assert await ending == (P, 1)
        await settle()
        assert len(world.markers.written) == 1
        world.log.commit()
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_passing_errors_are_tried_again_where_they_were() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors = {
            ("topic", 1): [
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.REQUEST_TIMED_OUT,
                ErrorCode.UNKNOWN_SERVER_ERROR,
            ],
            ("topic", 2): [ErrorCode.NOT_ENOUGH_REPLICAS],
            ("topic", 3): [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT],
        }
        await world.begin(0, 1, 2, 3)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        assert await world.state() == "PrepareCommit"
        await world.clock.advance(20)
        await world.clock.advance(39)
        assert world.places() == [[0, 1, 2, 3], [1, 2]]
        await world.clock.advance(5_000)
        assert world.places() == [[0, 1, 2, 3], [1, 2], [1], [1], [1]]
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_retries_are_bounded_in_rate_not_in_number() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(30_000)
        assert 30 < len(world.markers.written) < 45
        await world.clock.advance(100_000)
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_a_bug_in_a_partition_does_not_leave_a_transaction_open() -> None:
    async def scenario(world: World) -> None:
        world.markers.bug = RuntimeError("as told")
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(1_000)
        assert [str(bug) for bug in world.bugs] == ["as told"]
        world.bugs.clear()
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_partitions_of_deleted_topics_are_dropped() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 100
        await world.begin(0, 1)
        world.topics.missing.add(("topic", 1))
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        assert world.places() == [[0]]
        world.topics.missing.add(("topic", 0))
        await world.clock.advance(1_000)
        assert world.places() == [[0]]
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_whoever_is_superseded_sends_no_more() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors = {
            ("topic", 0): [ErrorCode.TRANSACTION_COORDINATOR_FENCED],
            ("topic", 1): [ErrorCode.REQUEST_TIMED_OUT],
        }
        await world.begin(0, 1)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(60_000)
        assert world.places() == [[0, 1]]
        assert await world.state() == "PrepareCommit"

    play(scenario)


def test_a_partition_that_has_seen_a_newer_epoch_needs_no_marker() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors = {
            ("topic", 0): [ErrorCode.INVALID_PRODUCER_EPOCH],
            ("topic", 1): [ErrorCode.REQUEST_TIMED_OUT],
        }
        await world.begin(0, 1)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await world.clock.advance(60_000)
        assert world.places() == [[0, 1], [1]]
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_a_completion_that_cannot_be_written_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        world.markers.gate.set()
        await world.clock.advance(5_000)
        assert await world.state() == "PrepareCommit"
        world.log.append_error = None
        await world.clock.advance(1_000)
        assert await world.state() == "CompleteCommit"
        assert world.places() == [[0]], "the markers themselves are not repeated"

    play(scenario)


def test_a_doubtful_decision_is_told_when_certain() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.holding = True
        ending = asyncio.ensure_future(world.coordinator.end_transaction("t", P, 0, committed=True))
        await settle()
        await world.clock.advance(30_000)
        assert await code_of(_awaited(ending)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await world.clock.advance(1_000)
        assert not world.markers.written
        world.log.holding = False
        world.log.commit()
        await settle()
        assert await world.state() == "CompleteCommit"
        assert await world.coordinator.end_transaction("t", P, 0, committed=True) == (P, 1)

    play(scenario)


async def _awaited(future: asyncio.Future[Any]) -> Any:
    return await future


# Leadership.


def test_a_new_leader_carries_on_with_its_own_epoch() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin(0)
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        world.coordinator.on_resigned(0, 5)
        await settle()
        assert await world.state() == "NOT_COORDINATOR"
        world.markers.gate = None
        await world.start(6)
        assert [marker.coordinator_epoch for marker in world.markers.written] == [4, 6]
        assert [marker.committed for marker in world.markers.written] == [True, True]
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_after_resignation_nothing_is_sent() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        count = len(world.markers.written)
        world.coordinator.on_resigned(0, 3)
        await world.clock.advance(100)
        assert len(world.markers.written) > count, "an older epoch ends nothing"
        count = len(world.markers.written)
        world.coordinator.on_resigned(0)
        await world.clock.advance(100_000)
        assert len(world.markers.written) == count

    play(scenario)


def test_a_later_election_stops_what_the_earlier_one_began() -> None:
    async def scenario(world: World) -> None:
        world.markers.gate = asyncio.Event()
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        await world.start(9)
        assert world.markers.cancelled_count == 1
        assert [marker.coordinator_epoch for marker in world.markers.written] == [4, 9]
        world.markers.gate.set()
        await settle()
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_a_marker_is_not_sent_once_the_shard_has_moved_on() -> None:
    async def scenario(world: World) -> None:
        prepared = TransactionMetadata(
            transactional_id="t",
            producer_id=P,
            producer_epoch=1,
            timeout_ms=1,
            state=PREPARE_COMMIT,
            partitions=frozenset({("topic", 0)}),
            last_update_timestamp_ms=0,
        )
        world.markers.errors[("topic", 0)] = [ErrorCode.REQUEST_TIMED_OUT] * 10
        sending = MarkerSending(world.markers, world.topics, world.clock, world.bugs.append)
        looks = iter([True, True, False])
        sent = asyncio.ensure_future(sending.send(prepared, 4, lambda: next(looks)))
        await world.clock.advance(1_000)
        assert await sent is False
        assert len(world.markers.written) == 2

    play(scenario)


def test_a_later_election_replaces_an_earlier_one() -> None:
    async def scenario(world: World) -> None:
        world.markers.errors[("topic", 0)] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        await world.begin()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        await world.start(9)
        await world.clock.advance(10_000)
        epochs = [marker.coordinator_epoch for marker in world.markers.written]
        assert epochs == sorted(epochs)
        assert epochs[-1] == 9
        await world.start(8)
        assert await world.state() == "CompleteCommit"

    play(scenario)


def test_without_leadership() -> None:
    async def scenario(world: World) -> None:
        world.coordinator.on_resigned(0)
        run = world.coordinator
        assert await code_of(run.init_producer_id("t", 1)) is ErrorCode.NOT_COORDINATOR
        assert (
            await code_of(run.end_transaction("t", P, 0, committed=True))
            is ErrorCode.NOT_COORDINATOR
        )
        for verify_only in (True, False):
            assert await run.add_partitions("t", P, 0, [("x", 1)], verify_only=verify_only) == {
                ("x", 1): ErrorCode.NOT_COORDINATOR
            }
        run.on_elected(0, 10, world.log)
        assert await code_of(run.init_producer_id("t", 1)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        listed = await run.list_transactions(ListTransactionsRequest())
        assert listed.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    play(scenario)


# Producer ids.


def test_what_happens_while_an_id_is_fetched_is_not_lost() -> None:
    async def scenario(world: World) -> None:
        world.ids.gate = asyncio.Event()
        both = [
            asyncio.ensure_future(world.coordinator.init_producer_id("t", 60_000)) for _ in range(2)
        ]
        await settle()
        world.ids.gate.set()
        assert [await each for each in both] == [(P, 0), (P, 1)], "one id, fenced in turn"

    play(scenario)


def test_no_producer_id_to_be_had() -> None:
    async def scenario(world: World) -> None:
        world.ids.error = ApiError(ErrorCode.NOT_CONTROLLER, "as told")
        error = await code_of(world.coordinator.init_producer_id("t", 60_000))
        assert error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.ids.error = None
        assert await world.coordinator.init_producer_id("t", 60_000) == (P, 0)

    play(scenario)


# Timeouts.


def test_overdue_transactions_are_aborted() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        await world.clock.advance(60_000)
        assert await world.state() == "Ongoing"
        await world.clock.advance(10_000)
        assert await world.state() == "CompleteAbort"
        (marker,) = world.markers.written
        assert (marker.producer_epoch, marker.committed) == (1, False)

    play(scenario)


def test_what_could_not_be_aborted_is_tried_at_the_next_look() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        await world.clock.advance(100_000)
        assert await world.state() == "Ongoing"
        world.log.append_error = None
        await world.clock.advance(10_000)
        assert await world.state() == "CompleteAbort"
        assert len(world.markers.written) == 1

    play(scenario)


def test_one_round_of_aborts_at_a_time() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        await world.coordinator.init_producer_id("u", 60_000)
        errors = await world.coordinator.add_partitions(
            "u", P + 1, 0, [("topic", 0)], verify_only=False
        )
        assert set(errors.values()) == {ErrorCode.NONE}
        world.log.holding = True
        before = world.log.end_offset
        await world.clock.advance(85_000)
        assert world.log.end_offset == before + 1, "the second waits for the first"
        world.log.holding = False
        world.log.commit()
        await settle()
        assert await world.state("u") == "CompleteAbort"

    play(scenario)


def test_idle_ids_expire() -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 60_000)
        await world.clock.advance(3_600_000)
        assert await world.state() == "TRANSACTIONAL_ID_NOT_FOUND"

    play(scenario, transactional_id_expiration_ms=3_600_000)


# Partitions that are added at the same time.


def test_leaders_that_add_partitions_together_wait_for_one_another() -> None:
    async def scenario(world: World) -> None:
        await world.begin(0)
        world.log.holding = True
        adding = [
            asyncio.ensure_future(
                world.coordinator.add_partitions("t", P, 0, [("topic", index)], verify_only=False)
            )
            for index in (1, 2, 3)
        ]
        for _ in adding:
            await settle()
            assert not all(each.done() for each in adding)
            world.log.commit()
        await settle()
        assert [await each for each in adding] == [
            {("topic", index): ErrorCode.NONE} for index in (1, 2, 3)
        ]
        world.log.holding = False
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        assert world.places() == [[0, 1, 2, 3]]

    play(scenario)


def test_who_comes_after_the_end_is_not_kept_waiting() -> None:
    async def scenario(world: World) -> None:
        await world.begin(0)
        world.markers.gate = asyncio.Event()
        await world.coordinator.end_transaction("t", P, 0, committed=True)
        await settle()
        late = await world.coordinator.add_partitions("t", P, 1, [("topic", 1)], verify_only=False)
        assert late == {("topic", 1): ErrorCode.CONCURRENT_TRANSACTIONS}
        world.markers.gate.set()

    play(scenario)
