"""Dead letters: the bad record as it came, with what was wrong in headers.

The headers are those of Kafka Connect (KIP-298), so that tools which read dead-letter queues read
these too.
"""

from __future__ import annotations

from typing import Any

from moldau.pipelines.build.machine.names import HEADERS, visible
from moldau.pipelines.build.machine.sql_text import ERROR

PREFIX = "__connect.errors."
HEADERS_TYPE = "array<struct<key: string, value: binary>>"


def letter(columns: list[str], implicit: frozenset[str], *, pipeline: str) -> Any:
    """The dead letter of a bad row as a struct of key, value and headers; null for a good row.

    A row that no longer has the record it came from (a grouped one, or one of a table) becomes
    JSON.
    """
    from pyspark.sql import functions as F

    def text(name: str) -> Any:
        return F.col(name).cast("string") if name in columns else F.lit(None).cast("string")

    reasons = {
        "topic": text("_topic"),
        "partition": text("_partition"),
        "offset": text("_offset"),
        "connector.name": F.lit(pipeline),
        "task.id": F.spark_partition_id().cast("string"),
        "stage": F.col(ERROR)["stage"],
        "class.name": F.col(ERROR)["class"],
        "exception.class.name": F.col(ERROR)["exception"],
        "exception.message": F.col(ERROR)["message"],
        "exception.stacktrace": F.col(ERROR)["stacktrace"],
    }
    headers = F.filter(
        F.array(
            *[
                F.struct(F.lit(PREFIX + name).alias("key"), value.cast("binary").alias("value"))
                for name, value in reasons.items()
            ]
        ),
        lambda header: header["value"].isNotNull(),
    ).cast(HEADERS_TYPE)
    if HEADERS in columns:
        own = F.coalesce(F.col(HEADERS), F.array().cast(HEADERS_TYPE))
        headers = F.concat(own.cast(HEADERS_TYPE), headers)
    if "_value" in columns and "_topic" in columns:
        key, value = F.col("_key"), F.col("_value")
    else:
        row = F.struct(*[F.col(f"`{name}`") for name in visible(columns, implicit)])
        key = F.col("_key") if "_key" in columns else F.lit(None)
        value = F.to_json(row).cast("binary")
    made = F.struct(key.cast("binary").alias("key"), value.alias("value"), headers.alias("headers"))
    return F.when(F.col(ERROR).isNotNull(), made)
