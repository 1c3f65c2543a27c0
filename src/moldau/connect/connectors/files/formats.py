"""The contents of files: JSON lines, Avro container files, Parquet, or the bytes as they are."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from moldau.connect.api import ConfigError, SinkRecord
from moldau.connect.connectors.support.documents import json_bytes
from moldau.connect.connectors.support.libraries import library
from moldau.connect.converters.simple import JsonConverter
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
AVRO_CODECS: Final = ("null", "deflate", "bzip2", "snappy")
_PARQUET: Final = {
    "none": ".parquet",
    "snappy": ".snappy.parquet",
    "gzip": ".gz.parquet",
    "brotli": ".br.parquet",
    "lz4": ".lz4.parquet",
    "zstd": ".zstd.parquet",
}
PARQUET_CODECS: Final = tuple(_PARQUET)


class Format(Protocol):
    extension: str

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes: ...

    def read(self, data: bytes) -> Iterator[SchemaAndValue]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """`compression` and `level` are for JSON, bytes and texts, which have none of their own."""

    compression: str = "none"
    level: int = -1
    avro_codec: str = "null"
    parquet_codec: str = "snappy"
    bytes_extension: str = ".bin"
    separator: str = "\n"
    json_decimals: str = "BASE64"

    def zipped(self, data: bytes) -> bytes:
        if not self.is_gzip:
            return data
        # Without the time: the same records give the same file.
        return gzip.compress(data, 6 if self.level < 0 else self.level, mtime=0)

    def unzipped(self, data: bytes) -> bytes:
        return gzip.decompress(data) if self.is_gzip else data

    @property
    def is_gzip(self) -> bool:
        return self.compression == "gzip"


DEFAULTS: Final = FormatOptions()


def make_format(name: str, options: FormatOptions = DEFAULTS) -> Format:
    """`name` is a class name, Java's or the short one (JsonFormat), or json, avro, parquet..."""
    short = name.rpartition(".")[2].lower()
    match _SHORT.get(short, short):
        case "json":
            return JsonFormat(options)
        case "avro":
            return AvroFormat(options)
        case "parquet":
            return ParquetFormat(options)
        case "bytes":
            return LinesFormat(options.bytes_extension, options)
        case "text":
            return LinesFormat(".txt", options)
    raise ConfigError.invalid(
        "format.class", name, "must be JsonFormat, AvroFormat, ParquetFormat or ByteArrayFormat"
    )


class JsonFormat:
    def __init__(self, options: FormatOptions = DEFAULTS) -> None:
        self._options = options
        self.extension = ".json.gz" if options.is_gzip else ".json"
        self._converter = JsonConverter()
        given = {"schemas.enable": "false", "decimal.format": options.json_decimals}
        self._converter.configure(given, is_key=False)

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        lines = [self._line(schema, record) for record in records]
        return self._options.zipped(b"\n".join(lines) + b"\n")

    def _line(self, schema: Schema | None, record: SinkRecord) -> bytes:
        if isinstance(record.value, Struct):
            data = self._converter.from_connect_data(record.topic, schema, record.value)
            return data or b"null"
        return json_bytes(record.value)

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        for line in self._options.unzipped(data).splitlines():
            if line.strip():
                yield SchemaAndValue(None, json_text.parse(line))


class LinesFormat:
    """Bytes or texts, one a line, or with another separator behind each."""

    def __init__(self, extension: str, options: FormatOptions = DEFAULTS) -> None:
        self._options = options
        self._separator = options.separator.encode()
        self.extension = extension + (".gz" if options.is_gzip else "")

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        return self._options.zipped(b"".join([self._line(record) for record in records]))

    def _line(self, record: SinkRecord) -> bytes:
        value = record.value
        if isinstance(value, str):
            value = value.encode()
        if not isinstance(value, (bytes, bytearray)):
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} is neither bytes nor "
                "text: set value.converter to ByteArrayConverter"
            )
        return bytes(value) + self._separator

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        for line in self._options.unzipped(data).split(self._separator):
            if line:
                yield SchemaAndValue(None, line)


def _needs_schema(schema: Schema | None, what: str, *, struct: bool = False) -> Schema:
    if schema is None or (struct and schema.type is not Type.STRUCT):
        raise DataError(
            f"{what} files need values with a schema: Avro, JSON Schema, Protobuf, or JSON with "
            "schemas.enable=true"
        )
    return schema


class AvroFormat:
    extension = ".avro"

    def __init__(self, options: FormatOptions = DEFAULTS) -> None:
        from moldau.data.avro.connect_data import AvroData

        self._data = AvroData()
        self._codec = options.avro_codec

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        from moldau.data.avro.from_connect import avro_value

        given = _needs_schema(schema, "Avro")
        avro = self._data.avro_schema(given)
        out = io.BytesIO()
        writer = library("fastavro").writer
        values = [avro_value(given, avro, record.value) for record in records]
        # The mark between blocks comes from the contents, so that a file can be written again.
        writer(
            out, json_text.parse(avro.resolved_text), values, self._codec,
            sync_marker=b"moldau-connect--",
        )  # fmt: skip
        return out.getvalue()

    def read(self, data: bytes) -> Iterator[SchemaAndValue]:
        from moldau.data.avro.to_connect import connect_value
        from moldau.serde.avro_files import AvroFile

        file = AvroFile(io.BytesIO(data), logical_types=False)
        schema = self._data.connect_schema(file.schema)
        for value in file:
            yield connect_value(schema, file.schema.root, value)


class ParquetFormat:
    def __init__(self, options: FormatOptions = DEFAULTS) -> None:
        self._codec = options.parquet_codec
        self.extension = _PARQUET[self._codec]

    def write(self, schema: Schema | None, records: Sequence[SinkRecord]) -> bytes:
        from moldau.data import arrow

        struct = _needs_schema(schema, "Parquet", struct=True)
        pa, parquet = library("pyarrow"), library("pyarrow.parquet")
        columns = [
            arrow.arrow_array(field.schema, [record.value.get(field.name) for record in records])
            for field in struct.fields
        ]
        table = pa.Table.from_arrays(columns, schema=arrow.arrow_schema(struct))
        out = io.BytesIO()
        parquet.write_table(table, out, compression=self._codec)
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
