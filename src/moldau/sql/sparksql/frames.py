"""Runs a compiled query on DataFrames of Spark, batches or streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from moldau.sql.formats import format_for
from moldau.sql.sources.data_source import FormatInfo
from moldau.sql.sparksql.compiler import SPARK_TYPES, NotTheSame, SparkPlan
from moldau.sql.types import Column

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

__all__ = ["run"]

_KEY, _TIME, _NOTHING = "__key", "__timestamp", "__is_null"
Frames = Callable[[Iterator["pandas.DataFrame"]], Iterator["pandas.DataFrame"]]


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
    read = plain.mapInPandas(_reader(plan), _schema([*columns, *extra]))
    for condition in plan.filters:
        # What a stream holds without a value is not there for a filter.
        read = read.where(f"NOT {_NOTHING} AND {condition}")
    selected = [f"{source} AS `{name}`" for name, source in plan.columns]
    chosen = read.selectExpr(*selected, *(name for name, _ in extra))
    return chosen.mapInPandas(_writer(plan), "key binary, value binary, timestamp bigint")


def _schema(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def _serde(info: FormatInfo, columns: tuple[Column, ...], features: Any, *, is_key: bool) -> Any:
    # Made where it is used: serdes hold compiled functions, which cannot be sent to a worker.
    found = format_for(info.name, dict(info.properties))
    return found.serde(columns, features, None, is_key=is_key)


def _reader(plan: SparkPlan) -> Frames:
    source = plan.source
    schema, topic = source.schema, source.topic
    keys, values = source.key_format, source.value_format
    names = [each.name for each in plan.schema.value]

    def read(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        import pandas

        key_serde = _serde(keys.format, schema.key, keys.features, is_key=True)
        value_serde = _serde(values.format, schema.value, values.features, is_key=False)
        nothing = (None,) * len(schema.value)
        no_key = (None,) * len(schema.key)
        for frame in frames:
            found = []
            given = zip(
                frame["key"], frame["value"], frame["partition"], frame["offset"],
                frame["timestamp"], strict=True,
            )  # fmt: skip
            for key, value, partition, offset, time in given:
                try:
                    row = value_serde.deserialize(topic, value)
                    key_row = key_serde.deserialize(topic, key)
                except Exception:  # a record that cannot be read is skipped
                    continue
                found.append(
                    (
                        *(nothing if row is None else row), int(time), int(partition), int(offset),
                        *(key_row or no_key), key, int(time), row is None,
                    )
                )  # fmt: skip
            made = pandas.DataFrame(found, columns=[*names, _KEY, _TIME, _NOTHING], dtype="object")
            yield made

    return read


def _writer(plan: SparkPlan) -> Frames:
    sink = plan.sink
    if sink is None:
        raise NotTheSame("the query writes to no topic")
    schema, topic = sink.schema, sink.topic
    keys, values = sink.key_format, sink.value_format
    source_keys, source_schema = plan.source.key_format, plan.source.schema
    names = [name for name, _ in plan.columns]
    kinds = [plan.sink_schema.find(name) for name in names]
    whole = [each is not None and SPARK_TYPES[each.type] in ("int", "bigint") for each in kinds]

    def write(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        import pandas

        old_keys = _serde(source_keys.format, source_schema.key, source_keys.features, is_key=True)
        key_serde = _serde(keys.format, schema.key, keys.features, is_key=True)
        value_serde = _serde(values.format, schema.value, values.features, is_key=False)
        for frame in frames:
            found = []
            for row in frame.astype(object).itertuples(index=False, name=None):
                *columns, key, time, is_null = row
                value = None
                if not is_null:
                    value = tuple(
                        _plain(each, is_whole)
                        for each, is_whole in zip(columns, whole, strict=True)
                    )
                key_row = old_keys.deserialize(topic, _bytes(key))
                found.append(
                    (
                        key_serde.serialize(topic, key_row),
                        value_serde.serialize(topic, value),
                        int(time),
                    )
                )
            yield pandas.DataFrame(found, columns=["key", "value", "timestamp"])

    return write


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _plain(value: Any, is_whole: bool) -> Any:
    """What pandas has made of a value: a missing number may have become NaN, an int a float."""
    if value is None:
        return None
    if is_whole:
        return None if value != value else int(value)
    if hasattr(value, "item"):
        return value.item()
    return bytes(value) if isinstance(value, bytearray | memoryview) else value
