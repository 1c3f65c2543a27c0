"""The state of an application follows those of its threads."""

from __future__ import annotations

import pytest

from moldau.streams import StreamsError
from moldau.streams.machine.lifecycle import NEXT, Lifecycle, State, ThreadState


def started() -> Lifecycle:
    life = Lifecycle()
    life.enter(State.REBALANCING)
    life.on_thread("one", ThreadState.STARTING)
    life.on_thread("two", ThreadState.STARTING)
    return life


def test_it_runs_when_all_threads_run() -> None:
    life = started()
    assert life.on_thread("one", ThreadState.RUNNING) is None
    assert life.on_thread("two", ThreadState.PARTITIONS_ASSIGNED) is None
    assert life.on_thread("two", ThreadState.RUNNING) == (State.RUNNING, State.REBALANCING)
    assert life.on_thread("one", ThreadState.PARTITIONS_REVOKED) == (
        State.REBALANCING,
        State.RUNNING,
    )


def test_a_thread_that_has_ended_is_not_waited_for() -> None:
    life = started()
    life.on_thread("one", ThreadState.RUNNING)
    assert life.on_thread("two", ThreadState.DEAD) == (State.RUNNING, State.REBALANCING)


def test_threads_change_nothing_while_closing() -> None:
    life = started()
    life.enter(State.PENDING_SHUTDOWN)
    assert life.on_thread("one", ThreadState.RUNNING) is None
    assert life.enter(State.PENDING_ERROR) is None
    assert life.enter(State.NOT_RUNNING) == (State.NOT_RUNNING, State.PENDING_SHUTDOWN)


def test_transitions_that_make_no_sense() -> None:
    with pytest.raises(StreamsError, match="cannot go from CREATED to RUNNING"):
        Lifecycle().enter(State.RUNNING)
    assert set(NEXT) == set(State)
