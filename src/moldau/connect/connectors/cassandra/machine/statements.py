"""Records as statements of CQL.

A row's columns come from the fields of key and value (the fields of the key are the primary key),
or from a mapping such as `id=key.id, name=value.name, at=now()`. All statements are upserts or
deletes by primary key, so a record that comes again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.connect.api.records import SinkRecord
from moldau.data import logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

_NUMBERS: Final = {
    Type.INT8: "tinyint",
    Type.INT16: "smallint",
    Type.INT32: "int",
    Type.INT64: "bigint",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "text",
    Type.BYTES: "blob",
}
_LOGICAL: Final = {
    logical.DATE_NAME: "date",
    logical.TIME_NAME: "time",
    logical.TIMESTAMP_NAME: "timestamp",
    logical.DECIMAL_NAME: "decimal",
}
_UPDATE: Final = "update"


@dataclass(frozen=True, slots=True)
class Rules:
    """`mode` is insert or update: both are upserts, but a row of an update that has only its
    primary key does not exist."""

    keyspace: str
    mode: str = "insert"
    deletes: bool = True
    ttl_s: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """`values` are bound in order; `key` tells the rows of one table apart."""

    cql: str
    values: tuple[Any, ...]
    key: tuple[Any, ...]
    record: SinkRecord


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def column_type(schema: Schema, where: str) -> str:
    """The type of a column for values of a schema."""
    if schema.name is not None and schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type in _NUMBERS:
        return _NUMBERS[schema.type]
    if schema.type is Type.ARRAY:
        return f"list<{column_type(schema.items, where)}>"
    if schema.type is Type.MAP:
        return f"map<{column_type(schema.keys, where)}, {column_type(schema.items, where)}>"
    raise DataError(f"{where} is a {schema.type.name.lower()}, which no type of Cassandra takes")


def create_table(rules: Rules, table: str, record: SinkRecord, options: str) -> str:
    """The table that a record with schemas needs."""
    keys, values = record.key_schema, record.value_schema
    if (
        keys is None or keys.type is not Type.STRUCT
        or values is None or values.type is not Type.STRUCT
    ):  # fmt: skip
        raise DataError(
            f"the table {table} can only be created from a key and a value that are structs with "
            "schemas: create it yourself, or set converters with schemas"
        )
    columns: dict[str, str] = {}
    for schema in (keys, values):
        for each in schema.fields:
            columns.setdefault(each.name, column_type(each.schema, f"field {each.name}"))
    defined = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    primary = ", ".join(quoted(each.name) for each in keys.fields)
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(rules.keyspace)}.{quoted(table)} "
        f"({defined}, PRIMARY KEY ({primary})){options}"
    )


def add_columns(rules: Rules, table: str, record: SinkRecord, known: Iterable[str]) -> list[str]:
    """What a table with these columns lacks for a record with a schema."""
    schema = record.value_schema
    if schema is None or schema.type is not Type.STRUCT:
        return []
    there = set(known)
    return [
        f"ALTER TABLE {quoted(rules.keyspace)}.{quoted(table)} ADD {quoted(each.name)} "
        f"{column_type(each.schema, f'field {each.name}')}"
        for each in schema.fields
        if each.name not in there
    ]


def statement(rules: Rules, table: str, record: SinkRecord) -> Statement | None:
    """None if the record changes nothing."""
    keys = _fields(record.key, "key", record)
    if not keys:
        raise DataError(f"{_place(record)} has no fields in its key, which are the primary key")
    if record.value is None:
        if not rules.deletes:
            return None
        return _delete(rules.keyspace, table, keys, record)
    return _upsert(rules, table, keys, _fields(record.value, "value", record), record)


def _delete(keyspace: str, table: str, keys: Mapping[str, Any], record: SinkRecord) -> Statement:
    where = " AND ".join(f"{quoted(each)} = ?" for each in keys)
    cql = f"DELETE FROM {quoted(keyspace)}.{quoted(table)} WHERE {where}"
    return Statement(cql, tuple(keys.values()), (keyspace, table, *keys.values()), record)


def _upsert(
    rules: Rules, table: str, keys: Mapping[str, Any], values: Mapping[str, Any], record: SinkRecord
) -> Statement:
    others = {name: each for name, each in values.items() if name not in keys}
    place = f"{quoted(rules.keyspace)}.{quoted(table)}"
    live = f" USING TTL {rules.ttl_s}" if rules.ttl_s > 0 else ""
    key = (rules.keyspace, table, *keys.values())
    if rules.mode == _UPDATE and others:
        changes = ", ".join(f"{quoted(each)} = ?" for each in others)
        where = " AND ".join(f"{quoted(each)} = ?" for each in keys)
        cql = f"UPDATE {place}{live} SET {changes} WHERE {where}"
        return Statement(cql, (*others.values(), *keys.values()), key, record)
    columns = {**keys, **others}
    names = ", ".join(map(quoted, columns))
    marks = ", ".join("?" * len(columns))
    cql = f"INSERT INTO {place} ({names}) VALUES ({marks}){live}"
    return Statement(cql, tuple(columns.values()), key, record)


def _fields(value: Any, part: str, record: SinkRecord) -> dict[str, Any]:
    if isinstance(value, Struct):
        return {each.name: value.get(each.name) for each in value.schema.fields}
    if isinstance(value, dict):
        return {str(name): each for name, each in value.items()}
    raise DataError(
        f"{_place(record)} has no fields in its {part}: the columns of the row are missing"
    )


def _place(record: SinkRecord) -> str:
    return f"record {record.topic}-{record.partition}@{record.offset}"


# Mappings, as DataStax's connector has them.


@dataclass(frozen=True, slots=True)
class Mapped:
    """A table that records of a topic go to: columns by the path of their value."""

    rules: Rules
    table: str
    columns: tuple[tuple[str, str], ...]
    null_to_unset: bool = True

    def statement(
        self, record: SinkRecord, primary: Sequence[str], unset: object
    ) -> Statement | None:
        """`primary` are the columns of the table's primary key."""
        if record.value is None:
            keys = {
                name: _at(path, record)
                for name, path in self.columns
                if name in primary and path.split(".")[0] == "key"
            }
            # A row can only be named if all of its primary key is in the key of the record.
            if not self.rules.deletes or set(keys) != set(primary):
                return None
            return _delete(self.rules.keyspace, self.table, keys, record)
        names, marks, values = [], [], []
        for name, path in self.columns:
            names.append(quoted(name))
            if path.endswith("()"):
                # A function of the server, such as now().
                marks.append(path)
                continue
            value = _at(path, record)
            marks.append("?")
            values.append(unset if value is None and self.null_to_unset else value)
        live = f" USING TTL {self.rules.ttl_s}" if self.rules.ttl_s > 0 else ""
        place = f"{quoted(self.rules.keyspace)}.{quoted(self.table)}"
        cql = f"INSERT INTO {place} ({', '.join(names)}) VALUES ({', '.join(marks)}){live}"
        own = tuple(_at(path, record) for name, path in self.columns if name in primary)
        return Statement(cql, tuple(values), (self.rules.keyspace, self.table, *own), record)


def _at(path: str, record: SinkRecord) -> Any:
    root, _, rest = path.partition(".")
    value: Any
    match root:
        case "key":
            value = record.key
        case "value":
            value = record.value
        case "header":
            found = [each.value for each in record.headers if each.key == rest]
            return found[-1] if found else None
        case _:
            raise DataError(
                f"{path}: a mapping takes key, value, header or a function such as now()"
            )
    for name in filter(None, rest.split(".")):
        if isinstance(value, Struct):
            value = value.get(name) if value.schema.field(name) is not None else None
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


_TOPIC: Final = re.compile(
    r"topic\.(?P<topic>.+)\.(?P<keyspace>[^.]+)\.(?P<table>[^.]+)\."
    r"(?P<what>mapping|ttl|ttlTimeUnit|deletesEnabled|nullToUnset)"
)
_UNITS: Final = {"SECONDS": 1.0, "MILLISECONDS": 0.001, "MINUTES": 60.0, "HOURS": 3600.0,
                 "DAYS": 86400.0}  # fmt: skip


def mappings(props: Mapping[str, str]) -> dict[str, list[Mapped]]:
    """The tables of each topic, from `topic.TOPIC.KEYSPACE.TABLE.*`; ValueError for a bad one."""
    settings: dict[tuple[str, str, str], dict[str, str]] = {}
    for key, value in props.items():
        match = _TOPIC.fullmatch(key)
        if match is not None:
            at = (match["topic"], match["keyspace"], match["table"])
            settings.setdefault(at, {})[match["what"]] = value
    found: dict[str, list[Mapped]] = {}
    for (topic, keyspace, table), given in settings.items():
        if not given.get("mapping"):
            raise ValueError(f"topic.{topic}.{keyspace}.{table}.mapping is missing")
        unit = _UNITS.get(given.get("ttlTimeUnit", "SECONDS").upper(), 1.0)
        rules = Rules(
            keyspace,
            deletes=given.get("deletesEnabled", "true").lower() == "true",
            ttl_s=max(int(int(given.get("ttl", "-1")) * unit), 0),
        )
        columns = tuple(_columns(given["mapping"]))
        unset = given.get("nullToUnset", "true").lower() == "true"
        found.setdefault(topic, []).append(Mapped(rules, table, columns, unset))
    return found


def _columns(mapping: str) -> Iterator[tuple[str, str]]:
    for part in mapping.split(","):
        name, separator, path = (each.strip().strip('"') for each in part.partition("="))
        if not separator or not name or not path:
            raise ValueError(f"{part.strip()!r} is no mapping: write COLUMN=value.FIELD")
        yield name, path


def rounds(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Statements that may run at the same time: of one row only one is under way."""
    current: list[Statement] = []
    keys: set[Any] = set()
    for each in statements:
        try:
            again = each.key in keys
        except TypeError:
            # A key with a list or a map in it cannot be compared: alone, to be safe.
            again = True
        if again and current:
            yield current
            current, keys = [], set()
        current.append(each)
        try:
            keys.add(each.key)
        except TypeError:
            yield current
            current, keys = [], set()
    if current:
        yield current
