"""The transition tables of records and share sessions, and what breaks an invariant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from uuid import UUID

import pytest

from moldau.broker.share.machine.record_states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    TRANSITIONS,
    RecordState,
    check_move,
)
from moldau.broker.share.machine.sessions import TRANSITIONS as SESSION_TRANSITIONS
from moldau.broker.share.machine.sessions import (
    SessionKey,
    SessionRequest,
    SessionState,
    ShareSessions,
    TopicIdPartition,
)
from moldau.broker.share.machine.window import InFlightBatch, Run, StateChange, Window
from moldau.invariant import InvariantError
from moldau.wire.errors import ApiError, ErrorCode
from support import transition_tables

MEMBER, LIMIT, DEADLINE_MS = "anna", 2, 1000
STATES = (AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED)


def run_in(state: RecordState, *, deliveries: int = 1, change: StateChange | None = None) -> Run:
    held = state is ACQUIRED or change is not None
    return Run(
        0,
        9,
        state,
        deliveries,
        MEMBER if held else "",
        DEADLINE_MS if held else None,
        change,
    )


# Records.


@pytest.mark.parametrize(("before", "after"), list(product(RecordState, RecordState)))
def test_records_move_as_the_table_allows(before: RecordState, after: RecordState) -> None:
    if after in TRANSITIONS[before]:
        check_move(before, after)
    else:
        with pytest.raises(InvariantError, match=f"{before.name} cannot become {after.name}"):
            check_move(before, after)


def test_the_readme_shows_the_table_of_record_states() -> None:
    shown = transition_tables.moves("broker/share", first_column="record state")
    in_memory = {state: TRANSITIONS[state] for state in STATES}
    assert shown == {
        state.name: {each.name for each in following} for state, following in in_memory.items()
    }


Move = Callable[[Run], None]
MOVES: dict[str, Move] = {
    "acquire": lambda run: run.acquire(MEMBER, DEADLINE_MS),
    "accept": lambda run: run.begin(ACKNOWLEDGED, StateChange(LIMIT)),
    "release": lambda run: run.begin(AVAILABLE, StateChange(LIMIT)),
    "reject": lambda run: run.begin(ARCHIVED, StateChange(LIMIT)),
    "written": lambda run: run.written(),
    "revert": lambda run: run.revert(),
    "free": lambda run: run.free(LIMIT),
    "archive": lambda run: run.archive(),
}
PENDING = "pending"
#: What each operation makes of a run, by its state; operations that are missing are refused.
OUTCOMES: dict[tuple[RecordState, str], dict[str, RecordState]] = {
    (AVAILABLE, ""): {"acquire": ACQUIRED, "archive": ARCHIVED},
    (ACQUIRED, ""): {
        "accept": ACKNOWLEDGED,
        "release": AVAILABLE,
        "reject": ARCHIVED,
        "free": AVAILABLE,
        "archive": ARCHIVED,
    },
    (ACKNOWLEDGED, ""): {},
    (ARCHIVED, ""): {},
    (AVAILABLE, PENDING): {"written": AVAILABLE, "revert": ACQUIRED, "archive": ARCHIVED},
    (ACKNOWLEDGED, PENDING): {"written": ACKNOWLEDGED, "revert": ACQUIRED},
    (ARCHIVED, PENDING): {"written": ARCHIVED, "revert": ACQUIRED},
}


@pytest.mark.parametrize(("at", "move"), list(product(OUTCOMES, MOVES)))
def test_operations_on_records_follow_the_table(at: tuple[RecordState, str], move: str) -> None:
    state, pending = at
    run = run_in(state, change=StateChange(LIMIT) if pending else None)
    expected = OUTCOMES[at].get(move)
    if expected is None:
        before = repr(run)
        with pytest.raises(InvariantError):
            MOVES[move](run)
        assert repr(run) == before, "a refused move changes nothing"
        return
    MOVES[move](run)
    assert run.state is expected
    is_held = expected is ACQUIRED or run.change is not None
    assert (run.member_id, run.deadline_ms) == ((MEMBER, DEADLINE_MS) if is_held else ("", None))


def test_each_acquisition_counts_as_one_delivery_and_the_limit_archives() -> None:
    run = run_in(AVAILABLE, deliveries=0)
    for delivery in range(1, LIMIT + 1):
        run.acquire(MEMBER, DEADLINE_MS)
        assert run.delivery_count == delivery
        run.free(LIMIT)
    assert run.state is ARCHIVED


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(Run(0, 9, ACQUIRED, 0, MEMBER, DEADLINE_MS), id="no delivery"),
        pytest.param(Run(0, 9, ACQUIRED, 1, "", DEADLINE_MS), id="no holder"),
        pytest.param(Run(0, 9, ACQUIRED, 1, MEMBER, None), id="no deadline"),
    ],
)
def test_an_acquired_record_without_holder_deadline_or_delivery_is_caught(broken: Run) -> None:
    with pytest.raises(InvariantError, match="has no holder"):
        broken.free(LIMIT)
    with pytest.raises(InvariantError, match="has no holder"):
        broken.begin(ACKNOWLEDGED, StateChange(LIMIT))


def test_records_are_not_acquired_for_nobody() -> None:
    with pytest.raises(InvariantError, match="cannot be acquired"):
        run_in(AVAILABLE).acquire("", DEADLINE_MS)


@pytest.mark.parametrize("offset", [-1, 0, 10])
def test_a_run_is_cut_inside_only(offset: int) -> None:
    with pytest.raises(InvariantError, match="cannot be cut"):
        run_in(AVAILABLE).cut(offset)


# The window.


def test_a_batch_before_the_end_is_caught() -> None:
    window = Window(0)
    window.add(InFlightBatch([Run(0, 9, AVAILABLE, 0)]))
    with pytest.raises(InvariantError, match="a batch from 9 begins before the end 10"):
        window.add(InFlightBatch([Run(9, 12, AVAILABLE, 0)]))


def test_a_start_that_goes_back_is_caught() -> None:
    window = Window(0)
    window.add(InFlightBatch([Run(0, 9, AVAILABLE, 0)]))
    window.start_offset = 5
    with pytest.raises(InvariantError, match="the start moved from 5 to 0"):
        window.advance()


@pytest.mark.parametrize("count", [-1, 11])
def test_a_wrong_count_of_complete_records_is_caught(count: int) -> None:
    window = Window(0)
    window.add(InFlightBatch([Run(0, 9, AVAILABLE, 0)]))
    window.complete_count = count
    with pytest.raises(InvariantError, match="records are complete"):
        window.advance()


# Sessions.

KEY = SessionKey("group", MEMBER)
PARTITION = TopicIdPartition(UUID(int=1), 0)


def sessions_in(state: SessionState) -> ShareSessions:
    sessions = ShareSessions(1)
    if state is SessionState.OPEN:
        sessions.open(KEY, [PARTITION], "connection")
    return sessions


REQUESTS: dict[SessionRequest, Callable[[ShareSessions], object]] = {
    SessionRequest.OPENS: lambda sessions: sessions.open(KEY, [PARTITION], "connection"),
    SessionRequest.CONTINUES: lambda sessions: sessions.proceed(KEY, 1),
    SessionRequest.CLOSES: lambda sessions: sessions.close(KEY),
}


@pytest.mark.parametrize(("state", "request_kind"), list(product(SessionState, SessionRequest)))
def test_sessions_follow_the_table(state: SessionState, request_kind: SessionRequest) -> None:
    sessions = sessions_in(state)
    outcome = SESSION_TRANSITIONS[state, request_kind]
    if isinstance(outcome, ErrorCode):
        with pytest.raises(ApiError) as refused:
            REQUESTS[request_kind](sessions)
        assert refused.value.code is outcome
        outcome = state
    else:
        REQUESTS[request_kind](sessions)
    assert (sessions.get(KEY) is not None) is (outcome is SessionState.OPEN)


def test_the_readme_shows_the_table_of_sessions() -> None:
    shown = transition_tables.rows("broker/share", first_column="session state")
    assert shown == [
        [state.name, request.name, outcome.name]
        for (state, request), outcome in SESSION_TRANSITIONS.items()
    ]


@pytest.mark.parametrize("index", ["_by_connection", "_members_count"])
def test_a_session_that_is_missing_from_an_index_is_caught(index: str) -> None:
    sessions = sessions_in(SessionState.OPEN)
    getattr(sessions, index).clear()
    with pytest.raises(InvariantError, match="is not indexed"):
        sessions.close(KEY)


def test_a_session_that_expects_an_impossible_epoch_is_caught() -> None:
    sessions = sessions_in(SessionState.OPEN)
    session = sessions.get(KEY)
    assert session is not None
    session.epoch = -1
    with pytest.raises(InvariantError, match="expects epoch 0"):
        sessions.proceed(KEY, -1)
