"""Runs a coroutine up to its first wait, without a task.

Most requests to a coordinator never wait: their records are committed when they are appended, if
the partition has one replica. A task, with its two turns of the event loop, would cost such a
request a third of its CPU. (Python 3.12 has tasks that start this way; 3.11 does not.)

Up to its first wait such a coroutine has no task of its own: it must not ask for the current task,
as time limits do (`asyncio.timeout`, `peers.deadline`).
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Rest(Generic[T]):
    """Waits in the place of a coroutine that has begun."""

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: object) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, object, T]:
        work, waits_for = self._work, self._waits_for
        sent: object = None
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:
                thrown: BaseException | None = error
            else:
                thrown = None
            try:
                waits_for = work.send(sent) if thrown is None else work.throw(thrown)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]


async def rest_of(work: Coroutine[Any, Any, T], waits_for: object) -> T:
    """The rest of a coroutine that has begun with `send(None)`, which returned `waits_for`."""
    # A generator with `types.coroutine` would do, but tasks take none from Python 3.12 on.
    return await _Rest(work, waits_for)
