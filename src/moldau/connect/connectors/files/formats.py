"""The contents of files: JSON lines, Avro container files, Parquet, or the bytes as they are."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from moldau.connect.api import ConfigError, SinkRecord
from moldau.connect.connectors.support.documents import json_bytes
from moldau.connect.connectors.support.libraries import library
from moldau.data import json_text
from moldau.data.errors import DataError
from moldau.data.schema import Schema, SchemaAndValue, Type
from moldau.data.struct import Struct

_SHORT: Final = {
    "jsonformat": "json",
    "avroformat": "avro",
    "parquetformat": "parquet",
    "bytearrayformat": "bytes",
    "stringformat": "text",
}


class Format(Protocol):
    extension: str

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes: ...

    def read(self, data: bytes) -> Iterator[SchemaAndValue]: ...


def make_format(name: str, compression: str, *, extension: str | None = None) -> Format:
    """`name` is a class name, Java's or the short one (JsonFormat), or json, avro, parquet..."""
    short = name.rpartition(".")[2].lower()
    match _SHORT.get(short, short):
        case "json":
            return JsonFormat(gzipped=compression == "gzip")
        case "avro":
            return AvroFormat()
        case "parquet":
            return ParquetFormat()
        case "bytes":
            return LinesFormat(extension or ".bin", gzipped=compression == "gzip")
        case "text":
            return LinesFormat(extension or ".txt", gzipped=compression == "gzip")
    raise ConfigError.invalid(
        "format.class", name, "must be JsonFormat, AvroFormat, ParquetFormat or ByteArrayFormat"
    )


def _zipped(data: bytes, gzipped: bool) -> bytes:
    # Without the time: the same records give the same file.
    return gzip.compress(data, mtime=0) if gzipped else data


class JsonFormat:
    def __init__(self, *, gzipped: bool) -> None:
        self._gzipped = gzipped
        self.extension = ".json.gz" if gzipped else ".json"

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        lines = [json_bytes(record.value) for record in records]
        return _zipped(b"\n".join(lines) + b"\n", self._gzipped)

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        text = gzip.decompress(data) if self._gzipped else data
        for line in text.splitlines():
            if line.strip():
                yield SchemaAndValue(None, json_text.parse(line))


class LinesFormat:
    """Bytes or texts, one a line."""

    def __init__(self, extension: str, *, gzipped: bool) -> None:
        self._gzipped = gzipped
        self.extension = extension + (".gz" if gzipped else "")

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        return _zipped(b"".join([self._line(record) for record in records]), self._gzipped)

    @staticmethod
    def _line(record: SinkRecord) -> bytes:
        value = record.value
        if isinstance(value, str):
            value = value.encode()
        if not isinstance(value, (bytes, bytearray)):
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} is neither bytes nor "
                "text: set value.converter to ByteArrayConverter"
            )
        return bytes(value) + b"\n"

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        text = gzip.decompress(data) if self._gzipped else data
        for line in text.split(b"\n"):
            if line:
                yield SchemaAndValue(None, line)


def _needs_struct(schema: Schema | None, what: str) -> Schema:
    if schema is None or schema.type is not Type.STRUCT:
        raise DataError(
            f"{what} files need values with a schema: Avro, JSON Schema, Protobuf, or JSON with "
            "schemas.enable=true"
        )
    return schema


class AvroFormat:
    extension = ".avro"

    def __init__(self) -> None:
        from moldau.data.avro.connect_data import AvroData

        self._data = AvroData()

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        from moldau.data.avro.from_connect import avro_value

        struct = _needs_struct(schema, "Avro")
        avro = self._data.avro_schema(struct)
        out = io.BytesIO()
        writer = library("fastavro").writer
        values = [avro_value(struct, avro, record.value) for record in records]
        # The mark between blocks comes from the contents, so that a file can be written again.
        writer(out, json_text.parse(avro.resolved_text), values, sync_marker=b"moldau-connect--")
        return out.getvalue()

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        from moldau.data.avro.to_connect import connect_value
        from moldau.serde.avro_files import AvroFile

        file = AvroFile(io.BytesIO(data), logical_types=False)
        schema = self._data.connect_schema(file.schema)
        for value in file:
            yield connect_value(schema, file.schema.root, value)


class ParquetFormat:
    extension = ".snappy.parquet"

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        from moldau.data import arrow

        struct = _needs_struct(schema, "Parquet")
        pa, parquet = library("pyarrow"), library("pyarrow.parquet")
        columns = [
            arrow.arrow_array(field.schema, [record.value.get(field.name) for record in records])
            for field in struct.fields
        ]
        table = pa.Table.from_arrays(columns, schema=arrow.arrow_schema(struct))
        out = io.BytesIO()
        parquet.write_table(table, out, compression="snappy")
        return out.getvalue()

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        from moldau.data import arrow

        table = library("pyarrow.parquet").read_table(io.BytesIO(data))
        schema = arrow.connect_schema(table.schema)
        columns = [
            arrow.connect_values(field.schema, table.column(field.name)) for field in schema.fields
        ]
        for row in zip(*columns, strict=True):
            yield SchemaAndValue(schema, Struct.unchecked(schema, list(row)))
