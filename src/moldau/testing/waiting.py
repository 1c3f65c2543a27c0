"""Waiting for something to become true, in tests that block and in tests that do not."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from moldau.testing.errors import WaitTimeout

__all__ = ["wait_until", "wait_until_async"]

T = TypeVar("T")

TIMEOUT_S: Final = 15.0
INTERVAL_S: Final = 0.01


def wait_until(
    condition: Callable[[], T],
    *,
    timeout: float = TIMEOUT_S,
    interval: float = INTERVAL_S,
    what: str | None = None,
) -> T:
    """Ask again and again until `condition()` is true; that value.

    An AssertionError of the condition counts as "not yet". WaitTimeout (an AssertionError) if it
    does not become true within `timeout` seconds; it says `what` was waited for and what was last.
    """
    deadline = time.monotonic() + timeout
    while True:
        value, problem = _attempt(condition)
        if value:
            return value  # type: ignore[no-any-return]
        if time.monotonic() >= deadline:
            raise WaitTimeout(_text(condition, what, timeout, value, problem)) from problem
        time.sleep(interval)


async def wait_until_async(
    condition: Callable[[], T | Awaitable[T]],
    *,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109
    interval: float = INTERVAL_S,
    what: str | None = None,
) -> T:
    """`wait_until` for asyncio; the condition may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        value, problem = _attempt(condition)
        if inspect.isawaitable(value):
            try:
                value = await value
            except AssertionError as error:
                value, problem = None, error
        if value:
            return value  # type: ignore[no-any-return]
        if time.monotonic() >= deadline:
            raise WaitTimeout(_text(condition, what, timeout, value, problem)) from problem
        await asyncio.sleep(interval)


def _attempt(condition: Callable[[], Any]) -> tuple[Any, AssertionError | None]:
    try:
        return condition(), None
    except AssertionError as error:
        return None, error


def _text(
    condition: Callable[[], object],
    what: str | None,
    timeout: float,
    value: object,
    problem: AssertionError | None,
) -> str:
    name = what or getattr(condition, "__name__", "it")
    last = f"last: {problem}" if problem is not None else f"last value: {value!r}"
    return f"waited {timeout:g} s for {name} ({last})"
