"""Stores and changelogs of an application as DataFrames of Spark.

    from moldau.spark import session
    from moldau.streams.frames import changelog, table

    spark = session()
    counts = table(spark, "word-count", "counts", key="string", value="long",
                   bootstrap_servers="127.0.0.1:9092")
    counts.orderBy("value", ascending=False).show()

Both read the changelog topic of a key-value store, as the application and a restore do: what is
there is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.streams.errors import StreamsError

__all__ = ["changelog", "table"]


def _number(size: int, kind: str) -> str:
    """Of a signed number with fewer than eight bytes."""
    half = 1 << (8 * size - 1)
    unsigned = "cast(conv(hex({0}), 16, 10) AS BIGINT)"
    return f"cast((({unsigned} + {half}) % {2 * half}) - {half} AS {kind})"


#: How the bytes of a serde are read by Spark: an expression over a column `{0}`.
_READERS: Final[Mapping[str, str]] = {
    "bytes": "{0}",
    "string": "cast({0} AS STRING)",
    "uuid": "cast({0} AS STRING)",
    "json": "cast({0} AS STRING)",
    "boolean": "hex({0}) <> '00'",
    "long": "cast(conv(hex({0}), 16, -10) AS BIGINT)",
    "integer": _number(4, "INT"),
    "int": _number(4, "INT"),
    "short": _number(2, "SMALLINT"),
}


def changelog(
    spark: Any,
    application_id: str,
    store: str,
    *,
    key: str,
    value: str,
    bootstrap_servers: str,
    streaming: bool = False,
    options: Mapping[str, str] | None = None,
) -> Any:
    """Every change of a store: key, value (null for a deleted key), timestamp, partition, offset.

    `key` and `value` are names of serdes. With `streaming` it is a stream that begins with the
    first change that the topic still has.
    """
    reader = spark.readStream if streaming else spark.read
    frame = (
        reader.format("moldau")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", f"{application_id}-{store}-changelog")
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .options(**dict(options or {}))
        .load()
    )
    return frame.selectExpr(
        f"{_expression(key, 'key')} AS key",
        f"{_expression(value, 'value')} AS value",
        "timestamp",
        "partition",
        "offset",
    )


def table(
    spark: Any,
    application_id: str,
    store: str,
    *,
    key: str,
    value: str,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
) -> Any:
    """A store as it is now: the last change of each key, without deleted keys."""
    changes = changelog(
        spark,
        application_id,
        store,
        key=key,
        value=value,
        bootstrap_servers=bootstrap_servers,
        options=options,
    )
    # A key is in one partition, so its highest offset is its last change.
    newest = changes.groupBy("key").agg(
        _call("max_by", "struct(value, timestamp)", "offset").alias("last")
    )
    return newest.where("last.value IS NOT NULL").selectExpr(
        "key", "last.value AS value", "last.timestamp AS timestamp"
    )


def _call(name: str, *arguments: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(f"{name}({', '.join(arguments)})")


def _expression(serde: str, column: str) -> str:
    reader = _READERS.get(serde)
    if reader is None:
        raise StreamsError(
            f"Spark does not read the serde {serde!r}; it reads {', '.join(sorted(_READERS))}. Use "
            "bytes and a function of your own"
        )
    return reader.format(column)
