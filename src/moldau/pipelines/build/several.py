"""Several sinks of one pipeline, written from one read of its sources.

Each batch is kept while it is written to all of them. What goes to topics, dead letters included,
is one exactly-once write; each table has the batch once, as it would with a query of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moldau.pipelines.build import sinks
from moldau.pipelines.build.frames import Flow, Flows
from moldau.pipelines.build.letters import letter
from moldau.pipelines.build.machine.names import LETTER
from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.build.routing import routed
from moldau.pipelines.build.table_options import table_options
from moldau.pipelines.definition import Pipeline, Table, Topic
from moldau.pipelines.definition.model import INPUT
from moldau.pipelines.definition.outputs import Output
from moldau.pipelines.definition.topic_options import sink_options
from moldau.pipelines.errors import PipelineError
from moldau.spark import tables

__all__ = ["SinkBatches", "check_sinks", "rows_of", "start", "with_letters"]

_TOPICS = "topics"


def rows_of(flows: Flows, flow: Flow) -> Any:
    """What each batch has: the flow's rows, and dead letters as rows that have nothing else."""
    from pyspark.sql import functions as F

    if flows.pipeline.dead_letter is None:
        return flows.untagged(flow).frame
    frame = flow.frame
    if flow.tagged:
        made = letter(list(flow.columns), flow.implicit, pipeline=flows.pipeline.name)
        frame = frame.withColumn(LETTER, made).drop(ERROR)
    for branch in flows.letters:
        frame = frame.unionByName(branch.select(F.col(LETTER)), allowMissingColumns=True)
    return frame


def with_letters(flow: Flow, pipeline: Pipeline, bootstrap: str) -> Pipeline | None:
    """The pipeline with its table as one of several sinks; None where that changes nothing.

    Where a row step has found the bad records, they are known in its batch only: written from
    there, dead letters are there once, as the table's rows are.
    """
    sink = pipeline.sink
    if not (flow.tagged and flow.ran_user_code and isinstance(sink, Table)):
        return None
    try:
        options = table_options(sink, pipeline, bootstrap)
        if not tables.is_written_once(sink.kind, options):
            return None
    except tables.TableError:
        # Told where the sink is made.
        return None
    fields = pipeline.to_json()
    fields["sinks"] = {"sink": fields.pop("sink")}
    return Pipeline.from_json(fields)


def check_sinks(flows: Flows, flow: Flow) -> None:
    """Lets Spark analyse what each batch is going to do; raises what is wrong with it."""
    good = Flow(flow.frame.drop(ERROR), flow.implicit).over(flow.frame.drop(ERROR))
    for output in flows.pipeline.sinks.values():
        made = _of_output(flows, output, good)
        if isinstance(output.sink, Topic):
            _ = sinks.records(made, output.sink, flows.pipeline).schema
            continue
        try:
            options = table_options(output.sink, flows.pipeline, flows.bootstrap)
            tables.check_batches(output.sink.kind, options)
        except tables.TableError as error:
            where = str(output.sink.place) if output.sink.place else None
            raise PipelineError(error.message, where=where, hint=error.hint or None) from None


def start(frame: Any, flow: Flow, pipeline: Pipeline, bootstrap: str, checkpoint: str) -> Any:
    batches = SinkBatches(pipeline.to_json(), flow.implicit, bootstrap, checkpoint)
    return (
        frame.writeStream.option("checkpointLocation", checkpoint)
        .outputMode(pipeline.output_mode)
        .trigger(**pipeline.trigger.for_spark())
        .queryName(pipeline.name)
        .foreachBatch(batches)
        .start()
    )


def _of_output(flows: Flows, output: Output, rows: Flow) -> Flow:
    step = output.step()
    flow = rows if step is None else flows.sql(step, {INPUT: rows})
    return routed(flows, flow, output.sink) if isinstance(output.sink, Topic) else flow


class SinkBatches:
    """An argument of `foreachBatch`; it is called in a Python process of the server."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        implicit: frozenset[str],
        bootstrap: str,
        checkpoint: str,
    ) -> None:
        self._definition = dict(definition)
        self._implicit = implicit
        self._bootstrap = bootstrap
        self._checkpoint = checkpoint
        self._query_id = ""

    def __call__(self, frame: Any, batch_id: int) -> None:
        from pyspark.sql import functions as F

        pipeline = Pipeline.from_json(self._definition)
        query = self._query_of(frame.sparkSession)
        with _kept(frame) as rows:
            topics: dict[str, list[Any]] = {}
            if LETTER in rows.columns:
                bad = rows.where(F.col(LETTER).isNotNull())
                topics[_TOPICS] = [sinks.letters([bad], pipeline)]
                rows = rows.where(F.col(LETTER).isNull()).drop(LETTER)
            good = Flow(rows, self._implicit).over(rows)
            flows = Flows(frame.sparkSession, pipeline, self._bootstrap, None)
            for name, output in pipeline.sinks.items():
                flow = _of_output(flows, output, good)
                if isinstance(output.sink, Topic):
                    group = name if _has_own_settings(output.sink) else _TOPICS
                    records = sinks.records(flow, output.sink, pipeline)
                    topics.setdefault(group, []).append(records)
                else:
                    self._to_table(flow, name, output, pipeline, f"{query}.{name}", batch_id)
            for group, parts in topics.items():
                self._to_topics(group, parts, pipeline, f"{query}.{group}", batch_id)

    def _to_table(
        self,
        flow: Flow,
        name: str,
        output: Output,
        pipeline: Pipeline,
        query_id: str,
        batch_id: int,
    ) -> None:
        sink = output.sink
        if isinstance(sink, Topic):
            return
        try:
            tables.write_batch(
                flow.frame.select(*[f"`{column}`" for column in flow.visible]),
                sink.kind,
                table_options(sink, pipeline, self._bootstrap),
                query_id=query_id,
                batch_id=batch_id,
                output_mode=pipeline.output_mode,
            )
        except tables.TableError as error:
            raise PipelineError(f"sinks.{name}: {error.message}", hint=error.hint) from error

    def _to_topics(
        self, group: str, parts: list[Any], pipeline: Pipeline, query_id: str, batch_id: int
    ) -> None:
        frame = parts[0]
        for part in parts[1:]:
            frame = frame.unionByName(part, allowMissingColumns=True)
        named = pipeline.sinks[group].sink if group in pipeline.sinks else None
        sink = named if isinstance(named, Topic) else Topic(pipeline.dead_letter)
        options = sink_options(sink, pipeline.kafka, bootstrap=self._bootstrap)
        writer = frame.write.format("moldau").mode("append").options(**options)
        if _is_exactly_once(sink):
            writer = writer.options(txnAppId=query_id, txnVersion=str(batch_id))
        writer.save()

    def _query_of(self, spark: Any) -> str:
        """The id in the checkpoint: a new checkpoint is a new query with new batch numbers."""
        if not self._query_id:
            lines = spark.read.text(f"{self._checkpoint}/metadata").collect()
            self._query_id = str(json.loads(lines[0][0])["id"])
        return self._query_id


def _has_own_settings(sink: Topic) -> bool:
    """Then it cannot be written together with others."""
    return any(name.lower() != "allowloop" for name in sink.settings)


def _is_exactly_once(sink: Topic) -> bool:
    given = {name.lower(): str(value).strip().lower() for name, value in sink.settings.items()}
    return given.get("exactlyonce", "true") != "false"


@contextmanager
def _kept(frame: Any) -> Iterator[Any]:
    """The batch's rows, worked out once however often they are read."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()
