"""A table's rows as a DataFrame, and a streaming DataFrame's rows into a table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from moldau.spark.tables.jdbc.machine.address import MARIADB, OTHER, SQLITE, parse_address
from moldau.spark.tables.machine.formats import FORMATS, SINK, SOURCE
from moldau.spark.tables.machine.options import Options, check_options, check_output_mode

from .files import configure_files_sink, read_files
from .jdbc.by_driver import DriverBatch, read_by_driver

_STARTS_MAX = 5


def read(spark: Any, kind: str, options: Mapping[str, object], streaming: bool) -> Any:
    """The table as a DataFrame; with `streaming` one that goes on as the table grows."""
    checked = _resolved(check_options(kind, SOURCE, options))
    if FORMATS[kind].is_files:
        return read_files(spark, checked, streaming=streaming)
    if _is_other_database(checked):
        return read_by_driver(spark, checked, streaming=streaming)
    reader = spark.readStream if streaming else spark.read
    if "schema" in checked:
        reader = reader.schema(checked.text("schema"))
    return reader.format(register(spark, kind)).options(**checked.as_spark()).load()


def start_sink(
    frame: Any,
    kind: str,
    options: Mapping[str, object],
    *,
    query_name: str,
    trigger: Mapping[str, Any],
    checkpoint: str,
    output_mode: str = "append",
) -> Any:
    """Start the query that writes `frame` into the table, and give its StreamingQuery.

    `trigger` holds the arguments of DataStreamWriter.trigger, such as {"availableNow": True}.
    """
    checked = _resolved(check_options(kind, SINK, options))
    mode = check_output_mode(checked, output_mode)
    writer = frame.writeStream.queryName(query_name).outputMode(mode)
    writer = writer.option("checkpointLocation", checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    if FORMATS[kind].is_files:
        return configure_files_sink(writer, checked).start()
    if _is_other_database(checked):
        return _start_patiently(writer.foreachBatch(DriverBatch(checked, mode)))
    if mode == "update":
        # Spark gives a Python data source no rows of a query in update mode, only those of a batch.
        each = EachBatch(kind, checked.as_spark(), checkpoint)
        return _start_patiently(writer.foreachBatch(each))
    name = register(frame.sparkSession, kind)
    return writer.format(name).options(**checked.as_spark()).start()


def _start_patiently(writer: Any) -> Any:
    """Start a query whose batches a Python process takes.

    Spark waits for that process ten seconds, which a busy machine may need for its imports alone.
    """
    from pyspark.errors import PySparkException

    for _ in range(_STARTS_MAX - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if "failed to connect back" not in str(error):
                raise
    return writer.start()


class EachBatch:
    """Writes each batch as a batch write that carries the query's id and the batch's number."""

    def __init__(self, kind: str, options: Mapping[str, str], checkpoint: str) -> None:
        self._kind = kind
        self._options = dict(options)
        self._checkpoint = checkpoint
        self._query_id = ""

    def __call__(self, frame: Any, batch_id: int) -> None:
        spark = frame.sparkSession
        if not self._query_id:
            lines = spark.read.text(f"{self._checkpoint}/metadata").collect()
            self._query_id = json.loads(lines[0][0])["id"]
        writer = frame.write.format(register(spark, self._kind)).mode("append")
        transaction = {"txnAppId": self._query_id, "txnVersion": str(batch_id)}
        writer.options(**self._options, **transaction).save()


def register(spark: Any, kind: str) -> str:
    """The format's name for `spark.read` and `df.write`, known to the session from now on."""
    from . import datasource

    source = getattr(datasource, FORMATS[kind].data_source or "")
    spark.dataSource.register(source)
    return str(source.name())


def _is_other_database(options: Options) -> bool:
    """Those that a JDBC driver reaches; MariaDB, too, where the user names one."""
    if options.kind != "jdbc":
        return False
    database = parse_address(options.address).database
    return database == OTHER or (database == MARIADB and "driver" in options)


def _resolved(options: Options) -> Options:
    """A relative path means the caller's, not that of the server that runs the query."""
    address = options.address
    name = "path"
    if options.kind == "jdbc":
        found = parse_address(address)
        if found.database != SQLITE:
            return options
        name, address = "url", f"jdbc:sqlite:{os.path.abspath(found.path)}"
    elif "://" not in address:
        address = os.path.abspath(address)
    return Options(options.kind, options.role, {**options.given, name: address})
