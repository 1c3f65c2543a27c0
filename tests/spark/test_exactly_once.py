"""Streams from topic to topic in Spark that fail at bad moments: each record is there once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from moldau.client import Admin, Consumer, Producer, TopicPartition
from moldau.client.admin import NewTopic, OffsetSpec

# The server's workers cannot import this file, so what runs there is sent as it is.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

PARTITIONS = 2
VALUES = [f"{number}" for number in range(20)]


class Copying:
    """A query that copies a topic of two partitions, step by step under the test's control."""

    def __init__(self, spark: Any, bootstrap: str, topic: str, checkpoint: str) -> None:
        self.spark, self.bootstrap, self.checkpoint = spark, bootstrap, checkpoint
        self.source, self.target, self.prefix = f"{topic}-in", f"{topic}-out", f"{topic}-sink"
        self.config = {"bootstrap.servers": bootstrap}
        with Admin(self.config) as admin:
            admin.create_topics([NewTopic(self.source, PARTITIONS, 1), self.target])
        with Producer(self.config) as producer:
            for number, value in enumerate(VALUES):
                producer.send(self.source, value.encode(), partition=number % PARTITIONS)

    def run(self, step: Callable[[Any], Any] | None = None) -> Exception | None:
        """All that is there; the error if the query failed."""
        frame = (
            self.spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", self.source)
            .option("startingOffsets", "earliest")
            .option("mirrorOffsets", "false")
            .load()
            .select("value")
        )
        if step is not None:
            frame = frame.mapInArrow(step, "value binary")
        query = (
            frame.writeStream.format("moldau")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("topic", self.target)
            .option("kafka.transactional.id", self.prefix)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination(120)
        except Exception as error:
            return error
        found: Exception | None = query.exception()
        return found

    def committed(self) -> list[str]:
        place = TopicPartition(self.target, 0)
        with Admin(self.config) as admin:
            end = admin.list_offsets({place: OffsetSpec.latest()})[place].offset
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        with Consumer(self.config | settings) as consumer:
            consumer.assign([place])
            found: list[str] = []
            deadline = time.monotonic() + 30
            while consumer.position(place) < end:
                assert time.monotonic() < deadline, "an open transaction holds readers up"
                found += [record.value.decode() for record in consumer.poll(1.0)]
            return sorted(found, key=int)


@pytest.fixture
def copying(spark: Any, bootstrap: str, topic: str, checkpoint: str) -> Copying:
    return Copying(spark, bootstrap, topic, checkpoint)


def test_batch_that_spark_did_not_note_is_not_written_again(copying: Copying) -> None:
    assert copying.run() is None
    assert copying.committed() == VALUES
    # As if the server had been killed after the sink's commit and before Spark's own.
    for path in Path(copying.checkpoint, "commits").iterdir():
        path.unlink()
    with Producer(copying.config) as producer:
        producer.send(copying.source, b"20", partition=0)
    assert copying.run() is None
    assert copying.committed() == [*VALUES, "20"]


def test_task_that_fails_after_another_has_written(copying: Copying, tmp_path: Path) -> None:
    config, first = dict(copying.config), f"{copying.prefix}-0"
    failed = str(tmp_path / "failed")

    def fail_once(batches: Any) -> Any:
        import os

        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == 1 and not os.path.exists(failed):
            _wait_until_written(config, first)
            with open(failed, "w"):
                raise ValueError("a step of the user's that fails")

    error = copying.run(fail_once)
    assert "a step of the user's that fails" in str(error)
    assert copying.committed() == []
    assert copying.run(fail_once) is None
    assert copying.committed() == VALUES


def test_commit_that_fails_is_made_good(copying: Copying, tmp_path: Path) -> None:
    config, first = dict(copying.config), f"{copying.prefix}-0"
    done = str(tmp_path / "done")

    def end_the_other(batches: Any) -> Any:
        import os

        from pyspark import TaskContext

        from moldau.client import Admin

        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == 1 and not os.path.exists(done):
            # What a timeout would do to the other task's transaction.
            _wait_until_written(config, first)
            with Admin(config) as admin:
                admin.fence_producers([first])
            with open(done, "w"):
                pass

    error = copying.run(end_the_other)
    assert f"the transactions of {first} ended" in str(error)
    assert copying.committed() == []
    assert copying.run(end_the_other) is None
    assert copying.committed() == VALUES


def _wait_until_written(config: dict[str, str], transactional_id: str) -> None:
    """Until a task has left its last record, the proof of its commit, in the transaction."""
    import time

    from moldau.client import Admin

    with Admin(config) as admin:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = admin.describe_transactions([transactional_id], check=False).values_by_key
            topics = [place.topic for each in found.values() for place in each.topic_partitions]
            if "__moldau_spark_sinks" in topics:
                return
            time.sleep(0.02)
    raise TimeoutError(transactional_id)
