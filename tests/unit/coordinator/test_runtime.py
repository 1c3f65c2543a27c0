"""Loading, serving and unloading of shards over a log in memory, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from moldau.broker.coordinator.machine.decision import (
    Decision,
    Outbox,
    ProducerStamp,
    Ticket,
    TransactionEnding,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import HeartbeatResponse
from moldau.wire.records import encode_batch, encode_end_txn_marker, read_header
from support.coordinator_scenes import (
    Probe,
    World,
    failure,
    play,
    record,
    settle,
)


class TestLoading:
    def test_replays_everything_then_serves(self) -> None:
        async def scene(world: World) -> None:
            world.log.append([record("a").encode(), record("b").encode()], now_ms=0)
            world.log.append([record("a", value=False).encode()], now_ms=0)
            shard = await world.start()
            assert shard.seen == [
                (0, -1, "a", "value"),
                (1, -1, "b", "value"),
                (2, -1, "a", None),
                "loaded",
            ]

        assert not play(scene).bugs

    @pytest.mark.parametrize("load_buffer_size", [150, 4_096])
    def test_in_pieces_meanwhile_load_in_progress(self, load_buffer_size: int) -> None:
        async def scene(world: World) -> None:
            for index in range(2_500):
                world.log.append([record(f"t{index}").encode()], now_ms=0)
            world.runtime.load(0, 1, world.log)
            turns = 0
            while not world.shards[0].seen or world.shards[0].seen[-1] != "loaded":
                with pytest.raises(ApiError) as raised:
                    world.runtime.read(0, lambda shard: shard)
                assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                await asyncio.sleep(0)
                turns += 1
            assert turns >= 3, "the loop had its turn in between"
            assert len(world.shards[0].seen) == 2_501
            assert await world.runtime.run(0, lambda shard, now_ms: Decision("served")) == "served"

        play(scene, World(load_buffer_size))

    def test_transactions_unknown_types_and_keyless_records(self) -> None:
        async def scene(world: World) -> None:
            key, value = record("a").encode()
            world.log.add(
                encode_batch(
                    [(key, value, 0, ())],
                    base_offset=0,
                    producer_id=7,
                    producer_epoch=0,
                    base_sequence=0,
                    is_transactional=True,
                )
            )
            world.log.add(
                encode_end_txn_marker(
                    producer_id=7,
                    producer_epoch=0,
                    committed=True,
                    coordinator_epoch=0,
                    timestamp=0,
                    base_offset=1,
                )
            )
            world.log.append([(b"\x7f\x00?", b"")], now_ms=0)
            world.log.add(encode_batch([(None, b"", 0, ())], base_offset=3))
            shard = await world.start()
            assert shard.seen == [(0, 7, "a", "value"), ("end", 7, True), "loaded"]

        assert not play(scene).bugs

    def test_a_log_whose_last_offsets_hold_nothing(self) -> None:
        async def scene(world: World) -> None:
            world.log.append([record("a").encode()], now_ms=0)
            # A power failure took what was there; the segment that begins behind it remains.
            world.log.end_offset += 3
            shard = await world.start()
            assert shard.seen == [(0, -1, "a", "value"), "loaded"]

        play(scene)

    def test_a_log_that_cannot_be_read_is_not_served(self) -> None:
        async def scene(world: World) -> None:
            world.log.append([(b"\x00\x01broken", b"")], now_ms=0)
            await world.start()
            with pytest.raises(ApiError) as raised:
                await world.runtime.run(0, lambda shard, now_ms: Decision(None))
            assert raised.value.code is ErrorCode.NOT_COORDINATOR

        assert len(play(scene).bugs) == 1

    def test_where_there_is_no_shard(self) -> None:
        async def scene(world: World) -> None:
            with pytest.raises(ApiError) as raised:
                await world.runtime.run(3, lambda shard, now_ms: Decision(None))
            assert raised.value.code is ErrorCode.NOT_COORDINATOR

        play(scene)

    def test_epochs(self) -> None:
        async def scene(world: World) -> None:
            world.runtime.load(0, 5, world.log)
            world.runtime.load(0, 4, world.log)
            world.runtime.load(0, 5, world.log)
            assert len(world.shards) == 1, "an old or known epoch changes nothing"
            world.runtime.unload(0, 4)
            assert world.runtime.partitions == [0], "a resignation of the past"
            world.runtime.load(0, 6, world.log)
            assert len(world.shards) == 2
            world.runtime.unload(0, 7)
            assert world.runtime.partitions == []
            await settle()
            assert world.shards[0].seen == [], "loading was given up"

        assert not play(scene).bugs


class TestServing:
    def test_the_response_leaves_after_commit_the_state_changes_at_append(self) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            world.log.holding = True
            task = world.spawn(lambda s, now_ms: Decision("done", (record("a"),)))
            await settle()
            assert not task.done()
            assert shard.seen[-1] == (0, -1, "a", "value")
            world.log.commit()
            assert await task == "done"

        play(scene)

    def test_a_read_waits_for_what_it_may_have_seen(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            world.log.holding = True
            write = world.spawn(lambda s, now_ms: Decision("written", (record("a"),)))
            await settle()
            read = world.spawn(lambda s, now_ms: Decision("read"))
            await settle()
            assert not read.done()
            world.log.commit()
            await settle()
            assert (write.result(), read.result()) == ("written", "read")
            # What is committed by now needs no second look.
            again = world.spawn(lambda s, now_ms: Decision("again"))
            await settle()
            assert again.result() == "again"

        play(scene)

    def test_a_write_that_is_not_committed_in_time(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            world.log.holding = True
            task = world.spawn(lambda s, now_ms: Decision("done", (record("a"),)))
            await settle()
            world.clock.advance(4_999)
            await settle()
            assert not task.done()
            world.clock.advance(1)
            await settle()
            assert failure(task) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            world.log.commit()

        assert not play(scene).bugs

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_a_failed_append_changes_nothing(self, error: ErrorCode, told: ErrorCode) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            world.log.append_error = error
            task = world.spawn(
                lambda s, now_ms: Decision("done", (record("a"),), continuation="then")
            )
            await settle()
            assert failure(task) is told
            assert shard.seen == ["loaded", ("written", "then", told)]

        play(scene)

    def test_many_independent_records_go_in_several_batches(self) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            records = tuple(record(f"t{index}") for index in range(1_201))
            await world.runtime.run(0, lambda s, now_ms: Decision(None, records, atomic=False))
            assert [read_header(b).record_count for b in world.log.batches] == [500, 500, 201]
            assert [seen[0] for seen in shard.seen[1:]] == list(range(1_201))

        play(scene)

    def test_commit_announced_in_the_middle_of_an_append(self) -> None:
        """The follow-up of the first write must not overtake the replay of the second."""

        async def scene(world: World) -> None:
            shard = await world.start()
            world.log.holding = True
            first = world.spawn(
                lambda s, now_ms: Decision(
                    "first",
                    (record("a"),),
                    continuation=lambda: Decision(None, (record("follow-up"),)),
                )
            )
            await settle()
            world.log.holding = False
            second = world.spawn(lambda s, now_ms: Decision("second", (record("b"),)))
            await settle()
            assert first.done()
            assert second.done()
            offsets = [seen[0] for seen in shard.seen if isinstance(seen[0], int)]
            assert offsets == [0, 1, 2]
            assert [seen[2] for seen in shard.seen if isinstance(seen[0], int)] == [
                "a",
                "b",
                "follow-up",
            ]

        play(scene)

    def test_outcomes_in_the_order_of_the_decisions(self) -> None:
        """The second write commits both at once, and its own outcome comes after the first's."""

        async def scene(world: World) -> None:
            shard = await world.start()
            world.log.holding = True
            world.spawn(lambda s, now_ms: Decision(None, (record("a"),), continuation="first"))
            await settle()
            world.log.holding = False
            world.spawn(lambda s, now_ms: Decision(None, (record("b"),), continuation="second"))
            await settle()
            written = [seen for seen in shard.seen if seen[0] == "written"]
            assert written == [
                ("written", "first", ErrorCode.NONE),
                ("written", "second", ErrorCode.NONE),
            ]

        assert not play(scene).bugs


class TestTickets:
    def test_a_later_decision_answers(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            tickets: list[Ticket] = []

            def hold(shard: Probe, ticket: Ticket, now_ms: int) -> Decision[None]:
                tickets.append(ticket)
                return Decision(None)

            def answer(shard: Probe, now_ms: int) -> Decision[None]:
                out = Outbox(now_ms)
                out.answer(tickets[0], HeartbeatResponse(error_code=7))
                out.write(record("a"))
                return out.decision(None)

            waiting = world.spawn_ticket(hold)
            await settle()
            assert not waiting.done()
            world.log.holding = True
            other = world.spawn(answer)
            await settle()
            assert not waiting.done(), "answers wait for the commit too"
            world.log.commit()
            await settle()
            assert waiting.result() == HeartbeatResponse(error_code=7)
            assert other.done()

        play(scene)

    def test_a_client_that_went_away_is_answered_in_vain(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            tickets: list[Ticket] = []

            def hold(shard: Probe, ticket: Ticket, now_ms: int) -> Decision[None]:
                tickets.append(ticket)
                return Decision(None)

            waiting = world.spawn_ticket(hold)
            await settle()
            waiting.cancel()
            await settle()
            out = Outbox(0)
            out.answer(tickets[0], HeartbeatResponse())
            await world.runtime.run(0, lambda s, now_ms: out.decision(None))

        assert not play(scene).bugs

    def test_a_failed_write_fails_the_ticket(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            world.log.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            waiting = world.spawn_ticket(lambda s, t, now_ms: Decision(None, (record("a"),)))
            await settle()
            assert failure(waiting) is ErrorCode.NOT_COORDINATOR

        play(scene)


class TestTimers:
    def test_fire_in_order_and_may_write(self) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            out = Outbox(0)
            out.schedule("late", 300)
            out.schedule("write a", 100)
            out.schedule("moved", 50)
            out.schedule("moved", 200)
            out.schedule("cancelled", 150)
            out.cancel("cancelled")
            await world.runtime.run(0, lambda s, now_ms: out.decision(None))
            began_ms = world.clock.now_ms()
            world.clock.advance(1_000)
            assert shard.seen[1:] == [
                ("timer", "write a", began_ms + 100),
                (0, -1, "a", "value"),
                ("timer", "moved", began_ms + 200),
                ("timer", "late", began_ms + 300),
            ]

        play(scene)

    def test_end_with_the_shard(self) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            out = Outbox(0)
            out.schedule("x", 100)
            await world.runtime.run(0, lambda s, now_ms: out.decision(None))
            world.runtime.unload(0)
            world.clock.advance(1_000)
            assert shard.seen == ["loaded"]

        play(scene)


class TestEnd:
    def test_whoever_waits_is_told(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            world.log.holding = True
            ticket = world.spawn_ticket(lambda s, t, now_ms: Decision(None))
            write = world.spawn(lambda s, now_ms: Decision("x", (record("a"),)))
            await settle()
            world.runtime.close()
            await settle()
            assert failure(ticket) is failure(write) is ErrorCode.NOT_COORDINATOR
            world.log.commit()

        assert not play(scene).bugs

    def test_a_bug_stops_the_shard_and_nobody_hangs(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            ticket = world.spawn_ticket(lambda s, t, now_ms: Decision(None))
            await settle()
            write = world.spawn(lambda s, now_ms: Decision("x", (record("poison"),)))
            await settle()
            assert failure(ticket) is failure(write) is ErrorCode.NOT_COORDINATOR
            with pytest.raises(ApiError):
                await world.runtime.run(0, lambda s, now_ms: Decision(None))

        assert len(play(scene).bugs) == 1

    def test_a_bug_in_a_decision_stops_the_shard(self) -> None:
        async def scene(world: World) -> None:
            await world.start()

            def broken(shard: Probe, now_ms: int) -> Decision[None]:
                raise KeyError("as told")

            with pytest.raises(ApiError) as raised:
                await world.runtime.run(0, broken)
            assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
            with pytest.raises(ApiError) as raised:
                await world.runtime.run(0, lambda s, now_ms: Decision(None))
            assert raised.value.code is ErrorCode.NOT_COORDINATOR

        assert len(play(scene).bugs) == 1

    def test_an_api_error_of_a_decision_is_no_bug(self) -> None:
        async def scene(world: World) -> None:
            await world.start()

            def refuse(shard: Probe, now_ms: int) -> Decision[None]:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, "as told")

            with pytest.raises(ApiError) as raised:
                await world.runtime.run(0, refuse)
            assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID
            assert await world.runtime.run(0, lambda s, now_ms: Decision("on")) == "on"

        assert not play(scene).bugs


ENDING = TransactionEnding(
    producer_id=7, producer_epoch=3, coordinator_epoch=1, committed=True, transaction_version=2
)


class TestTransactions:
    def test_records_of_a_transaction_are_replayed_as_such_live_and_at_load(self) -> None:
        async def scene(world: World) -> None:
            live = await world.start()
            await world.runtime.run(
                0,
                lambda shard, now_ms: Decision(
                    None, records=(record("a"), record("b")), producer=ProducerStamp(7, 3)
                ),
            )
            await world.runtime.run(0, lambda shard, now_ms: Decision(None, records=(record("c"),)))
            await world.runtime.complete_transaction(0, ENDING)
            changes = [
                (0, 7, "a", "value"),
                (1, 7, "b", "value"),
                (2, -1, "c", "value"),
                ("end", 7, True),
            ]
            assert live.seen == ["loaded", *changes]
            header = read_header(world.log.batches[0])
            assert header.is_transactional
            assert header.producer_epoch == 3
            world.runtime.load(0, 2, world.log)
            await world.runtime.loaded()
            assert world.shards[-1].seen == [*changes, "loaded"]

        assert not play(scene).bugs

    def test_a_marker_waits_for_commit(self) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            world.log.holding = True
            task = asyncio.create_task(world.runtime.complete_transaction(0, ENDING))
            await settle()
            assert shard.seen[-1] == ("end", 7, True)
            assert not task.done()
            world.log.commit()
            await task

        play(scene)

    def test_a_marker_that_is_refused_ends_nothing(self) -> None:
        async def scene(world: World) -> None:
            shard = await world.start()
            world.log.append_error = ErrorCode.INVALID_PRODUCER_EPOCH
            with pytest.raises(ApiError) as raised:
                await world.runtime.complete_transaction(0, ENDING)
            assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
            assert shard.seen == ["loaded"]

        play(scene)

    def test_a_marker_for_a_coordinator_that_is_not_here(self) -> None:
        async def scene(world: World) -> None:
            await world.start()
            with pytest.raises(ApiError) as raised:
                await world.runtime.complete_transaction(1, ENDING)
            assert raised.value.code is ErrorCode.NOT_COORDINATOR
            world.log.holding = True
            task = asyncio.create_task(world.runtime.complete_transaction(0, ENDING))
            await settle()
            world.runtime.unload(0)
            await asyncio.wait([task])
            assert failure(task) is ErrorCode.NOT_COORDINATOR

        play(scene)
