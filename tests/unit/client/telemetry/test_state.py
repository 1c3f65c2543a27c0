"""When metrics are asked about and pushed."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.client.telemetry.machine.state import (
    DEFAULT_INTERVAL_MS,
    Ask,
    Push,
    Subscription,
    TelemetryState,
)
from moldau.wire.errors import ErrorCode
from moldau.wire.uuids import ZERO_UUID

ID = UUID(int=7)
WANTED = Subscription(ID, 1, 1000, (), False, ("*",))
NONE = WANTED._replace(metrics=())


def subscribed() -> TelemetryState:
    state = TelemetryState()
    state.on_granted(WANTED, now_ms=100, jitter=0.5)
    return state


def test_first_it_asks_for_an_id_at_once() -> None:
    state = TelemetryState()
    assert (state.due_ms, state.next()) == (0, Ask(ZERO_UUID))


@pytest.mark.parametrize(("jitter", "due_ms"), [(0.0, 600), (0.5, 1100), (1.0, 1600)])
def test_first_pushes_are_spread(jitter: float, due_ms: int) -> None:
    state = TelemetryState()
    state.on_granted(WANTED, now_ms=100, jitter=jitter)
    assert (state.due_ms, state.next()) == (due_ms, Push(WANTED, terminating=False))


def test_pushes_follow_at_the_interval() -> None:
    state = subscribed()
    state.on_pushed(now_ms=1100)
    assert (state.due_ms, state.next()) == (2100, Push(WANTED, terminating=False))


def test_cluster_that_wants_nothing_is_asked_again_later_by_the_same_id() -> None:
    state = TelemetryState()
    state.on_granted(NONE, now_ms=100, jitter=0.9)
    assert (state.due_ms, state.next()) == (1100, Ask(ID))


def test_interval_that_is_none_is_the_default() -> None:
    state = TelemetryState()
    state.on_granted(NONE._replace(push_interval_ms=0), now_ms=0, jitter=0)
    assert state.due_ms == DEFAULT_INTERVAL_MS


@pytest.mark.parametrize(
    ("code", "due_ms"),
    [
        pytest.param(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 500, id="it changed: at once"),
        pytest.param(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 500, id="other codecs: at once"),
        pytest.param(ErrorCode.TELEMETRY_TOO_LARGE, 1500, id="too large: later"),
        pytest.param(ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1500, id="too often: later"),
        pytest.param(ErrorCode.INVALID_RECORD, None, id="not understood: never"),
        pytest.param(ErrorCode.UNKNOWN_SERVER_ERROR, None, id="who knows: never"),
    ],
)
def test_refused_push(code: ErrorCode, due_ms: int | None) -> None:
    state = subscribed()
    state.on_error(code, now_ms=500)
    assert state.due_ms == due_ms
    assert state.next() == (None if due_ms is None else Ask(ID))
    assert state.over == (due_ms is None)


def test_lost_request_is_tried_again_much_later() -> None:
    state = subscribed()
    state.on_failure(passes=True, now_ms=10)
    assert (state.due_ms, state.next()) == (10 + DEFAULT_INTERVAL_MS, Ask(ID))
    state.on_failure(passes=False, now_ms=20)
    assert state.over


def test_closing_pushes_for_the_last_time() -> None:
    state = subscribed()
    state.close(now_ms=300)
    assert (state.due_ms, state.next()) == (300, Push(WANTED, terminating=True))
    state.on_granted(WANTED, now_ms=301, jitter=0)
    assert state.next() == Push(WANTED, terminating=True)
    state.on_pushed(now_ms=310)
    assert state.over
    assert state.next() is None


@pytest.mark.parametrize("refusal", ["code", "failure"])
def test_last_push_is_not_repeated(refusal: str) -> None:
    state = subscribed()
    state.close(now_ms=300)
    if refusal == "code":
        state.on_error(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, now_ms=301)
    else:
        state.on_failure(passes=True, now_ms=301)
    assert state.over


def test_closing_without_a_subscription_pushes_nothing() -> None:
    state = TelemetryState()
    state.close(now_ms=0)
    assert state.over
    state.close(now_ms=1)
    state.on_error(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, now_ms=2)
    assert state.over


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        (("*",), True),
        (("org.apache.kafka.producer.",), True),
        (("org.apache.kafka.consumer.", "org.apache.kafka.producer.batch"), True),
        (("org.apache.kafka.consumer.",), False),
        ((), False),
    ],
)
def test_metrics_are_wanted_by_prefix(metrics: tuple[str, ...], wanted: bool) -> None:
    name = "org.apache.kafka.producer.batch.size.avg"
    assert WANTED._replace(metrics=metrics).wants(name) is wanted
