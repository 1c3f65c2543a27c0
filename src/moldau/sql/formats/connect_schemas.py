"""Schemas of columns as Connect's, and Connect's schemas as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.data import logical
from moldau.data.schema import Field, Schema, Type
from moldau.sql.errors import KsqlException
from moldau.sql.formats import common
from moldau.sql.ports import Feature
from moldau.sql.types import (
    STRING,
    ArrayType,
    Column,
    MapType,
    SqlType,
    StructType,
    connect_schema,
    sql_type,
)

_MAP_KEYS = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING})


def schema_of(columns: Sequence[Column], features: frozenset[Feature]) -> Schema:
    """The schema of a row, or of its only column."""
    single = common.single_column(columns, features)
    if single is not None:
        return connect_schema(single.type)
    return connect_schema(common.row_type(columns)).as_required()


class _Unsupported(Exception):
    """A type that SQL has not got."""


def columns_of(
    schema: Schema, features: frozenset[Feature], *, is_key: bool, keep_case: bool
) -> list[tuple[str, SqlType]]:
    """The columns of a row with the schema. Names are in capitals, but for schemas that a statement
    names by their ids: rows are written with those, and so `keep_case`."""
    if common.UNWRAP_SINGLES in features:
        name = "ROWKEY" if is_key else "ROWVAL"
        schema = Schema(type=Type.STRUCT, fields=(Field(name, 0, schema),))
    if schema.type is not Type.STRUCT:
        if is_key:
            raise KsqlException("Key schemas are always unwrapped.")
        raise KsqlException(
            "Schema returned from schema registry is anonymous type. To use this schema with "
            "ksqlDB, set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties."
        )
    found = _struct(schema, str if keep_case else str.upper)
    if not found.fields:
        raise KsqlException(
            "Schema does not include any columns with types that ksqlDB supports.\n"
            f"schema: {schema}"
        )
    return list(found.fields)


def _struct(schema: Schema, spelled: Callable[[str], str]) -> StructType:
    fields: dict[str, SqlType] = {}
    for field in schema.fields:
        try:
            fields[spelled(field.name)] = _type(field.schema, spelled)
        except _Unsupported:
            # ksqlDB leaves out what it cannot hold.
            continue
    return StructType(tuple(fields.items()))


def _type(schema: Schema, spelled: Callable[[str], str]) -> SqlType:
    match schema.type:
        case Type.ARRAY:
            return ArrayType(_type(schema.items, spelled))
        case Type.MAP:
            if schema.keys.type not in _MAP_KEYS:
                raise _Unsupported(f"Unsupported type for map key: {schema.keys.type.value}")
            return MapType(STRING, _type(schema.items, spelled))
        case Type.STRUCT:
            return _struct(schema, spelled)
        case Type.BYTES if schema.name != logical.DECIMAL_NAME:
            return sql_type(Schema(type=Type.BYTES, optional=True))
        case _:
            known = schema.name in (
                logical.DECIMAL_NAME,
                logical.DATE_NAME,
                logical.TIME_NAME,
                logical.TIMESTAMP_NAME,
            )
            return sql_type(schema if known else Schema(type=schema.type, optional=True))


def avro_compatible(schema: Schema, full_name: str) -> Schema:
    """The schema with a name for each struct and map, made of the way to it."""
    return _avro(schema, (full_name,), is_root=True)


def _avro(schema: Schema, names: tuple[str, ...], *, is_root: bool) -> Schema:
    optional = schema.optional and not is_root
    name = "_".join(names)
    match schema.type:
        case Type.STRUCT:
            fields = tuple(
                Field(
                    field.name.replace(".", "_"),
                    field.index,
                    _avro(field.schema, (*names, field.name), is_root=False),
                )
                for field in schema.fields
            )
            return schema.replace(name=schema.name or name, fields=fields, optional=optional)
        case Type.ARRAY:
            return schema.replace(
                value_schema=_avro(schema.items, names, is_root=False), optional=optional
            )
        case Type.MAP:
            return schema.replace(
                name=name,
                key_schema=_avro(schema.keys, (*names, "MapKey"), is_root=False),
                value_schema=_avro(schema.items, (*names, "MapValue"), is_root=False),
                optional=optional,
            )
        case _:
            return schema if not is_root else schema.replace(optional=False)
