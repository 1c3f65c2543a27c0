"""The registry's records: what is written is read again, and what is strange is told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.machine.records import (
    Desired,
    ErrorRecord,
    PipelineRecord,
    ProgressRecord,
    QueryRecord,
    State,
    StatusRecord,
    UnreadableRecordError,
    View,
    name_problem,
)

TEXT = st.text(max_size=20)
NUMBER = st.integers(0, 2**53)
OPTIONAL_NUMBER = st.none() | NUMBER
PIPELINES = st.builds(
    PipelineRecord,
    name=TEXT,
    definition=st.dictionaries(TEXT, TEXT),
    desired=st.sampled_from(Desired),
    checkpoint=TEXT,
    deployment=TEXT,
    generation=NUMBER,
    revision=NUMBER,
    finite=st.booleans(),
    settings=st.dictionaries(TEXT, NUMBER),
    delete_checkpoint=st.booleans(),
    updated_at_ms=NUMBER,
)
STATUSES = st.builds(
    StatusRecord,
    name=TEXT,
    state=st.sampled_from(State),
    revision=NUMBER,
    attempts=NUMBER,
    retry_at_ms=OPTIONAL_NUMBER,
    since_ms=NUMBER,
    server_id=st.none() | TEXT,
    session_id=st.none() | TEXT,
    queries=st.lists(st.builds(QueryRecord, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    connector=st.none() | TEXT,
    last_error=st.none()
    | st.builds(ErrorRecord, message=TEXT, where=st.none() | TEXT, detail=TEXT, at_ms=NUMBER),
    progress=st.none() | st.builds(ProgressRecord, batch_id=NUMBER, lag_records=OPTIONAL_NUMBER),
    activity=st.none() | TEXT,
    updated_at_ms=NUMBER,
)


@given(PIPELINES)
def test_a_pipeline_is_read_as_it_was_written(record: PipelineRecord) -> None:
    assert PipelineRecord.from_bytes(record.to_bytes()) == record


@given(STATUSES)
def test_a_status_is_read_as_it_was_written(status: StatusRecord) -> None:
    assert StatusRecord.from_bytes(status.to_bytes()) == status


def a_record(**changes: object) -> bytes:
    record = PipelineRecord(
        name="a",
        definition={},
        desired=Desired.RUNNING,
        checkpoint="c",
        deployment="d",
        generation=1,
        revision=1,
    )
    return json.dumps(json.loads(record.to_bytes()) | changes).encode()


def test_what_a_later_moldau_added_is_passed_over() -> None:
    assert PipelineRecord.from_bytes(a_record(colour="blue")).name == "a"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xff", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "version None"),
        (a_record(version=2), "update it"),
        (a_record(desired="asleep"), "asleep"),
        (b'{"version": 1, "desired": "running"}', "not a pipeline's record"),
    ],
)
def test_what_cannot_be_read_says_why(value: bytes, reason: str) -> None:
    with pytest.raises(UnreadableRecordError, match=reason):
        PipelineRecord.from_bytes(value)


def test_a_view_has_the_latest_of_each_key() -> None:
    view = View()
    status = StatusRecord(name="a", state=State.RUNNING)
    view.apply(b"a", a_record())
    view.apply(b"a", a_record(generation=2))
    view.apply(b"a/status", status.to_bytes())
    view.apply(b"b", b"{}")
    view.apply(b"not/a/name", a_record())
    assert view.pipelines["a"].generation == 2
    assert view.statuses == {"a": status}
    assert list(view.unreadable) == ["b"]
    for key in (b"a", b"a/status", b"b"):
        view.apply(key, None)
    assert not view.pipelines
    assert not view.statuses
    assert not view.unreadable


@pytest.mark.parametrize("name", ["a", "big-orders", "A.b_c-1", "0"])
def test_names(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name", ["", "a/b", "a/status", ".a", "-a", "a b", "ä", "x" * 201, "a.dead-letter", None, 3]
)
def test_what_cannot_be_a_name(name: object) -> None:
    assert name_problem(name) is not None
