"""Moves between log folders, step by step on one node."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from moldau.broker.log.background import Background
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log_moves import LogMoves
from moldau.broker.replication.durability import when_durable
from moldau.wire.errors import ApiError, ErrorCode
from support.hosting import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path, directories=("one", "two"))
    host.create_topic("t")
    for number in range(50):
        host.append("t", b"%d" % number)
    return host


def other_dir(host: Host) -> LogDir:
    current = host.partition("t").log.dir_state
    return next(directory for directory in host.logs.dirs if directory is not current)


async def finish(moves: LogMoves) -> None:
    await asyncio.gather(*moves._tasks.values())


def moves_of(host: Host) -> LogMoves:
    return LogMoves(host.logs, host.replicas, host.loop.clock.now_ms)


@pytest.mark.parametrize("flushed", [0, 20, 50])
def test_what_was_durable_stays_durable(host: Host, flushed: int) -> None:
    """A power failure after the move may take no more than one before it."""
    host.partition("t").log.flush(flushed)
    target = other_dir(host)

    async def run() -> None:
        moves = moves_of(host)
        moves.start("t", 0, target.path)
        await finish(moves)

    asyncio.run(run())
    moved = host.partition("t").log
    assert moved.dir_state is target
    assert moved.log_end_offset == 50
    assert moved.recovery_point >= flushed


def test_a_log_flushed_with_every_append_still_moves(host: Host) -> None:
    target = other_dir(host)

    async def run() -> None:
        moves = moves_of(host)
        moves.start("t", 0, target.path)
        while moves._tasks:
            host.append("t", b"more")
            host.partition("t").log.flush()
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(run(), 30))
    moved = host.partition("t").log
    assert moved.dir_state is target
    assert moved.recovery_point == moved.log_end_offset > 50


def test_a_failed_target_leaves_the_partition_where_it_is(host: Host) -> None:
    source, target = host.partition("t").log, other_dir(host)

    async def run() -> None:
        moves = moves_of(host)
        moves.start("t", 0, target.path)
        target.fail("a test", OSError("gone"))
        await finish(moves)

    asyncio.run(run())
    assert host.partition("t").log is source
    assert host.logs.get_future_log("t", 0) is None
    assert host.append("t", b"after") == 50


def test_neither_from_nor_to_a_failed_folder(host: Host) -> None:
    source, target = host.partition("t").log.dir_state, other_dir(host)

    async def start() -> None:
        moves_of(host).start("t", 0, target.path)

    source.fail("a test", OSError("gone"))
    with pytest.raises(ApiError) as caught:
        asyncio.run(start())
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert source.path in caught.value.message
    target.fail("a test", OSError("gone too"))
    with pytest.raises(ApiError) as caught:
        asyncio.run(start())
    assert target.path in caught.value.message


class Later:
    """A background in which nothing is ever done."""

    def submit(self, work: object, done: object) -> None:
        pass


def waiting_producer(host: Host) -> list[ErrorCode]:
    """The outcome, once it comes, of a produce that waits for a flush."""
    host.logs.context.background = cast(Background, Later())
    outcomes: list[ErrorCode] = []
    when_durable(host.partition("t"), 50, host.loop.now_ms, outcomes.append)
    assert outcomes == []
    return outcomes


def test_a_producer_that_waits_for_a_flush_does_not_notice(host: Host) -> None:
    outcomes = waiting_producer(host)
    host.logs.create_future_log("t", 0, other_dir(host))
    host.replicas.move_to_future_log("t", 0, host.loop.now_ms)
    assert outcomes == [ErrorCode.NONE]
