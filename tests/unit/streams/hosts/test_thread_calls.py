"""What a stream thread does for others between two turns."""

from __future__ import annotations

import pytest

from moldau.client.errors import WakeupError
from moldau.streams.errors import InvalidStateStoreError
from moldau.streams.hosts.thread_calls import ThreadCalls


def test_work_has_its_result_although_its_own_wake_up_comes_late() -> None:
    """Whoever adds work wakes the consumer up, which the thread may be done polling by then."""
    late = [WakeupError("the consumer was woken up")]

    def work() -> int:
        if late:
            raise late.pop()
        return 7

    calls = ThreadCalls()
    future = calls.add(work)
    calls.run()
    assert future.result(0) == 7


def test_an_error_is_for_whoever_asked() -> None:
    calls = ThreadCalls()
    failing, other = calls.add(lambda: 1 // 0), calls.add(lambda: 3)
    calls.run()
    with pytest.raises(ZeroDivisionError):
        failing.result(0)
    assert other.result(0) == 3


def test_a_thread_that_has_ended_answers_everybody() -> None:
    calls = ThreadCalls()
    futures = [calls.add(lambda: 1), calls.add(lambda: 2)]
    calls.refuse(InvalidStateStoreError("thread-1 has ended"))
    for future in futures:
        with pytest.raises(InvalidStateStoreError, match="has ended"):
            future.result(0)
