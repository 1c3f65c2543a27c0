"""Sources of a pipeline as DataFrames."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from moldau.pipelines.build.headers import reads_headers
from moldau.pipelines.build.records import has_registry
from moldau.pipelines.build.table_options import table_options
from moldau.pipelines.definition import Pipeline, Source, Topic
from moldau.pipelines.definition.topic_options import source_options
from moldau.pipelines.errors import PipelineError
from moldau.spark import tables


def connector_of(spark: Any, pipeline: Pipeline, asked: str) -> str:
    """`moldau` or `kafka`; the error about one that the server lacks says how to get it."""
    from moldau.spark import SparkRuntimeError, topic_format

    try:
        return topic_format(spark, asked)
    except SparkRuntimeError as error:
        where = str(pipeline.place) if pipeline.place else None
        raise PipelineError(f"connector: {error}", where=where) from None


class Sources:
    """Reads what one query of a pipeline reads, as the consumer group `group`."""

    def __init__(self, spark: Any, pipeline: Pipeline, bootstrap: str, *, group: str) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._group = group
        self._views: list[str] = []

    def read(self, source: Source) -> Any:
        """The source's DataFrame, as one source however often the query's plan names it.

        A checkpoint counts the sources of its query. Spark would make one of each reference to the
        DataFrame or, if its cache of plans still has it, one of all: a restarted query might not
        fit its checkpoint. A view is analysed once, and all that read it mean the same source.
        """
        frame = self._frame(source)
        if not source.streaming:
            return frame
        view = f"__moldau_{uuid4().hex}"
        frame.createOrReplaceTempView(view)
        self._views.append(view)
        return self._spark.table(view)

    def close(self) -> None:
        """Queries that run have their plan and need the views no more."""
        while self._views:
            self._spark.catalog.dropTempView(self._views.pop())

    def _frame(self, source: Source) -> Any:
        if isinstance(source, Topic):
            return self._topic(source)
        try:
            return tables.read(
                self._spark,
                source.kind,
                table_options(source, self._pipeline, self._bootstrap),
                streaming=source.streaming,
            )
        except tables.TableError as error:
            raise PipelineError(
                f"source: {error.message}",
                where=str(source.place) if source.place else None,
                hint=error.hint or None,
            ) from error

    def _topic(self, source: Topic) -> Any:
        connector = connector_of(self._spark, self._pipeline, self._pipeline.connector)
        options = source_options(
            source,
            self._pipeline.kafka,
            bootstrap=self._bootstrap,
            group=self._group,
            connector=connector,
            headers=has_registry(source) or reads_headers(self._pipeline),
            interval_ms=self._pipeline.trigger.interval_ms,
        )
        return self._spark.readStream.format(connector).options(**options).load()
