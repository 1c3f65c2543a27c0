"""Streams from topic to topic in Spark that fail at bad moments: each record is there once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException

from moldau.client import Admin, Producer
from moldau.client.admin import NewTopic
from spark.running import SECONDS_MAX, committed, finished

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
        writer = (
            frame.writeStream.format("moldau")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("topic", self.target)
            .option("kafka.transactional.id", self.prefix)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
        )
        try:
            finished(lambda: [writer.start()])
        except PySparkException as error:
            return error
        return None

    def committed(self) -> list[str]:
        found = [record.value.decode() for record in committed(self.bootstrap, self.target)]
        return sorted(found, key=int)


@pytest.fixture
def copying(spark: Any, bootstrap: str, topic: str, checkpoint: str) -> Copying:
    return Copying(spark, bootstrap, topic, checkpoint)


@pytest.mark.long("Spark runs batches again and again; test_exactly_once_steps stops at each step")
@pytest.mark.slow("Spark runs the same batches again after each fault")
def test_failed_task_and_forgotten_commit(copying: Copying, tmp_path: Path) -> None:
    """A task fails after another has written; later Spark does not know of a batch's commit."""
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
    # As if the server had been killed after the sink's commit and before Spark's own.
    for path in Path(copying.checkpoint, "commits").iterdir():
        path.unlink()
    with Producer(copying.config) as producer:
        producer.send(copying.source, b"20", partition=0)
    assert copying.run(fail_once) is None
    assert copying.committed() == [*VALUES, "20"]


@pytest.mark.long("every other step of a commit that can fail is in the short tests")
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
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            found = admin.describe_transactions([transactional_id], check=False).values_by_key
            topics = [place.topic for each in found.values() for place in each.topic_partitions]
            if "__moldau_spark_sinks" in topics:
                return
            time.sleep(0.02)
    raise TimeoutError(transactional_id)
