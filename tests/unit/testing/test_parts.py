"""Clock, disk, names, waiting and messages of brokers under test."""

from __future__ import annotations

import asyncio
import errno
import pickle
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.testing import wire_format
from moldau.testing.cluster_base import Topic
from moldau.testing.errors import WaitTimeout
from moldau.testing.machine.names import api_keys, error_number
from moldau.testing.process.clock import ShiftedClock
from moldau.testing.process.disk import ThrowAwayDisk
from moldau.testing.settings import data_folder, node_properties
from moldau.testing.waiting import wait_until, wait_until_async

# Time.


def test_time_that_passes_makes_alarms_due_in_their_order() -> None:
    async def run() -> list[str]:
        clock = ShiftedClock()
        due: list[str] = []
        clock.call_later(60_000, lambda: due.append("minute"))
        clock.call_later(10_000, lambda: due.append("ten"))
        clock.call_later(3_600_000, lambda: due.append("hour"))
        clock.call_later(20_000, lambda: due.append("cancelled")).cancel()
        before, elapsed = clock.now_ms(), clock.elapsed_ms()
        clock.advance(120_000)
        assert clock.now_ms() - before >= 120_000
        assert clock.elapsed_ms() - elapsed >= 120_000
        await wait_until_async(lambda: len(due) == 2)
        return due

    assert asyncio.run(run()) == ["ten", "minute"]


def test_a_jump_sets_only_the_wall_clock() -> None:
    clock = ShiftedClock(wall_ahead_ms=5)
    elapsed, now = clock.elapsed_ms(), clock.now_ms()
    clock.jump(-3_600_000)
    assert clock.elapsed_ms() - elapsed < 3_000_000
    assert now - clock.now_ms() > 3_000_000


# Disks.


def test_a_full_disk_takes_what_fits_and_no_more(tmp_path: Path) -> None:
    disk = ThrowAwayDisk()
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    disk.room_by_folder[str(full)] = 10
    file = disk.open(str(full / "log"), create=True)
    file.write(b"12345678", 0)
    with pytest.raises(OSError, match="No space") as failed:
        file.write(b"123", 8)
    assert failed.value.errno == errno.ENOSPC
    assert file.size == 8
    # What is there already can be written over.
    file.write(b"87654321", 0)
    assert disk.free_bytes(str(full)) == 2
    with pytest.raises(OSError, match="No space"):
        disk.write_atomic(str(full / "checkpoint"), b"123")
    disk.open(str(other / "log"), create=True).write(b"1234", 0)
    disk.room_by_folder.clear()
    file.write(b"123", 8)


def test_data_goes_where_it_is_told(tmp_path: Path) -> None:
    assert Path(data_folder(tmp_path / "new")).parent == tmp_path / "new"
    assert data_folder(tmp_path) != data_folder(tmp_path)


# Names.


def test_apis_are_found_by_any_spelling() -> None:
    assert api_keys(["Produce", "join_group", "LIST-OFFSETS"]) == (0, 11, 2)
    assert api_keys([]) == ()
    with pytest.raises(ValueError, match="Did you mean JoinGroup"):
        api_keys(["JoinGroups"])


def test_errors_are_found_by_name_and_code() -> None:
    assert error_number("NOT_LEADER_OR_FOLLOWER") == error_number(6) == 6
    with pytest.raises(ValueError, match="not a Kafka error"):
        error_number(4711)


def test_a_topic_is_its_name() -> None:
    topic = Topic("orders", cast(Any, None))
    assert topic == "orders"
    assert {topic: 1}["orders"] == 1
    assert type(pickle.loads(pickle.dumps(topic))) is str


def test_nodes_share_a_quorum_of_three_at_most() -> None:
    ports = {node_id: (9000 + node_id, 9100 + node_id) for node_id in range(1, 6)}
    made = [
        node_properties(
            node_id=node_id, ports=ports, folder="/x", log_dirs=2, overrides={"num.partitions": "7"}
        )
        for node_id in ports
    ]
    assert [each["process.roles"] for each in made] == ["broker,controller"] * 3 + ["broker"] * 2
    assert {each["controller.quorum.voters"] for each in made} == {
        "1@127.0.0.1:9101,2@127.0.0.1:9102,3@127.0.0.1:9103"
    }
    assert made[4]["listeners"] == "PLAINTEXT://127.0.0.1:9005"
    assert made[0]["log.dirs"] == "/x/data,/x/data-1"
    assert made[0]["num.partitions"] == "7"


@pytest.mark.parametrize("brokers", [1, 3])
def test_nodes_are_configured_with_keys_that_brokers_have(brokers: int) -> None:
    ports = {node_id: (9000 + node_id, 9100 + node_id) for node_id in range(1, brokers + 1)}
    properties = node_properties(node_id=1, ports=ports, folder="/x", log_dirs=1, overrides={})
    assert [key for key in properties if key not in BROKER_KEYS] == []


# Waiting.


def test_waiting_gives_what_became_true() -> None:
    values = iter([None, 0, [], "here"])
    assert wait_until(lambda: next(values)) == "here"


def test_waiting_takes_failed_assertions_for_not_yet() -> None:
    left = [3]

    def counted_down() -> bool:
        left[0] -= 1
        assert left[0] == 0, f"{left[0]} left"
        return True

    wait_until(counted_down)
    with pytest.raises(WaitTimeout, match=r"for the end \(last: -1 left"):
        wait_until(counted_down, timeout=0, what="the end")
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0)


def test_waiting_on_a_loop_takes_coroutines() -> None:
    values = iter([0, 0, 5])

    async def next_value() -> int:
        return next(values)

    async def run() -> int:
        return await wait_until_async(next_value)

    assert asyncio.run(run()) == 5


# Messages.


def test_messages_and_descriptors_arrive_whole() -> None:
    one, other = socket.socketpair()
    with one, other, socket.socket() as passed:
        wire_format.send(one, {"text": "ä" * 1000}, [passed.fileno()])
        wire_format.send(one, [1, None])
        message, descriptor = wire_format.receive_with_descriptor(other)
        assert message == {"text": "ä" * 1000}
        assert descriptor is not None
        socket.socket(fileno=descriptor).close()
        assert wire_format.receive(other) == [1, None]
        one.close()
        assert wire_format.receive(other) is wire_format.ENDED
