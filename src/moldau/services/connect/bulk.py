"""A bulk sink's task: its pipeline is started, watched and, when the task ends, removed.

The pipeline is called `connect-NAME`, as is the group in which it commits how far it has read. Its
checkpoint stays when it is removed, so a connector that comes back goes on where it was.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from moldau.client import Consumer, KafkaError, TopicPartition
from moldau.connect.api import ConnectError
from moldau.connect.machine.columns import columns_of, ddl
from moldau.connect.runtime.bulk import BulkJob
from moldau.connect.runtime.bulk_rows import QUERY
from moldau.connect.runtime.failures import StepFailed
from moldau.connect.runtime.sink_task import SinkCounts
from moldau.installation import pip_install

__all__ = ["BulkRunner"]

logger = logging.getLogger(__name__)

_STEP: Final = "moldau.connect.runtime.bulk_rows"
_DEPLOYMENT: Final = "moldau-data-spark"
_LOOK_S: Final = 1.0
_SAMPLE_S: Final = 5.0
_STOP_S: Final = 60.0


class BulkRunner:
    """Runs one task of a bulk sink."""

    def __init__(self, job: BulkJob, deployment: str | None) -> None:
        self.counts = SinkCounts()
        self.failures = job.failures
        self.name = f"connect-{job.id.connector}"
        self._job = job
        self._folder = job.config.get("spark.deployment") or deployment or _DEPLOYMENT
        self._wake = threading.Event()
        self._runs = False
        self._batch: int | None = None

    def run(self) -> None:
        """Until the task is stopped; raises what makes it fail."""
        try:
            from moldau.pipelines.api import Pipelines
            from moldau.pipelines.errors import PipelineError
        except ImportError as error:
            raise ConnectError(
                f"A bulk sink runs on Spark, which is not installed: {pip_install('spark')}"
            ) from error
        life = self._job.life
        client = dict(self._job.client)
        servers = client["bootstrap.servers"]
        try:
            with Pipelines(servers, folder=self._folder, config=client) as pipelines:
                try:
                    life.started()
                    while not life.stopping.is_set():
                        self._follow(pipelines)
                        self._wake.wait(_LOOK_S)
                finally:
                    self._remove(pipelines)
        except PipelineError as error:
            raise ConnectError(str(error)) from error

    def interrupt(self) -> None:
        """From another thread: end the wait."""
        self._wake.set()

    # The pipeline.

    def _follow(self, pipelines: Any) -> None:
        if self._job.life.paused:
            self._remove(pipelines)
        elif self._runs:
            self._look(pipelines)
        elif columns := self._columns():
            logger.info("task %s: pipeline %s with %s", self._job.id, self.name, columns)
            pipelines.start(self._definition(columns), wait=False)
            self._runs = True
        self._job.life.note()

    def _definition(self, columns: str) -> Any:
        from moldau.pipelines import Pipeline, RowStep, Sql, Table, Topic
        from moldau.pipelines.definition.code import Code

        job, errors = self._job, self._job.failures.settings
        topics = _topics(job.config)
        # As with tasks: without tolerance the first bad record is the end.
        letters = (errors.dead_letter_topic or None) if errors.tolerate_all else None
        return Pipeline(
            self.name,
            source=Topic(
                topics=topics,
                pattern=None if topics else job.config["topics.regex"],
                format="binary",
                startingOffsets=job.config.get("consumer.override.auto.offset.reset", "earliest"),
                includeHeaders="true",
            ),
            steps=[
                Sql(QUERY),
                RowStep(
                    Code(function="record_to_row", module=_STEP),
                    columns,
                    args={"settings": job.settings},
                ),
            ],
            sink=Table(job.table.kind, dict(job.table.options)),
            trigger=job.config.get("trigger") or "10 seconds",
            dead_letter=letters,
            errors="ignore" if errors.tolerate_all and letters is None else "fail",
            engine="spark",
        )

    def _look(self, pipelines: Any) -> None:
        """Raises ConnectError if the pipeline has failed for good."""
        info = pipelines.show(self.name)
        if info.state == "failed" or _has_bad_record(info):
            if info.last_error is None:
                raise ConnectError(f"The pipeline {self.name} has failed")
            # Its own log goes with it.
            logger.error("pipeline %s: %s", self.name, info.last_error.detail)
            raise ConnectError(f"{self.name}: {info.last_error.message}")
        progress = info.progress
        if progress is None or progress.batch_id == self._batch:
            return
        self._batch = progress.batch_id
        self.counts.read += progress.input_rows or 0
        self.counts.sent += progress.input_rows or 0
        self.counts.lag = progress.lag_records or 0
        self.counts.commits += 1

    def _remove(self, pipelines: Any) -> None:
        """Its checkpoint stays. A task that was abandoned leaves the pipeline to the next one."""
        if not self._runs or self._job.life.abandoned:
            return
        from moldau.pipelines.errors import PipelineError

        self._runs = False
        try:
            pipelines.delete(self.name, timeout=_STOP_S)
        except PipelineError as error:
            logger.warning("task %s: the pipeline is not removed: %s", self._job.id, error)

    # Its columns.

    def _columns(self) -> str | None:
        """As DDL; None while the topics are empty."""
        given = self._job.config.get("columns")
        if given:
            return given
        values = [(each.value_schema, each.value) for each in self._sample()]
        return ddl(columns_of(values)) or None

    def _sample(self) -> Iterator[Any]:
        """The first and the last record of each partition, as the transforms leave them."""
        settings = {**self._job.client, "enable.auto.commit": "false"}
        try:
            with Consumer(settings) as consumer:
                for at in self._partitions(consumer):
                    self._job.on_topic(at.topic)
                    for record in _ends_of(consumer, at):
                        made = self._converted(record)
                        if made is not None and made.value is not None:
                            yield made
        except KafkaError as error:
            logger.warning("task %s: topics cannot be read yet: %s", self._job.id, error)

    def _partitions(self, consumer: Any) -> list[TopicPartition]:
        topics = _topics(self._job.config)
        if not topics:
            wanted = re.compile(self._job.config["topics.regex"])
            topics = [each for each in consumer.list_topics() if wanted.fullmatch(each)]
        return [
            TopicPartition(topic, each.partition)
            for topic in topics
            for each in consumer.partitions_for(topic)
        ]

    def _converted(self, record: Any) -> Any:
        try:
            return self._job.conversion.convert(record)
        except StepFailed as failed:
            if self._job.failures.settings.tolerate_all:
                return None
            raise ConnectError(
                f"The columns cannot be found: record {record.topic}-{record.partition} at offset "
                f"{record.offset}: {failed.error}"
            ) from failed.error


def _has_bad_record(info: Any) -> bool:
    """Whether a record cannot be read or transformed: the loop would try the same one again for
    ever, while a task without tolerance ends."""
    from moldau.pipelines.machine.explaining import ROW_STEP

    return info.attempts > 0 and info.last_error is not None and ROW_STEP in info.last_error.detail


def _topics(config: Any) -> list[str]:
    return [each.strip() for each in config.get("topics", "").split(",") if each.strip()]


def _ends_of(consumer: Any, at: TopicPartition) -> Iterator[Any]:
    consumer.assign([at])
    first, end = consumer.beginning_offsets([at])[at], consumer.end_offsets([at])[at]
    for offset in sorted({first, end - 1}):
        if first <= offset < end:
            consumer.seek(at, offset)
            deadline = time.monotonic() + _SAMPLE_S
            while time.monotonic() < deadline:
                found = list(consumer.poll(_LOOK_S))
                if found:
                    yield found[0]
                    break
