"""Which topic of several each row is written to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from moldau.pipelines.build import records
from moldau.pipelines.build.frames import Flow, Flows
from moldau.pipelines.build.machine.names import ROUTE
from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.definition import Pipeline, Topic

__all__ = ["routed"]

_TOPIC: Final = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$"


def routed(flows: Flows, flow: Flow, sink: Topic) -> Flow:
    """The flow with each row's topic; a row whose topic cannot be written to is bad."""
    from pyspark.sql import functions as F

    if sink.route is None:
        return flow
    name = F.expr(sink.route).cast("string")
    if flow.tagged:
        # The expression might fail for a bad record.
        name = F.when(F.col(ERROR).isNull(), name)
    if sink.topic is not None:
        name = F.coalesce(name, F.lit(sink.topic))
    rows = flow.frame.withColumn(ROUTE, name)
    message = _mistake(F.col(ROUTE), sink, flows.pipeline)
    rows = records.marked(rows, message, "route", "RouteError", tagged=flow.tagged)
    result = flow.over(rows, tagged=True)
    return result if flows.pipeline.dead_letter is not None else flows.untagged(result)


def _mistake(name: Any, sink: Topic, pipeline: Pipeline) -> Any:
    """Why a row cannot be written to the topic of that name; null if it can."""
    from pyspark.sql import functions as F

    shown = F.concat(F.lit("topic '"), F.substring(name, 1, 250), F.lit("'"))
    wrong = F.when(name.isNull(), F.lit("route: gives no topic, and there is no other")).when(
        ~name.rlike(_TOPIC), F.concat(F.lit("route: "), shown, F.lit(" cannot be a topic's name"))
    )
    if sink.topics:
        listed = F.concat(F.lit("route: "), shown, F.lit(" is not in the sink's topics"))
        wrong = wrong.when(~name.isin(list(sink.written)), listed)
    read = list(_read(pipeline))
    if read and not _allows_loop(sink):
        wrong = wrong.when(
            name.isin(read), F.concat(F.lit("route: "), shown, F.lit(" is also read"))
        )
    return wrong


def _read(pipeline: Pipeline) -> Iterator[str]:
    for source in pipeline.sources.values():
        if isinstance(source, Topic):
            yield from source.written
            if source.assign is not None:
                yield from json.loads(source.assign)


def _allows_loop(sink: Topic) -> bool:
    return any(
        name.lower() == "allowloop" and str(value).lower() == "true"
        for name, value in sink.settings.items()
    )
