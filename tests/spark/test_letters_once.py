"""Dead letters of a row step before a table: once, also if the batch runs again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from moldau.client import Producer
from moldau.pipelines import Jdbc, Pipeline, RowStep, Topic, build
from spark.running import committed, finished
from spark.test_tables import forget_last_commit


def test_a_batch_that_runs_again_sends_its_letters_once(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, checkpoint: str
) -> None:
    def check(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] % 2:
            raise ValueError("odd")
        return row

    pipeline = Pipeline(
        "even",
        source=Topic(topic, schema="id INT", startingOffsets="earliest"),
        steps=[RowStep(check)],
        sink=Jdbc(f"jdbc:sqlite:{tmp_path / 'even.db'}", table="even"),
        dead_letter=f"{topic}-dead",
        trigger="available now",
    )

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
    with sqlite3.connect(tmp_path / "even.db") as database:
        assert sorted(database.execute("SELECT id FROM even")) == [(0,), (2,), (4,)]
