"""Folders of Avro files as DataFrames: Spark finds the files, workers decode them.

Spark's own Avro source is a package of its own. Its `binaryFile` source is built in and lists,
limits and remembers files as all of its file sources do, so each file is read once.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from moldau.spark.tables.machine.options import Options

from .errors import OptionError, TableError
from .sinks import missing_extra

__all__ = ["read_avro"]

_OURS = ("path", "schema", "ignoreCorruptFiles")
# A file's header with its schema is far smaller.
_HEADER_BYTES = 4 * 1024 * 1024
_ROWS_PER_BATCH = 10_000
# A stream is told even the columns that every such source has.
_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_HINT = 'Give its columns, such as schema: "id STRING, amount DOUBLE"'


def library() -> Any:
    try:
        import fastavro
    except ImportError:
        raise missing_extra("fastavro") from None
    return fastavro


def read_avro(spark: Any, options: Options, *, streaming: bool) -> Any:
    library()
    given = {name: text for name, text in options.as_spark().items() if name not in _OURS}
    columns = _columns(spark, options, given)
    reader = spark.readStream if streaming else spark.read
    files = reader.format("binaryFile").schema(_FILES).options(**given).load(options.address)
    decode = Decode(options.flag("ignoreCorruptFiles"), columns.json())
    return files.select("path", "content").mapInArrow(decode, columns)


def _columns(spark: Any, options: Options, given: dict[str, str]) -> Any:
    """The declared ones, else those of a file that is there now."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.pandas.types import from_arrow_schema

    if "schema" in options:
        empty = spark.createDataFrame([], options.text("schema"))
        return empty.schema
    from moldau.spark.tables.machine.avro_types import arrow_schema_of

    try:
        found = spark.read.format("binaryFile").options(**_without_limits(given))
        rows = (
            found.load(options.address)
            .where("length > 0")
            .selectExpr(f"substring(content, 1, {_HEADER_BYTES}) AS header", "path")
            .limit(1)
            .collect()
        )
    except AnalysisException as error:
        raise OptionError(
            f"avro source: the columns of {options.address} cannot be inferred: "
            f"{str(error).splitlines()[0]}",
            _HINT,
        ) from None
    if not rows:
        raise OptionError(f"avro source: no file in {options.address} has columns", _HINT)
    return from_arrow_schema(arrow_schema_of(_writer_schema(rows[0]["header"], rows[0]["path"])))


def _without_limits(given: dict[str, str]) -> dict[str, str]:
    """What a stream's limits mean nothing to a single look."""
    names = ("pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter")
    return {name: given[name] for name in names if name in given}


def _writer_schema(header: bytes, path: str) -> Any:
    try:
        return library().reader(io.BytesIO(header)).writer_schema
    except (ValueError, EOFError, StopIteration) as error:
        raise TableError(f"{path} is no Avro file: {error}") from None


class Decode:
    """Runs in workers: files in, rows of the declared columns out."""

    def __init__(self, ignore_corrupt: bool, columns: str) -> None:
        self._ignore_corrupt = ignore_corrupt
        self._columns = columns

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import json

        from pyspark.sql.types import StructType

        from .columns import arrow_schema

        schema = arrow_schema(StructType.fromJson(json.loads(self._columns)))
        for batch in batches:
            for path, content in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                yield from self._rows(path, content, schema)

    def _rows(self, path: str, content: bytes, schema: Any) -> Iterator[Any]:
        import itertools

        import pyarrow as pa

        from moldau.spark.tables.machine.avro_types import plain

        convert = [(field.name, plain(field.type)) for field in schema]
        try:
            records = library().reader(io.BytesIO(content))
            while rows := list(itertools.islice(records, _ROWS_PER_BATCH)):
                arrays = [
                    pa.array([of(row.get(name)) for row in rows], schema.field(name).type)
                    for name, of in convert
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except (ValueError, EOFError, IndexError, KeyError, pa.ArrowException) as error:
            if self._ignore_corrupt:
                return
            raise TableError(
                f"the Avro file {path} cannot be read: {error}",
                "Remove it, or set ignoreCorruptFiles: true",
            ) from None
