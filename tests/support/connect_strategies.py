"""Connect schemas, and values that fit them, for hypothesis."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from moldau.data import builders, logical
from moldau.data.schema import INTEGER_BITS, Schema, Type
from moldau.data.struct import Struct

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
_PLAIN = [each for each in Type if each.is_primitive]
_SHORT_TIMES = st.times().map(
    lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)
)
_SHORT_MOMENTS = st.datetimes(timezones=st.just(datetime.UTC)).map(
    lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)
)


@st.composite
def attributes(draw: st.DrawFn) -> dict[str, Any]:
    """What a schema has beside its type."""
    given: dict[str, Any] = {}
    if draw(st.booleans()):
        given["optional"] = True
    if draw(st.integers(0, 3)) == 0:
        given["version"] = draw(st.integers(0, 5))
        given["doc"] = draw(TEXT)
        given["parameters"] = draw(
            st.dictionaries(NAMES.map(lambda name: f"x{name}"), TEXT, max_size=2)
        )
    return given


def plain_schemas() -> st.SearchStrategy[Schema]:
    typed = st.builds(
        lambda kind, given: Schema(type=kind, **given), st.sampled_from(_PLAIN), attributes()
    )
    named = st.sampled_from([logical.DATE, logical.TIME, logical.TIMESTAMP, logical.decimal(2)])
    return typed | st.builds(lambda each, yes: each.replace(optional=yes), named, st.booleans())


@st.composite
def structs(draw: st.DrawFn, fields: st.SearchStrategy[Schema]) -> Schema:
    held = draw(st.dictionaries(NAMES, fields, max_size=4))
    return builders.struct(held, **draw(attributes()))


def schemas() -> st.SearchStrategy[Schema]:
    """Nested ones, some with a default."""
    bare = st.recursive(
        plain_schemas(),
        lambda inner: (
            st.builds(lambda each, given: builders.array(each, **given), inner, attributes())
            | st.builds(
                lambda each, given: builders.map_of(builders.STRING, each, **given),
                inner,
                attributes(),
            )
            | structs(inner)
        ),
        max_leaves=6,
    )
    return bare | bare.flatmap(_with_default)


def _with_default(schema: Schema) -> st.SearchStrategy[Schema]:
    return values(schema.as_required()).map(
        lambda value: builders.with_default(schema, _of(schema, value))
    )


def _of(schema: Schema, value: Any) -> Any:
    """A struct knows its schema: with the optional one it is another."""
    return Struct.unchecked(schema, list(value.values)) if isinstance(value, Struct) else value


def values(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.optional:
        return st.none() | values(schema.as_required()).map(lambda each: _of(schema, each))
    match schema.name:
        case logical.DECIMAL_NAME:
            scale = logical.scale_of(schema)
            return st.integers(-(10**20), 10**20).map(
                lambda number: Decimal(number).scaleb(-scale).quantize(Decimal(1).scaleb(-scale))
            )
        case logical.DATE_NAME:
            return st.dates()
        case logical.TIME_NAME:
            return _SHORT_TIMES
        case logical.TIMESTAMP_NAME:
            return _SHORT_MOMENTS
    match schema.type:
        case Type.BOOLEAN:
            return st.booleans()
        case Type.STRING:
            return TEXT
        case Type.BYTES:
            return st.binary(max_size=8)
        case Type.FLOAT32:
            return st.floats(width=32, allow_nan=False, allow_infinity=False).map(_float32)
        case Type.FLOAT64:
            return st.floats(allow_nan=False, allow_infinity=False)
        case Type.ARRAY:
            return st.lists(values(schema.items), max_size=3)
        case Type.MAP:
            return st.dictionaries(values(schema.keys), values(schema.items), max_size=3)
        case Type.STRUCT:
            fields = st.tuples(*(values(each.schema) for each in schema.fields))
            return fields.map(lambda held: Struct.unchecked(schema, list(held)))
        case _:
            half = 1 << INTEGER_BITS[schema.type] - 1
            return st.integers(-half, half - 1)


def _float32(value: float) -> float:
    return float(struct.unpack(">f", struct.pack(">f", value))[0])


def schemas_and_values() -> st.SearchStrategy[tuple[Schema, Any]]:
    return schemas().flatmap(lambda each: st.tuples(st.just(each), values(each)))


def replaced_nulls(schema: Schema | None, value: Any) -> Any:
    """The value with defaults in place of nulls, as readers see it."""
    if schema is None:
        return value
    if value is None:
        return schema.default
    match schema.type:
        case Type.ARRAY:
            return [replaced_nulls(schema.value_schema, each) for each in value]
        case Type.MAP:
            return {key: replaced_nulls(schema.value_schema, each) for key, each in value.items()}
        case Type.STRUCT:
            held = [replaced_nulls(field.schema, each) for field, each in value.items()]
            return Struct.unchecked(schema, held)
        case _:
            return value
