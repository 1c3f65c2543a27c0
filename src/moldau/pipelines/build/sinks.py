"""What is written, and the queries that write it.

For a topic, good records and dead letters are rows of one DataFrame, each with its topic: one
exactly-once write takes both.
"""

from __future__ import annotations

from typing import Any

from moldau.invariant import of_type
from moldau.pipelines.build.frames import Flow
from moldau.pipelines.build.headers import writes_headers
from moldau.pipelines.build.keys import as_bytes, key_of
from moldau.pipelines.build.letters import HEADERS_TYPE
from moldau.pipelines.build.letters import letter as letter_of
from moldau.pipelines.build.machine.batches import TopicBatches
from moldau.pipelines.build.machine.names import HEADERS, LETTER, ROUTE
from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.build.records import has_id_in_header, value_of
from moldau.pipelines.build.sources import connector_of
from moldau.pipelines.build.table_options import table_options
from moldau.pipelines.definition import Pipeline, Table, Topic
from moldau.pipelines.definition.model import APPEND, UPDATE
from moldau.pipelines.definition.topic_options import sink_options
from moldau.pipelines.errors import PipelineError
from moldau.spark import tables

_PARTS = ("key", "value", "headers", "partition", "timestamp")


def records(flow: Flow, sink: Topic, pipeline: Pipeline) -> Any:
    """The flow's rows as records: topic, key, value and what else the sink has expressions for."""
    from pyspark.sql import functions as F

    topic = F.col(ROUTE) if ROUTE in flow.columns else F.lit(sink.topic)
    given = _expressions(flow, sink, pipeline)
    if not flow.tagged:
        return flow.frame.select(
            topic.alias("topic"), *[one.alias(name) for name, one in given.items()]
        )
    letter = letter_of(list(flow.columns), flow.implicit, pipeline=pipeline.name)
    rows = flow.frame.withColumn(LETTER, letter)
    good = F.col(ERROR).isNull()
    columns = {"topic": F.when(good, topic).otherwise(F.lit(pipeline.dead_letter))}
    for name in _PARTS:
        if name in ("key", "value", "headers"):
            bad = F.col(LETTER)[name]
            columns[name] = F.when(good, given[name]).otherwise(bad) if name in given else bad
        elif name in given:
            columns[name] = F.when(good, given[name])
    return rows.select(*[one.alias(name) for name, one in columns.items()])


def _expressions(flow: Flow, sink: Topic, pipeline: Pipeline) -> dict[str, Any]:
    from pyspark.sql import functions as F

    made = {"value": value_of(sink, flow.visible, base=pipeline.base)}
    if sink.key is not None:
        made["key"] = key_of(flow.frame, sink.key, sink.place, "sink: key")
    if isinstance(sink.headers, str):
        made["headers"] = F.expr(sink.headers).cast(HEADERS_TYPE)
    elif sink.headers:
        made["headers"] = F.array(
            *[
                F.struct(F.lit(name).alias("key"), as_bytes(F.expr(text)).alias("value"))
                for name, text in sink.headers.items()
            ]
        ).cast(HEADERS_TYPE)
    elif sink.headers is None and writes_headers(pipeline):
        made["headers"] = _own_headers(flow, sink)
    if has_id_in_header(sink):
        both = made["value"]
        made["value"] = both["data"]
        before = [made["headers"]] if "headers" in made else []
        made["headers"] = F.concat(*before, both["headers"]) if before else both["headers"]
    if sink.partition is not None:
        made["partition"] = F.expr(sink.partition).cast("int")
    if sink.timestamp is not None:
        made["timestamp"] = F.expr(sink.timestamp).cast("timestamp")
    return made


def _own_headers(flow: Flow, sink: Topic) -> Any:
    """What `columns_to_headers` has made."""
    from pyspark.sql import functions as F

    if HEADERS not in flow.columns:
        raise PipelineError(
            "sink: the headers of columns_to_headers got lost on the way",
            where=str(sink.place) if sink.place else None,
            hint="put columns_to_headers after steps that group or join",
        )
    return F.col(HEADERS).cast(HEADERS_TYPE)


def letters(branches: list[Any], pipeline: Pipeline) -> Any:
    """The branches' dead letters as records for their topic."""
    from pyspark.sql import functions as F

    made = None
    for branch in branches:
        part = branch.select(
            F.lit(pipeline.dead_letter).alias("topic"),
            f"{LETTER}.key",
            f"{LETTER}.value",
            f"{LETTER}.headers",
        )
        made = part if made is None else made.unionByName(part)
    return made


def with_letters(good: Any, branches: list[Any], pipeline: Pipeline) -> Any:
    if not branches:
        return good
    return good.unionByName(letters(branches, pipeline), allowMissingColumns=True)


def start(spark: Any, frame: Any, pipeline: Pipeline, bootstrap: str, checkpoint: str) -> Any:
    if isinstance(pipeline.sink, Topic):
        return _start_topic(spark, frame, pipeline, bootstrap, checkpoint, pipeline.name)
    sink = of_type(pipeline.sink, Table)
    try:
        return tables.start_sink(
            frame,
            sink.kind,
            table_options(sink, pipeline, bootstrap),
            query_name=pipeline.name,
            trigger=pipeline.trigger.for_spark(),
            checkpoint=checkpoint,
            output_mode=pipeline.output_mode,
        )
    except tables.TableError as error:
        raise PipelineError(
            f"sink: {error.message}",
            where=str(sink.place) if sink.place else None,
            hint=error.hint or None,
        ) from error


def start_letters(
    spark: Any, frame: Any, pipeline: Pipeline, bootstrap: str, checkpoint: str
) -> Any:
    name = f"{pipeline.name}.dead-letter"
    return _start_topic(spark, frame, pipeline, bootstrap, checkpoint, name)


def _start_topic(
    spark: Any, frame: Any, pipeline: Pipeline, bootstrap: str, checkpoint: str, name: str
) -> Any:
    sink = pipeline.sink if isinstance(pipeline.sink, Topic) else Topic(pipeline.dead_letter)
    # Only our own sink is exactly once: Spark's is used if it is asked for, not if it is there.
    asked = "kafka" if pipeline.connector == "kafka" else "moldau"
    connector = connector_of(spark, pipeline, asked)
    options = sink_options(sink, pipeline.kafka, bootstrap=bootstrap, connector=connector)
    mode = pipeline.output_mode if name == pipeline.name else APPEND
    writer = (
        frame.writeStream.option("checkpointLocation", checkpoint)
        .outputMode(mode)
        .trigger(**pipeline.trigger.for_spark())
        .queryName(name)
    )
    if connector == "moldau" and mode == UPDATE:
        return writer.foreachBatch(TopicBatches(options, checkpoint)).start()
    return writer.format(connector).options(**options).start()
