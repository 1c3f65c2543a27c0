"""Databases that only a JDBC driver reaches: Spark's own `jdbc` format, with the user's driver.

Rows are appended at least once: Spark's writer knows no batch numbers, so a batch that runs again
is there twice. For exactly-once use PostgreSQL, MariaDB or SQLite, or a primary key that refuses
the second.
"""

from __future__ import annotations

from typing import Any

from moldau.spark.tables.machine.options import Options

from ..errors import OptionError

_OURS_ONLY = ("upsert", "sequenceBy", "onError", "txnAppId")


class DriverBatch:
    """Appends each batch to the table; in output mode complete it replaces the table's rows."""

    def __init__(self, options: Options, output_mode: str) -> None:
        refused = [name for name in _OURS_ONLY if name in options]
        if refused:
            raise OptionError(
                f"jdbc sink: {', '.join(refused)} works with PostgreSQL, MariaDB and SQLite only; "
                "others are written by Spark's own JDBC writer, which appends",
            )
        self._options = _driver_options(options)
        self._overwrite = output_mode == "complete"

    def __call__(self, frame: Any, batch_id: int) -> None:
        writer = frame.write.format("jdbc").options(**self._options)
        if self._overwrite:
            writer = writer.option("truncate", "true")
        writer.mode("overwrite" if self._overwrite else "append").save()


def read_by_driver(spark: Any, options: Options, *, streaming: bool) -> Any:
    if streaming:
        raise OptionError(
            "jdbc source: only PostgreSQL, MariaDB and SQLite can be read as a stream",
            "Read this database as a batch, or have its changes written to a topic",
        )
    return spark.read.format("jdbc").options(**_driver_options(options)).load()


def _driver_options(options: Options) -> dict[str, str]:
    """Spark's names; `jdbc.<name>` is passed on to Spark's JDBC source or the driver as it is."""
    known = ("url", "user", "password", "driver", "query", "fetchsize", "partitionColumn")
    bounds = ("lowerBound", "upperBound", "numPartitions")
    given = {name: options.text(name) for name in (*known, *bounds) if name in options}
    if "table" in options:
        given["dbtable"] = options.text("table")
    return given | options.prefixed("jdbc.")
