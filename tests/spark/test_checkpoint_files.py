"""Checkpoints of servers that wrote their files in Spark's default way are gone on with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Producer
from moldau.pipelines import Pipeline, Sql, Topic, build
from spark.running import committed, finished

pytestmark = pytest.mark.long("a query with state runs three times, from each kind of checkpoint")

KEY = "spark.sql.streaming.checkpointFileManagerClass"
DEFAULT = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
IDS = [f"o{number}" for number in range(30)]


@pytest.fixture
def own_files(spark: Any) -> Iterator[str]:
    """The session writes checkpoints as servers did before; the server's own way."""
    own = spark.conf.get(KEY)
    assert own != DEFAULT
    spark.conf.set(KEY, DEFAULT)
    yield own
    spark.conf.set(KEY, own)


def produce(bootstrap: str, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for name in IDS:
            producer.send(topic, json.dumps({"id": name}).encode())


def test_a_session_chooses_how_files_are_written(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, own_files: str
) -> None:
    """Else the other test would compare one way with itself."""
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([topic, f"{topic}-copy"])
    pipeline = Pipeline(
        topic,
        source=Topic(topic, schema="id STRING"),
        sink=Topic(f"{topic}-copy"),
        trigger="available now",
    )
    spark.conf.set(KEY, "no.such.Manager")
    with pytest.raises(Exception, match=r"no\.such\.Manager"):
        finished(
            lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=str(tmp_path))
        )


@pytest.mark.parametrize("is_crashed", [False, True], ids=["stopped", "crashed in its last batch"])
def test_a_checkpoint_of_the_default_manager_is_gone_on_with(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, own_files: str, is_crashed: bool
) -> None:
    written = f"{topic}-counts"
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([topic, written])
    pipeline = Pipeline(
        topic,
        source=Topic(topic, schema="id STRING", startingOffsets="earliest"),
        steps=[Sql("SELECT id, count(*) AS n FROM input GROUP BY id")],
        sink=Topic(written, key="id"),
        trigger="available now",
        output_mode="update",
        connector="moldau",
    )

    def run() -> None:
        produce(bootstrap, topic)
        checkpoint = str(tmp_path / "checkpoint")
        finished(lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint))

    run()
    run()
    if is_crashed:
        # Its files of the state are there, and are written once more.
        (commit,) = tmp_path.rglob("commits/1")
        commit.unlink()
    spark.conf.set(KEY, own_files)
    run()
    found = Counter(record.value for record in committed(bootstrap, written))
    # Read again, a record would be counted twice; without the state, counts would begin anew.
    assert found == Counter(
        json.dumps({"id": name, "n": n}, separators=(",", ":")).encode()
        for name in IDS
        for n in (1, 2, 3)
    )
