"""Config, status and offset topics replayed; retries; which offsets may be committed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.connect.api import DataError, RetriableError, SourcePartition
from moldau.connect.machine import config_state as cs
from moldau.connect.machine import status_state as ss
from moldau.connect.machine.config_state import ConfigState
from moldau.connect.machine.ids import Stage, State, TargetState, TaskId
from moldau.connect.machine.offsets import SubmittedRecords
from moldau.connect.machine.retries import RetryPolicy, is_tolerable
from moldau.connect.machine.source_offsets import SourceOffsets, checked
from moldau.connect.machine.status_state import Status, StatusState
from moldau.connect.machine.topic_creation import TopicCreation


def replayed(*records: cs.Record, state: ConfigState | None = None) -> ConfigState:
    found = state or ConfigState()
    for key, value in records:
        found.replay(key, value, found.offset)
    return found


CONFIG: cs.Config = {"connector.class": "X"}
TASKS: list[cs.Config] = [{"n": "0"}, {"n": "1"}]


def test_tasks_count_after_their_commit() -> None:
    *tasks, commit = cs.task_records("c", TASKS)
    state = replayed(cs.connector_record("c", CONFIG), *tasks)
    assert state.task_ids("c") == []
    replayed(commit, state=state)
    assert state.task_ids("c") == [TaskId("c", 0), TaskId("c", 1)]
    assert state.tasks[TaskId("c", 1)] == {"n": "1"}
    assert state.pending_fencing == {"c"}
    replayed(cs.fencing_record("c", 2), state=state)
    assert (state.pending_fencing, state.fenced_counts) == (set(), {"c": 2})


def test_an_incomplete_set_of_tasks_is_not_used() -> None:
    first, _, commit = cs.task_records("c", TASKS)
    state = replayed(cs.connector_record("c", CONFIG), first, commit)
    assert state.inconsistent == {"c"}
    assert state.task_ids("c") == []
    replayed(*cs.task_records("c", TASKS), state=state)
    assert state.inconsistent == set()
    assert len(state.task_ids("c")) == 2


def test_a_deleted_connector_leaves_nothing() -> None:
    state = replayed(cs.connector_record("c", CONFIG), *cs.task_records("c", TASKS))
    assert state.replay(*cs.removal_records("c")[0], 9) == cs.ConnectorRemoved("c")
    assert (state.connectors, state.tasks, state.task_counts, state.targets) == ({}, {}, {}, {})


def test_target_states_are_read_from_both_fields() -> None:
    state = replayed(cs.connector_record("c", CONFIG))
    assert state.target("c") is TargetState.STARTED
    key, value = cs.target_state_record("c", TargetState.STOPPED)
    assert json.loads(value or b"") == {"state": "PAUSED", "state.v2": "STOPPED"}
    assert state.replay(key, value, 3) == cs.TargetStateChanged("c")
    assert state.target("c") is TargetState.STOPPED
    state.replay(key, b'{"state":"PAUSED"}', 4)
    assert state.target("c") is TargetState.PAUSED


def test_names_with_dashes() -> None:
    state = replayed(cs.connector_record("a-b-1", CONFIG), *cs.task_records("a-b-1", [{"x": "y"}]))
    assert state.tasks == {TaskId("a-b-1", 0): {"x": "y"}}


def test_session_keys_restarts_and_levels() -> None:
    state = ConfigState()
    key = cs.SessionKey(b"\x01\xff", "HmacSHA256", 5)
    replayed(cs.session_key_record(key), state=state)
    assert state.session_key == key
    request = cs.RestartRequest("c", True, False)
    assert state.replay(*cs.restart_record(request), 1) == cs.RestartRequested(request)
    assert state.replay(*cs.logger_record("a.b", "INFO"), 2) == cs.LoggerLevelSet("a.b", "INFO")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        ("connector-c", b"no json"),
        ("connector-c", b"[]"),
        ("connector-c", b'{"properties": 5}'),
        ("task-c", b'{"properties": {}}'),
        ("commit-c", b'{"tasks": "two"}'),
        ("target-state-c", b'{"state": "FLYING"}'),
        ("session-key", b'{"key": "!", "algorithm": "a", "creation-timestamp": 1}'),
        ("something-else", b"{}"),
    ],
)
def test_records_that_make_no_sense_are_passed_over(key: str | None, value: bytes) -> None:
    state = ConfigState()
    assert state.replay(key, value, 7) is None
    assert state.connectors == {}
    assert state.offset == 8


def test_statuses() -> None:
    state = StatusState()
    running = Status(State.RUNNING, "w1", 3)
    for id in ("c", TaskId("c", 0), TaskId("c-2", 10)):
        state.replay(*ss.status_record(id, running))
    assert state.get("c") == running
    assert [id for id, _ in state.tasks_of("c")] == [TaskId("c", 0)]
    assert not state.can_write("c", Status(State.UNASSIGNED, "w2", 2))
    assert state.can_write("c", Status(State.UNASSIGNED, "w1", 2))
    assert state.can_write("c", Status(State.UNASSIGNED, "w2", 4))
    state.replay(*ss.status_record("c", Status(State.DESTROYED, "w1", 3)))
    assert state.get("c") is None
    use = ss.TopicUse("t:connector-x", "c", 1, 99)
    state.replay(*ss.topic_record(ss.TopicUse("t", "c", 1, 99)))
    assert state.topics == {"c": {"t": ss.TopicUse("t", "c", 1, 99)}}
    assert use.topic


def test_a_java_workers_status_is_read() -> None:
    state = StatusState()
    value = (
        b'{"state":"FAILED","trace":"x\\n\\tat y","worker_id":"h:1","generation":4,"version":"1"}'
    )
    state.replay("status-task-c-0", value)
    assert state.tasks[TaskId("c", 0)] == Status(State.FAILED, "h:1", 4, "x\n\tat y", "1")


def test_source_offsets() -> None:
    offsets = SourceOffsets()
    offsets.replay(b'["c",{"b":1,"a":"x"}]', b'{"n":1}')
    offsets.replay(b"rubbish", b"{}")
    offsets.replay(b'["c"]', b"{}")
    assert offsets.get("c", {"a": "x", "b": 1}) == {"n": 1}
    assert list(offsets.records()) == [(b'["c",{"b":1,"a":"x"}]', b'{"n":1}')]
    offsets.replay(b'["c",{"b":1,"a":"x"}]', None)
    assert offsets.all("c") == {}
    with pytest.raises(DataError, match="list"):
        checked("source offset", {"a": [1]})


class Future:
    def __init__(self, done: bool = False) -> None:
        self.is_done = done

    def done(self) -> bool:
        return self.is_done


def test_an_offset_waits_for_all_records_before_it() -> None:
    submitted, seen = SubmittedRecords(), []
    first, second, other = Future(), Future(True), Future(True)
    one, two = {"f": 1}, {"f": 2}
    submitted.add(one, {"n": 1}, first, "r1")
    submitted.add(one, {"n": 2}, second, "r2")
    submitted.add(two, {"n": 7}, other, "r3")
    submitted.add(None, None, None, "r4")

    def note(each: Any) -> None:
        seen.append(each[2])

    submitted.drain(note)
    assert submitted.take_committable() == {SourcePartition(two): {"n": 7}}
    assert (submitted.pending, sorted(seen)) == (2, ["r3", "r4"])
    first.is_done = True
    submitted.drain(note)
    found = submitted.take_committable()
    assert found == {SourcePartition(one): {"n": 2}}
    submitted.add(one, {"n": 3}, None, "r5")
    submitted.drain(note)
    submitted.put_back(found)
    assert submitted.take_committable() == {SourcePartition(one): {"n": 3}}


@pytest.mark.parametrize(
    ("policy", "attempt", "elapsed_ms", "delay_ms"),
    [
        pytest.param(RetryPolicy(0, 60_000), 1, 0, None, id="no retries"),
        pytest.param(RetryPolicy(-1, 60_000), 1, 10**9, 300, id="for ever"),
        pytest.param(RetryPolicy(10_000, 60_000), 3, 900, 1200, id="doubled each time"),
        pytest.param(RetryPolicy(10_000, 60_000), 5, 9_000, 1000, id="not beyond the end"),
        pytest.param(RetryPolicy(10_000, 60_000), 5, 10_000, None, id="time is over"),
        pytest.param(RetryPolicy(-1, 1000), 9, 0, 500, id="spread below the maximum"),
    ],
)
def test_retries(policy: RetryPolicy, attempt: int, elapsed_ms: int, delay_ms: int | None) -> None:
    assert policy.delay_ms(attempt, elapsed_ms, 0.5) == delay_ms


def test_what_may_be_skipped() -> None:
    assert is_tolerable(Stage.VALUE_CONVERTER, DataError("x"))
    assert not is_tolerable(Stage.TASK_PUT, DataError("x"))
    assert is_tolerable(Stage.TASK_PUT, RetriableError("x"))


def test_topics_are_created_by_the_first_group_that_matches() -> None:
    creation = TopicCreation(
        {
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "-1",
            "topic.creation.default.cleanup.policy": "compact",
            "topic.creation.groups": "big",
            "topic.creation.big.include": "big-.*,other",
            "topic.creation.big.exclude": "big-not",
            "topic.creation.big.partitions": "20",
        }
    )
    assert creation.settings_of("x").partitions == 3
    assert creation.settings_of("x").configs == {"cleanup.policy": "compact"}
    assert creation.settings_of("big-1").partitions == 20
    assert creation.settings_of("big-1").replication_factor is None
    assert creation.settings_of("big-not").partitions == 3
