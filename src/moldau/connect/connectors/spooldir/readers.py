"""The contents of files as values: CSV, JSON lines, Avro, Parquet, lines, or whole files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias

from moldau.connect.api import ConfigDef, ConfigError, DataError, Kind, OneOf
from moldau.connect.connectors.files.formats import AvroFormat, ParquetFormat
from moldau.data import builders, json_text
from moldau.data.schema import Schema, SchemaAndValue
from moldau.data.struct import Struct
from moldau.data.value_text import parse_string

Values: TypeAlias = Iterator[SchemaAndValue]


class Reader(Protocol):
    def read(self, data: bytes) -> Values: ...


FORMATS: Final = ("csv", "json", "lines", "avro", "parquet", "binary")


def define_format(config: ConfigDef) -> ConfigDef:
    return (
        config.define("input.format", Kind.STRING, "csv", group="Contents",
                      validator=OneOf(FORMATS, ignore_case=True), doc=", ".join(FORMATS))
        .define("input.charset", Kind.STRING, "utf-8", group="Contents", doc="Encoding of texts")
        .define("csv.first.row.as.header", Kind.BOOLEAN, True, group="CSV",
                doc="Whether the first row has the names of columns")
        .define("csv.column.names", Kind.LIST, (), group="CSV",
                doc="Names of columns, where there is no header")
        .define("csv.separator.char", Kind.STRING, ",", group="CSV", doc="Between columns")
        .define("csv.quote.char", Kind.STRING, '"', group="CSV", doc="Around texts")
        .define("schema.generation.enabled", Kind.BOOLEAN, False, group="CSV",
                doc="Whether types are guessed from the values; otherwise all are texts")
    )  # fmt: skip


def make_reader(config: Mapping[str, Any]) -> Reader:
    charset = config["input.charset"]
    match config["input.format"].lower():
        case "csv":
            return CsvReader(config)
        case "json":
            return _JsonLines(charset)
        case "lines":
            return _Lines(charset)
        case "avro":
            return AvroFormat()
        case "parquet":
            return ParquetFormat()
        case _:
            return _Whole()


class _Whole:
    def read(self, data: bytes) -> Values:
        yield SchemaAndValue(builders.BYTES, data)


class _Lines:
    def __init__(self, charset: str) -> None:
        self._charset = charset

    def read(self, data: bytes) -> Values:
        for line in data.decode(self._charset, "replace").splitlines():
            yield SchemaAndValue(builders.STRING, line)


class _JsonLines:
    def __init__(self, charset: str) -> None:
        self._charset = charset

    def read(self, data: bytes) -> Values:
        for number, line in enumerate(data.decode(self._charset, "replace").splitlines(), 1):
            if line.strip():
                try:
                    yield SchemaAndValue(None, json_text.parse(line))
                except ValueError as error:
                    raise DataError(f"line {number} is not JSON: {error}") from None


_NAME: Final = re.compile(r"\W+")


class CsvReader:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        if len(config["csv.separator.char"]) != 1:
            raise ConfigError.invalid(
                "csv.separator.char", config["csv.separator.char"], "must be one character"
            )

    def read(self, data: bytes) -> Values:
        config = self._config
        text = data.decode(config["input.charset"], "replace").removeprefix("\ufeff")
        rows = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=config["csv.separator.char"],
            quotechar=config["csv.quote.char"],
        )
        names = list(config["csv.column.names"])
        if config["csv.first.row.as.header"]:
            names = names or [_NAME.sub("_", each.strip()) for each in next(rows, [])]
        first = next(rows, None)
        if first is None:
            return
        names = names or [f"column{number:02d}" for number in range(1, len(first) + 1)]
        schema = self._schema(names, first)
        yield self._value(schema, first, 1)
        for number, row in enumerate(rows, 2):
            if row:
                yield self._value(schema, row, number)

    def _schema(self, names: list[str], first: list[str]) -> Schema:
        kinds = [builders.OPTIONAL_STRING] * len(names)
        if self._config["schema.generation.enabled"]:
            kinds = [_guessed(text) for text in first]
        return builders.struct(zip(names, kinds, strict=False))

    def _value(self, schema: Schema, row: list[str], number: int) -> SchemaAndValue:
        if len(row) != len(schema.fields):
            raise DataError(
                f"row {number} has {len(row)} columns instead of {len(schema.fields)}: {row[:10]}"
            )
        values = [
            _typed(field.schema, text, number)
            for field, text in zip(schema.fields, row, strict=True)
        ]
        return SchemaAndValue(schema, Struct.unchecked(schema, values))


def _guessed(text: str) -> Schema:
    found = parse_string(text)
    if isinstance(found.value, bool):
        return builders.OPTIONAL_BOOLEAN
    if isinstance(found.value, int):
        return builders.OPTIONAL_INT64
    return builders.OPTIONAL_FLOAT64 if isinstance(found.value, float) else builders.OPTIONAL_STRING


def _typed(schema: Schema, text: str, number: int) -> Any:
    if text == "":
        return None
    try:
        if schema == builders.OPTIONAL_INT64:
            return int(text)
        if schema == builders.OPTIONAL_FLOAT64:
            return float(text)
    except ValueError:
        raise DataError(f"row {number} has {text!r} where the first row has a number") from None
    if schema == builders.OPTIONAL_BOOLEAN:
        return text.strip().lower() == "true"
    return text
