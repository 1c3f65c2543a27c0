"""What is read from Spark's progress, of our source and of Spark's own connector."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import TopicPartition
from moldau.pipelines.control.machine.progress import (
    activity_of,
    line_of,
    mirror_group,
    progress_record,
    read_offsets,
)
from moldau.pipelines.machine.records import ProgressRecord


def progress(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"batchId": 7, "timestamp": "2026-11-16T09:43:47.000Z", "sources": list(sources)}


OURS = {
    "description": "org.apache.spark...PythonMicroBatchStream@1",
    "endOffset": '{"orders": {"0": 200, "1": 150}}',
    "latestOffset": '{"orders": {"0": 210, "1": 150},'
    ' "moldau:lag": {"records": 10, "seconds": 2.5}}',
    "numInputRows": 200,
    "inputRowsPerSecond": 100.0,
    "processedRowsPerSecond": 88.6132,
}
OFFICIAL = {
    "description": "KafkaV2[Subscribe[payments]]",
    "endOffset": {"payments": {"0": 5}},
    "latestOffset": {"payments": {"0": 8}},
    "numInputRows": 5,
    "inputRowsPerSecond": float("nan"),
    "processedRowsPerSecond": 1.0,
}
RATE = {"description": "RateStreamV2[...]", "endOffset": 5, "latestOffset": 5, "numInputRows": 3}


@pytest.mark.parametrize(
    ("sources", "record"),
    [
        pytest.param(
            [OURS],
            ProgressRecord(
                batch_id=7,
                input_rows=200,
                input_rows_per_second=100.0,
                processed_rows_per_second=88.613,
                lag_records=10,
                lag_seconds=2.5,
                at="2026-11-16T09:43:47.000Z",
            ),
            id="our source",
        ),
        pytest.param(
            [OURS, OFFICIAL],
            ProgressRecord(
                batch_id=7,
                input_rows=205,
                input_rows_per_second=100.0,
                processed_rows_per_second=89.613,
                lag_records=13,
                lag_seconds=2.5,
                at="2026-11-16T09:43:47.000Z",
            ),
            id="several sources are added up",
        ),
        pytest.param(
            [RATE],
            ProgressRecord(batch_id=7, input_rows=3, at="2026-11-16T09:43:47.000Z"),
            id="no topic, no lag",
        ),
        pytest.param(
            [],
            ProgressRecord(batch_id=7, at="2026-11-16T09:43:47.000Z"),
            id="nothing known",
        ),
    ],
)
def test_progress_record(sources: list[dict[str, Any]], record: ProgressRecord) -> None:
    assert progress_record(progress(*sources)) == record


def test_a_progress_in_one_line() -> None:
    assert line_of(progress_record(progress(OURS))) == (
        "batch 7: 200 rows, 89 rows/s, lag 10 records (2.5 s)"
    )
    assert line_of(ProgressRecord(batch_id=0)) == "batch 0: 0 rows"


@pytest.mark.parametrize(
    ("message", "activity"),
    [
        ("Waiting for data to arrive", "waiting for records"),
        ("Waiting for next trigger", "waiting for the next trigger"),
        ("Getting offsets from org.apache.spark.X@5ec182b", "looking for records"),
        ("Processing new data", "working on a batch"),
        ("Initializing sources", "starting"),
        ("org.apache.spark.Whatever@1", None),
        (None, None),
    ],
)
def test_what_a_query_does(message: str | None, activity: str | None) -> None:
    assert activity_of(message) == activity


def test_only_what_spark_s_own_connector_read_is_mirrored() -> None:
    assert read_offsets(progress(OURS, OFFICIAL, RATE)) == {TopicPartition("payments", 0): 5}
    assert read_offsets(progress({"description": "KafkaV2[...]", "endOffset": "odd"})) == {}
    assert read_offsets({}) == {}


@pytest.mark.parametrize(
    ("definition", "group"),
    [
        ({"source": {"topic": "orders"}}, "p"),
        ({"source": {"topic": "orders", "groupId": "mine"}}, "mine"),
        ({"source": {"topic": "orders", "kafka.group.id": "mine"}}, "mine"),
        ({"source": {"topic": "orders"}, "kafka": {"group.id": "mine"}}, "mine"),
        ({"sources": {"a": {"topic": "orders"}, "b": {"groupid": "mine"}}}, "mine"),
        ({"source": {"topic": "orders", "mirrorOffsets": False}}, None),
        ({"source": {"topic": "orders", "mirroroffsets": "FALSE"}}, None),
    ],
)
def test_the_group_that_shows_how_far_it_has_read(
    definition: dict[str, Any], group: str | None
) -> None:
    assert mirror_group({"name": "p"} | definition) == group
