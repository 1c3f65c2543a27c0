"""Dead letters of a row step before a table: once, also if the batch runs again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import read_table

from moldau.client import Producer
from moldau.pipelines import Jdbc, Parquet, Pipeline, RowStep, Topic, build
from spark.running import committed, finished
from spark.test_tables import forget_last_commit


def check(row: dict[str, Any]) -> dict[str, Any]:
    if row["id"] % 2:
        raise ValueError("odd")
    return row


def run_twice(spark: Any, bootstrap: str, pipeline: Pipeline, topic: str, checkpoint: str) -> None:
    """The pipeline, and once more after Spark has forgotten that its batch was committed."""

    def run() -> None:
        queries = finished(
            lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)
        )
        assert [query.name for query in queries] == ["even"]

    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(6):
            producer.send(topic, json.dumps({"id": number}))
        producer.send(topic, "no number")
    run()
    forget_last_commit(f"{checkpoint}/query")
    run()
    letters = sorted(record.value or b"" for record in committed(bootstrap, f"{topic}-dead"))
    assert letters == [b"no number", b'{"id": 1}', b'{"id": 3}', b'{"id": 5}']


def even(topic: str, **sink: Any) -> Pipeline:
    return Pipeline(
        "even",
        source=Topic(topic, schema="id INT", startingOffsets="earliest"),
        steps=[RowStep(check)],
        dead_letter=f"{topic}-dead",
        trigger="available now",
        **sink,
    )


@pytest.mark.long("each kind of sink, each batch twice; test_transforms has bad records once")
def test_a_batch_that_runs_again_sends_its_letters_once(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, checkpoint: str
) -> None:
    sink = Jdbc(f"jdbc:sqlite:{tmp_path / 'even.db'}", table="even")
    run_twice(spark, bootstrap, even(topic, sink=sink), topic, checkpoint)
    with sqlite3.connect(tmp_path / "even.db") as database:
        assert sorted(database.execute("SELECT id FROM even")) == [(0,), (2,), (4,)]


@pytest.mark.long("several sinks and a batch twice; test_transforms has bad records once")
def test_files_as_one_of_the_sinks_have_their_letters_once_too(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, checkpoint: str
) -> None:
    folder = tmp_path / "even"
    pipeline = even(topic, sinks={"files": Parquet(str(folder))})
    run_twice(spark, bootstrap, pipeline, topic, checkpoint)
    rows = [row for path in folder.glob("*.parquet") for row in read_table(path).to_pylist()]
    assert sorted(row["id"] for row in rows) == [0, 2, 4]
