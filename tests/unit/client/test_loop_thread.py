"""The end of the thread under a blocking client whose owner is gone."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator

import pytest

from moldau.client.loop_thread import LoopThread
from support.waiting import eventually


class Owner:
    pass


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("owned")
    yield thread
    thread.stop()


def has_ended(thread: LoopThread) -> Callable[[], bool]:
    return lambda: not thread._thread.is_alive()


def test_what_runs_is_closed_before_the_thread_ends(thread: LoopThread) -> None:
    closed: list[bool] = []

    async def close() -> None:
        closed.append(thread.on_it)

    owners = [Owner()]
    thread.ended_with(owners[0], "Owner 'x'", close)
    with pytest.warns(ResourceWarning, match="unclosed Owner 'x'"):
        owners.clear()
    eventually(has_ended(thread), what="the thread has ended")
    assert closed == [True]
    assert thread.loop.is_closed()


def test_an_error_of_closing_does_not_keep_it(thread: LoopThread) -> None:
    async def close() -> None:
        raise ZeroDivisionError

    owners = [Owner()]
    thread.ended_with(owners[0], "Owner", close)
    with pytest.warns(ResourceWarning):
        owners.clear()
    eventually(has_ended(thread), what="the thread has ended")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_owner_may_go_in_the_thread_itself(thread: LoopThread) -> None:
    async def close() -> None:
        pass

    owners = [Owner()]
    thread.ended_with(owners[0], "Owner", close)
    thread.soon(owners.clear)
    eventually(has_ended(thread), what="the thread has ended")


def test_who_stops_it_is_not_warned(thread: LoopThread) -> None:
    async def close() -> None:
        pytest.fail("it was closed already")

    owners = [Owner()]
    thread.ended_with(owners[0], "Owner", close)
    thread.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        owners.clear()
        gc.collect()
    assert has_ended(thread)()
