"""Which plan a step gets does not depend on how well the server is at the moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from moldau.pipelines import Pipeline, Sql, Topic
from moldau.pipelines.build.frames import Flow, Flows
from moldau.pipelines.build.machine.sql_text import ERROR

STEP = Sql("SELECT id FROM input")


def with_origin(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> Flow | None:
    """The user's own statement is fine; the one made of it, which carries more, meets `failure`."""
    pipeline = Pipeline(
        "p", source=Topic("t", schema="id STRING"), steps=[STEP], sink=Topic("out", key="id")
    )
    flows = Flows(spark=None, pipeline=pipeline, bootstrap="", read=None)

    def selected(query: str, views: Any) -> Any:
        if query == STEP.query:
            return SimpleNamespace(columns=["id"])
        raise failure

    monkeypatch.setattr(flows, "_selected", selected)
    frame = SimpleNamespace(drop=lambda name: SimpleNamespace(columns=["id"]))
    return flows._sql_with_origin(STEP, Flow(frame, tagged=True, columns=("id", "_offset", ERROR)))


def test_what_spark_refuses_goes_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_origin(monkeypatch, AnalysisException("ambiguous")) is None


def test_a_server_that_is_away_makes_no_other_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionError):
        with_origin(monkeypatch, ConnectionError("the server is away"))
