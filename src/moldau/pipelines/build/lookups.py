"""Lookups in a compacted topic: the latest value of each key, kept current while the query runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.pipelines.build import records
from moldau.pipelines.build.keys import key_of
from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.build.records import quoted
from moldau.pipelines.definition.relations import BAD, DROP, Lookup
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.explaining import short

__all__ = ["looked_up"]

_FOUND, _ROW, _CORRUPT = "__found", "__looked_up", "__corrupt"
_SHOWN_SIZE_MAX = 100


def looked_up(spark: Any, step: Lookup, frame: Any, config: Mapping[str, str]) -> Any:
    """The frame with the columns of the key's latest record, and with `__error`.

    `config` is that of the consumer that reads the topic.
    """
    from pyspark.sql import functions as F

    from moldau.spark.latest_values import latest_value

    is_tagged = ERROR in frame.columns
    fields = _fields(spark, step)
    key = key_of(frame, step.key, step.place, "lookup: key")
    if is_tagged:
        key = F.when(quoted(ERROR).isNull(), key)
    found = latest_value(key, step.topic, config, rows_max=step.rows_max)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    ddl = ", ".join(
        [*(f"`{one.name}` {one.dataType.simpleString()}" for one in fields), f"{_CORRUPT} string"]
    )
    rows = frame.withColumn(_FOUND, found)
    rows = rows.withColumn(_ROW, F.from_json(quoted(_FOUND).cast("string"), ddl, options))
    if step.missing == DROP:
        keeps = quoted(_FOUND).isNotNull()
        rows = rows.where(keeps | quoted(ERROR).isNotNull() if is_tagged else keeps)
    rows = records.marked(rows, _mistake(step, key), "lookup", "LookupError", tagged=is_tagged)
    wanted = {name.lower() for name in step.columns}
    made = {
        f"{step.prefix}{one.name}": quoted(_ROW)[one.name]
        for one in fields
        if not wanted or one.name.lower() in wanted
    }
    _refuse_known(step, made, frame)
    return rows.withColumns(made).drop(_FOUND, _ROW)


def _fields(spark: Any, step: Lookup) -> list[Any]:
    try:
        fields = list(spark.createDataFrame([], step.schema).schema.fields)
    except Exception as failure:
        raise _wrong(step, f"schema: {short(failure)}", detail=str(failure)) from None
    known = {one.name.lower() for one in fields}
    for name in step.columns:
        if name.lower() not in known:
            raise _wrong(step, f"columns: the schema has no column {name!r}")
    return fields


def _mistake(step: Lookup, key: Any) -> Any:
    """Why a row is bad; null if it is not."""
    from pyspark.sql import functions as F

    shown = F.substring(quoted(_FOUND).cast("string"), 1, _SHOWN_SIZE_MAX)
    is_corrupt = quoted(_ROW).isNull() | quoted(_ROW)[_CORRUPT].isNotNull()
    wrong = F.when(
        quoted(_FOUND).isNotNull() & is_corrupt,
        F.concat(F.lit(f"the value in {step.topic} is not of the schema: "), shown),
    )
    if step.missing != BAD:
        return wrong
    named = F.coalesce(F.substring(key.cast("string"), 1, _SHOWN_SIZE_MAX), F.lit("null"))
    return wrong.when(
        quoted(_FOUND).isNull(), F.concat(F.lit(f"topic {step.topic} has no key "), named)
    )


def _refuse_known(step: Lookup, made: dict[str, Any], frame: Any) -> None:
    known = {name.lower() for name in frame.columns}
    for name in made:
        if name.lower() in known:
            raise _wrong(step, f"there is already a column {name!r}", hint="prefix: a text")


def _wrong(step: Lookup, message: str, **more: Any) -> PipelineError:
    where = str(step.place) if step.place else None
    return PipelineError(f"lookup: {message}", where=where, **more)
