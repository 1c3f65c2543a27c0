"""Lag is read from the progress of queries over either connector."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.lag import LAG_KEY, Lag, behind, lag, latest_with_lag

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def progress(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"id": "x", "sources": list(sources)}


def source(end: Any, latest: Any) -> dict[str, Any]:
    return {"description": "s", "endOffset": end, "latestOffset": latest}


def test_the_report_keeps_kafkas_shape_and_adds_one_key() -> None:
    unread = behind({A: 2, B: 5}, {A: 10, B: 5})
    report = latest_with_lag({A: 10, B: 5}, unread, 1_000, 3_500)
    assert report == {
        "a": {"0": 10},
        "b": {"1": 5},
        LAG_KEY: {"records": 8, "seconds": 2.5},
    }


@pytest.mark.parametrize(
    ("unread", "oldest_ms", "entry"),
    [
        ({}, 1_000, {"records": 0, "seconds": 0.0}),
        ({A: 3}, None, {"records": 3}),
        ({A: 3}, 9_000, {"records": 3, "seconds": 0}),
    ],
)
def test_seconds(unread: Any, oldest_ms: int | None, entry: Any) -> None:
    assert latest_with_lag({A: 3}, unread, oldest_ms, 3_000)[LAG_KEY] == entry


class Progress:
    """As Spark's, which has its JSON."""

    def __init__(self, value: Any) -> None:
        self.json = json.dumps(value)


@pytest.mark.parametrize("form", [dict, json.dumps, Progress])
def test_lag_of_both_connectors(form: Any) -> None:
    ours = source({"a": {"0": 2}}, {"a": {"0": 10}, LAG_KEY: {"records": 8, "seconds": 2.5}})
    official = source('{"b":{"1":4}}', '{"b":{"1":5}}')
    other = source("12", "15")
    assert lag(form(progress(ours, official, other))) == Lag(9, 2.5, {"a-0": 8, "b-1": 1})


def test_lag_in_seconds_is_not_known_for_the_official_connector() -> None:
    assert lag(progress(source('{"b":{"1":4}}', '{"b":{"1":5}}'))) == Lag(1, None, {"b-1": 1})


def test_before_the_first_progress_there_is_no_lag() -> None:
    assert lag(None) == Lag()
    assert lag(progress(source(None, None))) == Lag()
