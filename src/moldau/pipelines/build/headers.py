"""Whether a pipeline reads headers of records, and whether its steps make some."""

from __future__ import annotations

from moldau.pipelines.build.machine.names import HEADERS
from moldau.pipelines.build.machine.sql_text import mentions
from moldau.pipelines.definition import ColumnsToHeaders, HeadersToColumns, Pipeline, Sql, Topic

__all__ = ["reads_headers", "writes_headers"]


def reads_headers(pipeline: Pipeline) -> bool:
    """Headers are costly to read, so they are read only if the definition names them."""
    if any(isinstance(step, HeadersToColumns | ColumnsToHeaders) for step in pipeline.steps):
        return True
    texts = [step.query for step in pipeline.steps if isinstance(step, Sql)]
    texts += [output.sql for output in pipeline.sinks.values() if output.sql is not None]
    for sink in pipeline.ends().values():
        if isinstance(sink, Topic):
            given = (sink.key, sink.route, *sink.header_expressions())
            texts += [text for text in given if text]
    return any(mentions(text, HEADERS) for text in texts)


def writes_headers(pipeline: Pipeline) -> bool:
    """Whether a step has made headers for the sink to write."""
    return any(isinstance(step, ColumnsToHeaders) for step in pipeline.steps)
