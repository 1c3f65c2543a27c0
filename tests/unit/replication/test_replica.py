"""What a leader may take for granted when a follower asks for the next records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moldau.broker.replication.replica import FollowerReplica
from moldau.wire.records import encode_batch
from support.hosting import Host


class LateBackground:
    """Threads that have not come to it yet."""

    def submit(self, work: Callable[[], object], done: object) -> None:
        pass


def test_a_follower_that_must_flush_has_flushed_before_it_asks_on(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.create_topic("t", config={"flush.messages": "2"})
    host.logs.context.background = LateBackground()
    replica = FollowerReplica(host.partition("t"), lambda: 1)
    durable = []
    for number in range(4):
        replica.append_fetched(
            encode_batch([(b"k", b"v", 1, ())], base_offset=number), leader_epoch=0
        )
        durable.append(replica.partition.log.recovery_point)
    assert durable == [0, 2, 2, 4]
