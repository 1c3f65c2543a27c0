"""Where groups, transactions and share partitions are coordinated.

Invariant: for each of them there is one FindCoordinator under way at most, whoever asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

from moldau.client.errors import UnsupportedVersionError, error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.task_sharing import shared
from moldau.client.topics import Node
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import FindCoordinatorRequest

__all__ = ["CoordinatorFinder"]

# FindCoordinator asks for several keys from this version on.
_BATCHED_FIND_COORDINATOR: Final = 4


class CallAny(Protocol):
    """Asks the first node that can be reached."""

    def __call__(self, request: Message, *, max_version: int | None = None) -> Awaitable[Any]: ...


class CoordinatorFinder:
    """See the module."""

    def __init__(self, call_any: CallAny, is_closed: Callable[[], bool]) -> None:
        self._call_any = call_any
        self._is_closed = is_closed
        self._known: dict[tuple[CoordinatorType, str], Node] = {}
        self._finding: dict[tuple[CoordinatorType, str], asyncio.Task[Node]] = {}

    def nodes(self) -> Iterable[Node]:
        """All coordinators that are known."""
        return self._known.values()

    async def find(self, kind: CoordinatorType, key: str) -> Node:
        """Asked for when unknown. Raises KafkaError, retriable when there is none yet."""
        known = self._known.get((kind, key))
        if known is not None:
            return known
        task = self._finding.get((kind, key))
        if task is None:
            task = asyncio.get_running_loop().create_task(self._find(kind, key))
            self._finding[kind, key] = task
            task.add_done_callback(lambda done: self._finding.pop((kind, key), None))
        node = await shared(task, self._is_closed)
        self._known[kind, key] = node
        return node

    def forget(self, kind: CoordinatorType, key: str) -> None:
        self._known.pop((kind, key), None)

    async def _find(self, kind: CoordinatorType, key: str) -> Node:
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            response = await self._call_any(request)
        except UnsupportedVersionError:
            request = FindCoordinatorRequest(key_type=kind, key=key)
            response = await self._call_any(request, max_version=_BATCHED_FIND_COORDINATOR - 1)
        found: Any = response.coordinators[0] if response.coordinators else response
        if found.error_code != ErrorCode.NONE:
            raise error_for(found.error_code, found.error_message)
        return Node(found.node_id, found.host, found.port)

    async def close(self) -> None:
        """End the questions under way; the client counts as closed already."""
        tasks = list(self._finding.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
