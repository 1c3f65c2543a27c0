"""Folders of Parquet, JSON, CSV, XML and text files: Spark's own file source and sink.

The sink is exactly-once by Spark's log of committed files (`_spark_metadata`). A stream of files
needs its columns before the first row: given by `schema`, else read once from the files that are
there when the query starts.
"""

from __future__ import annotations

import logging
from typing import Any

from moldau.spark.tables.machine.options import Options

from .errors import OptionError

_log = logging.getLogger(__name__)
_NOT_FOR_SPARK = ("path", "schema", "partitionBy", "mode")


def read_files(spark: Any, options: Options, *, streaming: bool) -> Any:
    reader = spark.readStream if streaming else spark.read
    reader = reader.format(options.kind).options(**_spark_options(options))
    schema: Any = options.text("schema")
    if streaming and not schema and options.kind == "text":
        schema = "value STRING"
    if streaming and not schema:
        schema = _infer(spark, options)
    return (reader.schema(schema) if schema else reader).load(options.address)


def _infer(spark: Any, options: Options) -> Any:
    """The columns of the files that are there now; later files are read with them."""
    from pyspark.errors import AnalysisException

    hint = 'Give its columns, such as schema: "id STRING, amount DOUBLE"'
    inferred = {"inferSchema": "true"} if options.kind == "csv" else {}
    reader = spark.read.format(options.kind).options(**{**inferred, **_spark_options(options)})
    try:
        schema = reader.load(options.address).schema
    except AnalysisException as error:
        raise OptionError(
            f"{options.kind} source: the columns of {options.address} cannot be inferred: "
            f"{str(error).splitlines()[0]}",
            hint,
        ) from None
    if not schema.fields:
        raise OptionError(f"{options.kind} source: no file in {options.address} has columns", hint)
    _log.info(
        "%s source %s: columns inferred once from its files: %s",
        options.kind,
        options.address,
        schema.simpleString(),
    )
    return schema


def configure_files_sink(writer: Any, options: Options) -> Any:
    """Spark's DataStreamWriter with the folder, its partitions and the format's options."""
    writer = writer.format(options.kind).options(**_spark_options(options))
    if partition_by := options.names("partitionBy"):
        writer = writer.partitionBy(*partition_by)
    return writer.option("path", options.address)


def _spark_options(options: Options) -> dict[str, str]:
    kept = {name: text for name, text in options.as_spark().items() if name not in _NOT_FOR_SPARK}
    # A reader's `mode` says what to do with malformed rows; a writer's says append, as always.
    if options.role == "source" and "mode" in options:
        kept["mode"] = options.text("mode").upper()
    return kept
