"""Very many partitions at once are worked off in turns, between which a node does other things."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from moldau.broker.gauges.partitions import PartitionGauges
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.model import NO_LEADER
from moldau.broker.metrics import tables
from moldau.broker.replication import manager
from moldau.broker.replication.fetchers import ReplicaFetchers
from moldau.broker.replication.machine.turns import CHANGED_PER_TURN, OPENED_PER_TURN, TURN_MS_MAX
from moldau.broker.replication.manager import (
    CHANGED_AT_ONCE_MAX,
    OPENED_AT_ONCE_MAX,
    ReplicaManager,
)
from moldau.broker.replication.partition import Partition
from moldau.invariant import InvariantError
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import PartitionChangeRecord
from support.hosting import NODE_ID, OTHER_NODE_ID, Host, NoFetchers, alone


class Turns:
    """A node whose turns a test takes one by one, on a disk that takes its time."""

    def __init__(self, folder: Path, *, open_ms: int = 0) -> None:
        self.put_off: list[Callable[[], None]] = []
        self.now_ms = 0
        self.host = Host(folder)
        create_log = self.host.logs.create_log

        def create_slowly(*args: Any, **options: Any) -> Any:
            self.now_ms += open_ms
            return create_log(*args, **options)

        self.host.logs.create_log = create_slowly  # type: ignore[method-assign]
        self.restart()

    def restart(self) -> None:
        """Host nothing; the logs that are loaded stay."""
        self.put_off.clear()
        self.host.replicas = ReplicaManager(
            node_id=NODE_ID,
            logs=self.host.logs,
            log_config=self.host.log_config,
            defer=self.put_off.append,
            replication=alone(lambda: ElapsedMs(self.now_ms)),
        )

    @property
    def opened(self) -> int:
        return len(list(self.host.replicas.partitions()))

    @property
    def led(self) -> int:
        return sum(each.error is None for each in self.host.replicas.partitions())

    def turn(self) -> None:
        (work,) = self.put_off
        self.put_off.clear()
        work()


def test_new_partitions_are_opened_in_turns(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    settled: list[int] = []
    count = OPENED_AT_ONCE_MAX + 1
    turns.host.create_topic("t", count)
    turns.host.replicas.when_settled(lambda: settled.append(turns.opened))
    # The response about so many does not wait for them, so none of them makes it wait.
    assert turns.opened == 0
    assert turns.host.replicas.unopened_count == count
    assert turns.host.replicas.absence("t", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    turns.turn()
    assert (turns.opened, settled) == (OPENED_PER_TURN, [])
    while turns.put_off:
        turns.turn()
    assert settled == [count]
    assert turns.host.replicas.unopened_count == 0
    assert turns.put_off == []


def test_partitions_that_wait_for_their_turn_are_counted(tmp_path: Path) -> None:
    """PartitionCount and LeaderCount of a node that has just started are those of the metadata."""
    turns = Turns(tmp_path)
    count = OPENED_AT_ONCE_MAX + 1
    turns.host.create_topic("t", count)
    gauges = PartitionGauges(
        turns.host.replicas,
        cast(ReplicaFetchers, NoLags()),
        lambda: turns.host.image,
        lambda: 0,
        node_id=NODE_ID,
    )
    for _ in range(3):
        values = {spec: value for spec, labels, value in gauges.collect() if not labels}
        assert values[tables.PARTITION_COUNT] == values[tables.LEADER_COUNT] == count
        turns.turn()


class NoLags:
    failed_count = dead_count = 0

    def lags(self) -> list[object]:
        return []


def test_few_new_partitions_are_opened_at_once(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    turns.host.create_topic("t", OPENED_AT_ONCE_MAX)
    assert (turns.opened, turns.put_off) == (OPENED_AT_ONCE_MAX, [])


@pytest.mark.parametrize("open_ms", [TURN_MS_MAX // 4, TURN_MS_MAX, 10 * TURN_MS_MAX])
def test_a_slow_disk_makes_the_turns_smaller(tmp_path: Path, open_ms: int) -> None:
    turns = Turns(tmp_path, open_ms=open_ms)
    turns.host.create_topic("t", 20)
    while turns.put_off:
        before, opened = turns.now_ms, turns.opened
        turns.turn()
        assert turns.opened > opened
        assert turns.now_ms - before <= TURN_MS_MAX + open_ms
    assert turns.opened == 20


def test_other_leaders_are_taken_at_once_up_to_thousands(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    count = 130
    topic_id = turns.host.create_topic(
        "t", count, replicas=(NODE_ID, OTHER_NODE_ID), leader=OTHER_NODE_ID
    )
    while turns.put_off:
        turns.turn()
    assert (turns.opened, turns.led) == (count, 0)
    turns.host.apply(
        *(
            PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=NODE_ID)
            for index in range(count)
        )
    )
    assert turns.led == count
    assert CHANGED_AT_ONCE_MAX > CHANGED_PER_TURN > OPENED_AT_ONCE_MAX


def test_a_partition_that_is_asked_for_does_not_wait_for_its_turn(tmp_path: Path) -> None:
    count = OPENED_AT_ONCE_MAX + 1
    turns = Turns(tmp_path)
    topic_id = turns.host.create_topic("t", count)
    while turns.put_off:
        turns.turn()
    turns.restart()
    settled: list[int] = []
    turns.host.replicas.apply_image(turns.host.image)
    turns.host.replicas.when_settled(lambda: settled.append(turns.opened))
    assert (turns.opened, settled, turns.host.replicas.unopened_count) == (0, [0], 0)
    asked = turns.host.replicas.get(topic_id.bytes, count - 1)
    assert (turns.opened, asked.error) == (1, None)
    assert turns.host.replicas.find("t", count - 1) is asked
    assert turns.host.replicas.find("t", count) is None
    turns.turn()
    assert (turns.opened, turns.led, turns.put_off) == (count, count, [])


def test_a_partition_may_be_asked_for_while_another_one_has_its_turn(tmp_path: Path) -> None:
    count = OPENED_AT_ONCE_MAX + 1
    turns = Turns(tmp_path)
    turns.host.create_topic("t", count)
    while turns.put_off:
        turns.turn()
    turns.restart()
    replicas = turns.host.replicas

    class Asking(NoFetchers):
        def leave(self, partition: Partition) -> None:
            replicas.find("t", partition.index + 1)

    replicas._fetchers = Asking()
    replicas.apply_image(turns.host.image)
    turns.turn()
    assert (turns.opened, turns.led, turns.put_off) == (count, count, [])


def test_a_change_that_was_put_off_is_made_when_a_client_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(tmp_path)
    count = OPENED_AT_ONCE_MAX + 1
    topic_id = turns.host.create_topic("t", count)
    while turns.put_off:
        turns.turn()
    monkeypatch.setattr(manager, "CHANGED_AT_ONCE_MAX", 0)
    turns.host.change_partition(topic_id, 5, leader=NO_LEADER)
    turns.host.change_partition(topic_id, 6, replicas=[OTHER_NODE_ID], leader=OTHER_NODE_ID)
    assert len(turns.put_off) == 1
    assert turns.led == count
    assert turns.host.replicas.get("t", 5).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert turns.led == count - 1
    assert turns.host.replicas.find("t", 6) is None
    turns.turn()
    assert (turns.opened, turns.put_off) == (count - 1, [])


def test_what_was_put_off_is_done_as_the_metadata_then_says(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    gone = turns.host.create_topic("gone", OPENED_AT_ONCE_MAX + 1)
    kept = turns.host.create_topic("kept", OPENED_AT_ONCE_MAX + 1)
    turns.host.delete_topic(gone)
    turns.host.change_partition(
        kept, OPENED_AT_ONCE_MAX, replicas=[OTHER_NODE_ID], leader=OTHER_NODE_ID
    )
    while turns.put_off:
        turns.turn()
    assert turns.opened == OPENED_AT_ONCE_MAX
    assert turns.host.replicas.find("kept", OPENED_AT_ONCE_MAX) is None
    turns.host.replicas.apply(MetadataDelta(), turns.host.image)


def test_a_partition_that_fails_does_not_keep_those_that_were_put_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turns = Turns(tmp_path)
    create_log, bad = turns.host.logs.create_log, OPENED_AT_ONCE_MAX + 1

    def create_or_fail(topic: str, index: int, *args: Any, **options: Any) -> Any:
        if index == bad:
            raise InvariantError("planted")
        return create_log(topic, index, *args, **options)

    turns.host.logs.create_log = create_or_fail  # type: ignore[method-assign]
    settled: list[int] = []
    count = OPENED_AT_ONCE_MAX + 2 * OPENED_PER_TURN
    turns.host.create_topic("t", count)
    turns.host.replicas.when_settled(lambda: settled.append(turns.opened))
    while turns.put_off:
        turns.turn()
    assert settled == [count - 1]
    assert turns.host.replicas.absence("t", bad) is ErrorCode.KAFKA_STORAGE_ERROR
    assert f"applying metadata to partition t-{bad} failed" in caplog.text
    assert "planted" in caplog.text
