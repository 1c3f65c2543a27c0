"""How replication is slowed down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.broker.fetch_sessions.reader import FetchLimits, SlotReader
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.handlers.fetch import FetchHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.broker.replication.machine.throttle import ReplicationThrottle, is_throttled_replica
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.messages import FetchRequest, FetchResponse
from support.hosting import NODE_ID, OTHER_NODE_ID, Host


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [((), False), (("*",), True), (("0:2", "1:3"), True), (("1:2", "0:3"), False)],
)
def test_which_replicas_are_throttled(replicas: tuple[str, ...], throttled: bool) -> None:
    assert is_throttled_replica(replicas, 0, 2) is throttled


def test_the_rate_is_measured_over_a_window() -> None:
    throttle = ReplicationThrottle(lambda: 100, samples_max=3)
    assert not throttle.is_exceeded(0)
    throttle.record(100, 0)
    assert not throttle.is_exceeded(10)
    throttle.record(150, 10)
    assert throttle.is_exceeded(10)
    assert throttle.is_exceeded(2_000)
    assert not throttle.is_exceeded(2_500)
    throttle.record(100, 2_500)
    assert throttle.is_exceeded(2_999)
    # The first burst has left the window: what is left is one small sample.
    assert not throttle.is_exceeded(3_500)


def test_a_new_limit_counts_at_once() -> None:
    limit = 1000
    throttle = ReplicationThrottle(lambda: limit)
    throttle.record(500, 0)
    assert not throttle.is_exceeded(0)
    limit = 100
    assert throttle.is_exceeded(0)


@pytest.mark.parametrize(
    ("isr", "named", "held_up"),
    [
        ((NODE_ID,), f"0:{NODE_ID}", True),
        ((NODE_ID,), "*", True),
        ((NODE_ID,), f"0:{OTHER_NODE_ID}", False),
        ((NODE_ID, OTHER_NODE_ID), "*", False),
    ],
)
def test_a_leader_holds_up_followers_that_are_not_in_sync(
    tmp_path: Path, isr: tuple[int, ...], named: str, held_up: bool
) -> None:
    host = Host(tmp_path)
    host.create_topic(
        "t",
        replicas=(NODE_ID, OTHER_NODE_ID),
        isr=isr,
        config={"leader.replication.throttled.replicas": named},
    )
    host.append("t", b"x")
    throttle = ReplicationThrottle(lambda: 1)
    reader = SlotReader(host.replicas, throttle=throttle)
    slot = FetchSlot("t", PartitionFetch(0, 0, 0, -1, 0, 1000), from_follower=True)
    limits = FetchLimits(17, OTHER_NODE_ID, 1, 1000, False)
    first = reader.read_one(slot, limits, 1000, True)
    assert first.records_size
    reader.count_sent([(slot, first)])
    assert (reader.read_one(slot, limits, 1000, True).records_size == 0) is held_up


def test_a_clock_that_is_set_back_does_not_hold_up_followers(tmp_path: Path) -> None:
    """Rates are measured in elapsed time: by the wall clock, an hour back would be an hour's wait
    until what was sent is forgotten."""
    host = Host(tmp_path)
    host.create_topic(
        "t",
        replicas=(NODE_ID, OTHER_NODE_ID),
        isr=(NODE_ID,),
        config={"leader.replication.throttled.replicas": "*"},
    )
    host.append("t", b"x")
    handler = FetchHandler(
        host.replicas,
        loop=host.loop,
        clock=host.loop.clock,
        random_id=lambda: 1,
        throttle=ReplicationThrottle(lambda: 1, samples_max=3),
    )

    def fetched() -> bool:
        wanted = FetchRequest.FetchPartition(fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            replica_id=OTHER_NODE_ID,
            max_bytes=1000,
            topics=[FetchRequest.FetchTopic(topic="t", partitions=[wanted])],
        )
        frame = memoryview(b"head" + encode(request, 12))
        reply: Any = handler.handle(RequestContext(ApiKey.FETCH, 12), frame, 4)
        response = decode(FetchResponse, 12, b"".join(reply), 9)
        return bool(response.responses[0].partitions[0].records)

    assert fetched()
    assert not fetched()
    host.loop.clock.wall_ahead_ms = -3_600_000
    host.loop.advance(10_000)
    assert fetched()
