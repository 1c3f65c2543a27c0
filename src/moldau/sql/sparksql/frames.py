"""Runs a compiled query on DataFrames of Spark, batches or streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from moldau.sql.formats import format_for
from moldau.sql.sources.data_source import FormatInfo
from moldau.sql.sparksql.compiler import SPARK_TYPES, NotTheSame, SparkPlan
from moldau.sql.types import Column

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["run"]

_KEY, _TIME, _NOTHING = "__key", "__timestamp", "__is_null"
Batches = Callable[[Iterator["pyarrow.RecordBatch"]], Iterator["pyarrow.RecordBatch"]]


def run(plan: SparkPlan, records: DataFrame) -> DataFrame:
    """The records that a query writes: `key`, `value` and `timestamp` in milliseconds.

    `records` has the columns of Spark's Kafka source: `key`, `value`, `partition`, `offset` and
    `timestamp`; it may be a stream.
    """
    session = records.sparkSession
    if plan.has_arithmetic and session.conf.get("spark.sql.ansi.enabled", "true") == "true":
        raise NotTheSame("set spark.sql.ansi.enabled=false: sums must wrap around as in ksqlDB")
    plain = records.selectExpr(
        "CAST(key AS binary) AS key",
        "CAST(value AS binary) AS value",
        "CAST(partition AS int) AS partition",
        "CAST(offset AS bigint) AS offset",
        "unix_millis(CAST(timestamp AS timestamp)) AS timestamp",
    )
    columns = [(each.name, SPARK_TYPES[each.type]) for each in plan.schema.value]
    extra = [(_KEY, "binary"), (_TIME, "bigint"), (_NOTHING, "boolean")]
    read = plain.mapInArrow(_reader(plan), _schema([*columns, *extra]))
    for condition in plan.filters:
        # What a stream holds without a value is not there for a filter.
        read = read.where(f"NOT {_NOTHING} AND {condition}")
    selected = [f"{source} AS `{name}`" for name, source in plan.columns]
    chosen = read.selectExpr(*selected, *(name for name, _ in extra))
    return chosen.mapInArrow(_writer(plan), "key binary, value binary, timestamp bigint")


def _schema(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def _serde(info: FormatInfo, columns: tuple[Column, ...], features: Any, *, is_key: bool) -> Any:
    # Made where it is used: serdes hold compiled functions, which cannot be sent to a worker.
    found = format_for(info.name, dict(info.properties))
    return found.serde(columns, features, None, is_key=is_key)


def _reader(plan: SparkPlan) -> Batches:
    source = plan.source
    schema, topic = source.schema, source.topic
    keys, values = source.key_format, source.value_format
    names = [*(each.name for each in plan.schema.value), _KEY, _TIME, _NOTHING]
    kinds = [*(SPARK_TYPES[each.type] for each in plan.schema.value), "binary", "bigint", "boolean"]

    def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        key_serde = _serde(keys.format, schema.key, keys.features, is_key=True)
        value_serde = _serde(values.format, schema.value, values.features, is_key=False)
        nothing = (None,) * len(schema.value)
        no_key = (None,) * len(schema.key)
        for batch in batches:
            found = []
            for each in batch.to_pylist():
                try:
                    row = value_serde.deserialize(topic, each["value"])
                    key_row = key_serde.deserialize(topic, each["key"])
                except Exception:  # a record that cannot be read is skipped
                    continue
                time, place = each["timestamp"], (each["partition"], each["offset"])
                columns = (nothing if row is None else row) + (time, *place)
                found.append((*columns, *(key_row or no_key), each["key"], time, row is None))
            yield _batch(found, names, kinds)

    return read


def _writer(plan: SparkPlan) -> Batches:
    sink = plan.sink
    if sink is None:
        raise NotTheSame("the query writes to no topic")
    schema, topic = sink.schema, sink.topic
    keys, values = sink.key_format, sink.value_format
    source_keys, source_schema = plan.source.key_format, plan.source.schema

    def write(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        old_keys = _serde(source_keys.format, source_schema.key, source_keys.features, is_key=True)
        key_serde = _serde(keys.format, schema.key, keys.features, is_key=True)
        value_serde = _serde(values.format, schema.value, values.features, is_key=False)
        for batch in batches:
            found = []
            for row in zip(*(each.to_pylist() for each in batch.columns), strict=True):
                *columns, key, time, is_null = row
                key_row = old_keys.deserialize(topic, key)
                value = None if is_null else value_serde.serialize(topic, tuple(columns))
                found.append((key_serde.serialize(topic, key_row), value, time))
            yield _batch(found, ["key", "value", "timestamp"], ["binary", "binary", "bigint"])

    return write


def _batch(rows: list[Any], names: list[str], kinds: list[str]) -> pyarrow.RecordBatch:
    import pyarrow

    types = {
        "boolean": pyarrow.bool_(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "double": pyarrow.float64(),
        "string": pyarrow.string(),
        "binary": pyarrow.binary(),
    }
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [
        pyarrow.array(list(column), types[kind])
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=names)
