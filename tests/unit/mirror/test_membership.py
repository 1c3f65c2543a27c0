"""Which tasks a process runs: what happens at the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moldau.client import KafkaError
from moldau.mirror import membership
from moldau.mirror.machine.settings import FlowName, flows_of

PROPERTIES = {
    "clusters": "A,B",
    "A.bootstrap.servers": "127.0.0.1:1",
    "B.bootstrap.servers": "127.0.0.1:1",
    "A->B.enabled": "true",
}


class Unclosable:
    """A consumer whose coordinator is lost when it leaves."""

    made = 0

    def __init__(self, settings: Any) -> None:
        Unclosable.made += 1

    def subscribe(self, topics: list[str]) -> None:
        pass

    def assignment(self) -> set[Any]:
        return set()

    async def poll(self, *_: Any) -> None:
        await asyncio.sleep(0.5)

    async def close(self, **_: Any) -> None:
        await asyncio.sleep(0)
        if Unclosable.made == 1:
            raise KafkaError("the coordinator cannot be reached")


def test_a_group_that_cannot_be_left_does_not_keep_a_process_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(membership, "AsyncConsumer", Unclosable)

    async def main() -> None:
        share = membership.TaskShare(flows_of(PROPERTIES)[FlowName("A", "B")], lambda mine: None)
        task = asyncio.ensure_future(share.run())
        await asyncio.sleep(0.01)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5.0)
        assert done
        assert task.cancelled()

    asyncio.run(main())
    assert Unclosable.made == 1
