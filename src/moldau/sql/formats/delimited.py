"""DELIMITED: one line of values, quoted as Apache Commons CSV quotes."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.formats import common
from moldau.sql.formats.common import CallableSerde, Row
from moldau.sql.formats.errors import SerdeError
from moldau.sql.ports import Feature, RowSerde, SchemaRegistry
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    BaseType,
    Column,
    DecimalType,
    SqlType,
)
from moldau.sql.values import decimals
from moldau.sql.values.arithmetic import base_name
from moldau.sql.values.casts import parse_int, parse_long
from moldau.sql.values.doubles import double_text
from moldau.sql.values.texts import boolean_text

_DELIMITER = "delimiter"
_NAMED = {"TAB": "\t", "SPACE": " "}
_DAY_MS = 86_400_000
_FIELD_SIZE_MAX = 2**31 - 1
csv.field_size_limit(_FIELD_SIZE_MAX)


def parse_delimiter(text: str) -> str:
    if not text.strip():
        raise KsqlException(
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please "
            "use the special values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(text) == 1:
        return text
    found = _NAMED.get(text)
    if found is None:
        raise KsqlException(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or "
            f"{','.join(_NAMED)}\nExample valid value: ';'"
        )
    return found


def _parse_time(text: str) -> int:
    value = int(parse_long(text))
    if not 0 <= value <= _DAY_MS:
        raise KsqlException(
            f"Time values must use number of milliseconds greater than 0 and less than {_DAY_MS}."
        )
    return value


def _parse_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise KsqlException(f"Value is not a valid Base64 encoded string: {text}") from None


def _strict(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Java's parsers take no spaces around a number."""

    def strict(text: str) -> Any:
        if text != text.strip():
            raise KsqlException(f'For input string: "{text}"')
        return parse(text)

    return strict


def _same(text: str) -> str:
    return text


_PARSERS: dict[SqlType, Callable[[str], Any]] = {
    BOOLEAN: lambda text: text.lower() == "true",
    INTEGER: _strict(parse_int),
    BIGINT: _strict(parse_long),
    DOUBLE: float,
    STRING: _same,
    BYTES: _parse_bytes,
    TIME: _strict(_parse_time),
    DATE: _strict(parse_int),
    TIMESTAMP: _strict(parse_long),
}
_WRITERS: dict[SqlType, Callable[[Any], str]] = {
    BOOLEAN: boolean_text,
    INTEGER: str,
    BIGINT: str,
    DOUBLE: double_text,
    STRING: _same,
    BYTES: lambda value: base64.b64encode(value).decode(),
    TIME: str,
    DATE: str,
    TIMESTAMP: str,
}


def _quoted(text: str, delimiter: str, *, is_first: bool) -> str:
    """Quotes where Commons CSV sets them by default."""
    if not text:
        return '""' if is_first else ""
    first = text[0]
    # A line that does not begin with a letter or a digit might be taken for a comment.
    odd_start = is_first and not (first.isascii() and first.isalnum())
    if (
        odd_start
        or first <= "#"
        or text[-1] <= " "
        or delimiter in text
        or '"' in text
        or "\n" in text
        or "\r" in text
    ):
        return '"' + text.replace('"', '""') + '"'
    return text


class DelimitedFormat:
    name = "DELIMITED"

    def __init__(self, properties: Mapping[str, str]) -> None:
        unknown = properties.keys() - {_DELIMITER}
        if unknown:
            common.check_properties(self.name, properties, frozenset({_DELIMITER}))
        self._delimiter = parse_delimiter(properties.get(_DELIMITER, ","))

    def supports(self, feature: Feature) -> bool:
        return feature == common.UNWRAP_SINGLES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return isinstance(sql_type, BaseType)

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset({_DELIMITER})

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        raise common.without_registry(self.name)

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        raise common.without_registry(self.name)

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, frozenset({common.UNWRAP_SINGLES}))
        for each in columns:
            if each.type not in _PARSERS and not isinstance(each.type, DecimalType):
                raise KsqlException(
                    f"The 'DELIMITED' format does not support type '{base_name(each.type)}', "
                    f"column: `{each.name}`"
                )
        return _serde([each.type for each in columns], self._delimiter)


def _serde(types: Sequence[SqlType], delimiter: str) -> CallableSerde:
    writers = [_writer(each) for each in types]
    parsers = [_parser(each) for each in types]

    def write(topic: str, row: Row) -> bytes:
        parts = [
            "" if value is None else _quoted(show(value), delimiter, is_first=index == 0)
            for index, (show, value) in enumerate(zip(writers, row, strict=True))
        ]
        return delimiter.join(parts).encode()

    def read(topic: str, data: bytes) -> Row:
        try:
            text = data.decode("utf-8", "replace")
            if '"' in text or "\n" in text or "\r" in text:
                lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
                fields = next((line for line in lines if line), None)
            else:
                fields = text.split(delimiter) if text else None
            if fields is None:
                raise SerdeError("No fields in record")
            if len(fields) != len(parsers):
                raise SerdeError(
                    f"Column count mismatch on deserialization. topic: {topic}, expected: "
                    f"{len(parsers)}, got: {len(fields)}"
                )
            return tuple(
                [
                    parse(field) if field else None
                    for parse, field in zip(parsers, fields, strict=True)
                ]
            )
        except (KsqlException, ValueError, ArithmeticError, csv.Error) as error:
            raise SerdeError(f"Error deserializing delimited: {error}") from error

    return CallableSerde(write, read, len(types))


def _writer(sql_type: SqlType) -> Callable[[Any], str]:
    return decimals.plain if isinstance(sql_type, DecimalType) else _WRITERS[sql_type]


def _parser(sql_type: SqlType) -> Callable[[str], Any]:
    if isinstance(sql_type, DecimalType):

        def parse(text: str) -> Decimal:
            return decimals.ensure_fit(decimals.from_text(text), sql_type)

        return parse
    return _PARSERS[sql_type]
