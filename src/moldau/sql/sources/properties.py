"""The WITH clause: which properties there are, and what they say about formats and topics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.data.java_time.parsing import parser
from moldau.sql.errors import KsqlException
from moldau.sql.sources.data_source import (
    FULL_SCHEMA_NAME,
    SCHEMA_ID,
    UNWRAP,
    WRAP,
    FormatInfo,
    TimestampColumn,
    WindowInfo,
)
from moldau.sql.syntax.cursor import Cursor
from moldau.sql.syntax.expressions import Literal, StringLiteral
from moldau.sql.syntax.lexer import EOF, Text, tokens
from moldau.sql.syntax.statements import UNIT_MS, CreateAsSelect

_COMMON: dict[str, str] = {
    "KAFKA_TOPIC": "STRING",
    "PARTITIONS": "INT",
    "REPLICAS": "SHORT",
    "RETENTION_MS": "LONG",
    "CLEANUP_POLICY": "STRING",
    "TIMESTAMP": "STRING",
    "TIMESTAMP_FORMAT": "STRING",
    "VALUE_AVRO_SCHEMA_FULL_NAME": "STRING",
    "KEY_SCHEMA_FULL_NAME": "STRING",
    "VALUE_SCHEMA_FULL_NAME": "STRING",
    "VALUE_FORMAT": "STRING",
    "KEY_FORMAT": "STRING",
    "FORMAT": "STRING",
    "WRAP_SINGLE_VALUE": "BOOLEAN",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": "STRING",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "STRING",
    "VALUE_DELIMITER": "STRING",
    "KEY_DELIMITER": "STRING",
    "KEY_SCHEMA_ID": "INT",
    "VALUE_SCHEMA_ID": "INT",
}
_SOURCE_ONLY = {
    "WINDOW_TYPE": "STRING",
    "WINDOW_SIZE": "STRING",
    "SOURCE_CONNECTOR": "STRING",
    "SOURCED_BY_CONNECTOR": "STRING",
}
_QUERY_ONLY = {"ENGINE": "STRING"}
#: Which columns of a table of Spark are the key of the topic that it is copied to.
_SPARK_KEY = "KEY"
_ENGINES = ("streams", "spark-sql")
_INSERT = {"QUERY_ID": "STRING"}
_RESERVED_IDS = ("INSERTQUERY_", "CTAS_", "CSAS_", "CST_")
_QUERY_ID = re.compile("[A-Z0-9_]+", re.ASCII)
_RANGES = {"INT": 31, "SHORT": 15, "LONG": 63}
_WINDOW_TYPES = ("SESSION", "HOPPING", "TUMBLING")
_PROTOBUF = ("PROTOBUF", "PROTOBUF_NOSR")
_NULLABLE = ("OPTIONAL", "WRAPPER")


def own_properties(statement: CreateAsSelect) -> Mapping[str, Literal]:
    """The properties of the source that a query creates."""
    if statement.query.source.spark is None:
        return statement.properties
    return {name: each for name, each in statement.properties.items() if name.upper() != _SPARK_KEY}


def spark_keys(statement: CreateAsSelect, names: Sequence[str]) -> list[str]:
    """The columns of a query over a table of Spark that KEY='a, b' names."""
    given = next(
        (each for name, each in statement.properties.items() if name.upper() == _SPARK_KEY), None
    )
    wanted = given.value.split(",") if isinstance(given, StringLiteral) else []
    plain = [each.strip() for each in wanted]
    found = [each[1:-1] if each[:1] == "`" else each.upper() for each in plain]
    unknown = next((each for each in found if each not in names), None)
    if unknown is not None:
        raise KsqlException(
            f"KEY names the column {unknown}, which the query does not have: its columns are "
            f"{', '.join(names)}"
        )
    if statement.kind == "TABLE" and not found:
        raise KsqlException(
            "A table needs a primary key: name the columns of the query that are it, as in "
            "WITH (KEY='id')"
        )
    return found


class SourceProperties:
    """The properties of a CREATE statement, checked. `is_query`: of CREATE ... AS SELECT."""

    def __init__(self, literals: Mapping[str, Literal], *, is_query: bool) -> None:
        allowed = _COMMON | (_QUERY_ONLY if is_query else _SOURCE_ONLY)
        self.values = _parsed(literals, allowed)
        self._is_query = is_query
        topic = self.values.get("KAFKA_TOPIC")
        if not is_query and topic is None:
            raise KsqlException(
                'Missing required property "KAFKA_TOPIC" which has no default value.'
            )
        if topic is not None and not topic:
            raise KsqlException("Invalid value  for property KAFKA_TOPIC: String must be non-empty")
        engine = self.values.get("ENGINE", "streams")
        if engine.lower() not in _ENGINES:
            raise KsqlException(
                f"Invalid value {engine} for property ENGINE: String must be one of: "
                f"{', '.join(_ENGINES)}"
            )
        self._check_formats()
        _check_time_format(self.values.get("TIMESTAMP_FORMAT"))
        for name in ("KEY_DELIMITER", "VALUE_DELIMITER"):
            if self.values.get(name) is not None:
                _check_delimiter(name, self.values[name])
        for name in (
            "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
            "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
        ):
            chosen = self.values.get(name)
            if chosen is not None and chosen not in _NULLABLE:
                raise KsqlException(
                    f"Invalid value {chosen} for property {name}: String must be one of: "
                    f"{', '.join(_NULLABLE)}, null"
                )
        if not is_query:
            self.window = self._window()

    def _check_formats(self) -> None:
        for name in ("KEY_FORMAT", "VALUE_FORMAT"):
            if "FORMAT" in self.values and name in self.values:
                raise KsqlException(
                    f"Cannot supply both '{name}' and 'FORMAT' properties, as 'FORMAT' sets both "
                    "key and value formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and "
                    "'VALUE_FORMAT'."
                )
        if "VALUE_AVRO_SCHEMA_FULL_NAME" in self.values and "VALUE_SCHEMA_FULL_NAME" in self.values:
            raise KsqlException(
                "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' "
                "properties. Please only set 'VALUE_SCHEMA_FULL_NAME'."
            )

    def _window(self) -> WindowInfo | None:
        given, size = self.values.get("WINDOW_TYPE"), self.values.get("WINDOW_SIZE")
        kind = None if given is None else str(given).upper()
        if kind is not None and kind not in _WINDOW_TYPES:
            raise KsqlException(
                f"Invalid value {given} for property WINDOW_TYPE: String must be one of: "
                f"{', '.join(_WINDOW_TYPES)}, null"
            )
        size_ms = None if size is None else parse_duration(size)
        sized = kind is not None and kind != "SESSION"
        if sized and size_ms is None:
            raise KsqlException(
                f"{kind} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
                "For example: 'WINDOW_SIZE'='10 SECONDS'"
            )
        if not sized and size_ms is not None:
            raise KsqlException("'WINDOW_SIZE' should not be set for SESSION windows.")
        return None if kind is None else WindowInfo(kind, size_ms)  # type: ignore[arg-type]

    def get(self, name: str) -> Any:
        return self.values.get(name)

    @property
    def topic(self) -> str:
        return str(self.values["KAFKA_TOPIC"])

    @property
    def timestamp(self) -> TimestampColumn | None:
        column = self.values.get("TIMESTAMP")
        if column is None:
            return None
        return TimestampColumn(_column_name(column), self.values.get("TIMESTAMP_FORMAT"))

    @property
    def value_features(self) -> frozenset[str]:
        wrap = self.values.get("WRAP_SINGLE_VALUE")
        return frozenset() if wrap is None else frozenset({WRAP if wrap else UNWRAP})

    def format_name(self, *, is_key: bool) -> str | None:
        side = "KEY_FORMAT" if is_key else "VALUE_FORMAT"
        found = self.values.get("FORMAT", self.values.get(side))
        return None if found is None else str(found).upper()

    def format_info(self, name: str, *, is_key: bool, source: str) -> FormatInfo:
        """A format with the properties that were given for it."""
        return FormatInfo.of(name, self.format_properties(name, is_key=is_key, source=source))

    def format_properties(self, name: str, *, is_key: bool, source: str) -> dict[str, str]:
        side = "KEY" if is_key else "VALUE"
        found: dict[str, str] = {}
        schema = self.values.get(f"{side}_SCHEMA_FULL_NAME")
        if not is_key:
            schema = self.values.get("VALUE_AVRO_SCHEMA_FULL_NAME", schema)
        if schema is not None:
            found[FULL_SCHEMA_NAME] = schema
        elif is_key and name == "AVRO":
            found[FULL_SCHEMA_NAME] = f"io.confluent.ksql.avro_schemas.{avro_name(source)}Key"
        delimiter = self.values.get(f"{side}_DELIMITER")
        if delimiter is not None:
            found["delimiter"] = delimiter
        if name == "PROTOBUF":
            found["unwrapPrimitives"] = "true"
        nullable_name = f"{side}_PROTOBUF_NULLABLE_REPRESENTATION"
        nullable = self.values.get(nullable_name)
        if nullable is not None:
            if name not in _PROTOBUF:
                raise KsqlException(
                    f"Property {nullable_name} can only be enabled with protobuf format"
                )
            found["nullableRepresentation"] = nullable.lower()
        schema_id = self.values.get(f"{side}_SCHEMA_ID")
        if schema_id is not None:
            found[SCHEMA_ID] = str(schema_id)
        return found


def avro_name(source: str) -> str:
    """The name of a source as ksqlDB puts it into an Avro schema's name: MY_SOURCE, MySource."""
    parts = [each for each in source.replace("-", "_").split("_") if each]
    return "".join(each[:1].upper() + each[1:].lower() for each in parts)


def insert_query_id(literals: Mapping[str, Literal]) -> str | None:
    """The QUERY_ID of INSERT INTO ... WITH (QUERY_ID = '...')."""
    found = _parsed(literals, _INSERT).get("QUERY_ID")
    if found is None:
        return None
    name = str(found).upper()
    if name.startswith(_RESERVED_IDS):
        raise KsqlException(
            f"Query IDs must not start with a reserved query ID prefix "
            f"({', '.join(_RESERVED_IDS)}). Got '{name}'."
        )
    if not _QUERY_ID.fullmatch(name):
        raise KsqlException(
            f"Query IDs may contain only alphanumeric characters and '_'. Got: '{name}'"
        )
    return name


def _parsed(literals: Mapping[str, Literal], allowed: Mapping[str, str]) -> dict[str, Any]:
    unknown = [name.upper() for name in literals if name.upper() not in allowed]
    if unknown:
        raise KsqlException(f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}")
    found = {}
    for name, literal in literals.items():
        upper = name.upper()
        value = literal.value  # type: ignore[attr-defined]
        if value is not None:
            found[upper] = _typed(upper, value, allowed[upper])
    return found


def _typed(name: str, value: Any, kind: str) -> Any:
    if kind == "STRING":
        if isinstance(value, str):
            return value
        raise _not_of_type(name, value, "a string")
    if kind == "BOOLEAN":
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        raise _not_of_type(name, value, "either true or false", "Expected value to be ")
    bits = _RANGES[kind]
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise _not_of_type(name, value, f"a number of type {kind}", "Not ") from None
    if isinstance(value, bool) or not -(2**bits) <= number < 2**bits:
        raise _not_of_type(name, value, f"a 32-bit integer, but it was a {type(value).__name__}")
    return number


def _not_of_type(
    name: str, value: Any, what: str, start: str = "Expected value to be "
) -> KsqlException:
    return KsqlException(f"Invalid value {value} for property {name}: {start}{what}")


def _check_time_format(pattern: str | None) -> None:
    if pattern is None:
        return
    try:
        parser(pattern)
    except ValueError as error:
        raise KsqlException(
            f"Invalid datetime format for config:TIMESTAMP_FORMAT, reason:{error}"
        ) from error


def check_cleanup_policy(properties: SourceProperties) -> None:
    """The policy follows from the kind of source; the WITH clause must not set it."""
    if properties.get("CLEANUP_POLICY") is not None:
        raise KsqlException(
            "Invalid config variable in the WITH clause: CLEANUP_POLICY.\n"
            "The CLEANUP_POLICY config is automatically inferred based on the type of source "
            "(STREAM or TABLE).\nUsers can't set the CLEANUP_POLICY config manually."
        )


def check_retention(policy: str, retention_ms: int | None) -> None:
    """A compacted topic keeps every key."""
    if policy == "compact" and retention_ms is not None:
        raise KsqlException(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do "
            "not support retention."
        )


def _check_delimiter(name: str, value: str) -> None:
    example = "\nExample valid value: ';'"
    if not value.strip():
        raise KsqlException(
            f"Configuration {name} is invalid: Delimiter cannot be empty, if you meant to have a "
            f"tab or space for delimiter, please use the special values 'TAB' or 'SPACE'{example}"
        )
    if len(value) != 1 and value.upper() not in ("TAB", "SPACE"):
        raise KsqlException(
            f"Configuration {name} is invalid: Invalid delimiter value: '{value}'. Delimiter must "
            f"be a single character or TAB,SPACE{example}"
        )


def parse_duration(text: str) -> int:
    """Milliseconds of a text such as "10 SECONDS"."""
    parts = text.split()
    unit = parts[1].upper() if len(parts) == 2 else ""
    unit = unit if unit.endswith("S") else f"{unit}S"
    reason = None
    if len(parts) != 2:
        reason = f"Expected 2 tokens, got: {len(parts)}"
    elif not parts[0].lstrip("-").isdigit():
        reason = f"Not numeric: '{parts[0]}'"
    elif unit not in UNIT_MS:
        known = "NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS"
        reason = f"Unknown time unit: '{parts[1].upper()}'\nSupported time units are: {known}"
    if reason is not None:
        raise KsqlException(
            f"Configuration WINDOW_SIZE is invalid: Invalid duration: '{text}'. {reason}"
        )
    return int(parts[0]) * UNIT_MS[unit]


def _column_name(text: str) -> str:
    """The column that TIMESTAMP names; the text is read as an identifier."""
    cursor = Cursor(Text(text), tokens(text))
    name = cursor.identifier()
    cursor.expect(EOF)
    return name
