"""Waiting for a task that others wait for too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from moldau.client.errors import ClosedError

__all__ = ["shared"]

T = TypeVar("T")


async def shared(task: asyncio.Task[T], is_closed: Callable[[], bool]) -> T:
    """The task's result. A caller that is cancelled does not cancel the task; the client's end
    does, and is raised as ClosedError."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if is_closed() and task.cancelled():
            raise ClosedError("the client was closed") from None
        # If no caller is left to see its failure, asyncio would log it as never retrieved.
        task.add_done_callback(_look_at)
        raise


def _look_at(task: asyncio.Task[T]) -> None:
    if not task.cancelled():
        task.exception()
