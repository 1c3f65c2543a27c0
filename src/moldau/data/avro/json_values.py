"""Avro's JSON encoding: values of a schema as what stands in JSON, and back.

A value of a union is an object with the name of the branch, `{"string": "x"}`, or null. Bytes and
fixed are strings with a character per byte. Logical types are the numbers and bytes underneath. The
rules are those of Apache Avro's JsonDecoder and JsonEncoder, which Confluent's tools use: all
fields must be there (defaults are for reading old data), in any order.

A value here is what `AvroEncoder` takes and `AvroDecoder` returns without logical types; a value of
a union is a pair of the branch's name and the value, unless it is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from moldau.data.avro.model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    full_name,
)
from moldau.data.errors import DataError
from moldau.data.json_text import shortest_float32

__all__ = ["from_json", "to_json"]

Convert = Callable[[Any], Any]

_NAMED_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_RANGES: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_SHOWN_MAX: Final = 80


def from_json(schema: AvroType) -> Convert:
    """A function that turns what stands in JSON into a value; it raises DataError."""
    return _bounded(_Reading().of(schema))


def to_json(schema: AvroType) -> Convert:
    """A function that turns a value into what stands in JSON.

    A union at the top is written as its branch alone, as Confluent's tools write it.
    """
    convert = _Writing().of(schema)
    if isinstance(schema, Union):
        wrapped = convert

        def convert(value: Any) -> Any:
            shown = wrapped(value)
            return None if shown is None else next(iter(shown.values()))

    return _bounded(convert)


def _bounded(convert: Convert) -> Convert:
    def run(value: Any) -> Any:
        try:
            return convert(value)
        except RecursionError:
            raise DataError("The value is nested too deeply") from None

    return run


class _Reading:
    """Makes one function per type; a record that holds itself calls its own."""

    def __init__(self) -> None:
        self._records: dict[int, Convert] = {}

    def of(self, schema: AvroType) -> Convert:
        match schema:
            case Primitive():
                return _READ_PRIMITIVES[schema.kind]
            case Enum():
                return partial(_read_enum, schema.name.full, frozenset(schema.symbols))
            case Fixed():
                return partial(_read_fixed, schema)
            case Array():
                return partial(_read_array, self.of(schema.items))
            case Map():
                return partial(_read_map, self.of(schema.values))
            case Union():
                branches = {full_name(each): self.of(each) for each in schema.branches}
                return partial(_read_union, branches)
            case Record():
                return self._record(schema)

    def _record(self, schema: Record) -> Convert:
        found = self._records.get(id(schema))
        if found is None:
            fields: list[tuple[str, Convert]] = []
            found = self._records[id(schema)] = partial(_read_record, schema.name.full, fields)
            fields += [(each.name, self.of(each.type)) for each in schema.fields]
        return found


def _read_record(name: str, fields: list[tuple[str, Convert]], value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _expected(f"a record {name}", value)
    record = {}
    for field, convert in fields:
        if field not in value:
            raise DataError(f"Expected field name not found: {field} (of record {name})")
        try:
            record[field] = convert(value[field])
        except DataError as error:
            raise _within(field, error) from None
    if len(value) > len(fields):
        _check_unknown(value, record)
    return record


def _check_unknown(value: dict[str, Any], record: dict[str, Any]) -> None:
    """Avro's decoder passes over what comes after the last field, and refuses what comes before."""
    names = list(value)
    last = max((names.index(each) for each in record), default=-1)
    unknown = [each for each in names[:last] if each not in record]
    if unknown:
        raise DataError(f"Unknown fields: [{', '.join(unknown)}]")


def _read_array(convert: Convert, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _expected("an array", value)
    return [_item(convert, each, index) for index, each in enumerate(value)]


def _item(convert: Convert, value: Any, index: int) -> Any:
    try:
        return convert(value)
    except DataError as error:
        raise _within(f"[{index}]", error) from None


def _read_map(convert: Convert, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _expected("a map", value)
    return {key: _item_of_map(convert, key, each) for key, each in value.items()}


def _item_of_map(convert: Convert, key: str, value: Any) -> Any:
    try:
        return convert(value)
    except DataError as error:
        raise _within(key, error) from None


def _read_union(branches: dict[str, Convert], value: Any) -> Any:
    if value is None:
        if "null" not in branches:
            raise _expected(f"one of {_listed(branches)}", value)
        return None
    if isinstance(value, dict) and len(value) == 1:
        name, inner = next(iter(value.items()))
        convert = branches.get(name)
        if convert is not None:
            return None if name == "null" else (name, convert(inner))
    first = next((each for each in branches if each != "null"), "null")
    raise DataError(
        f"Unknown union branch: {_shown(value)} must be an object with the name of the branch, "
        f'such as {{"{first}": ...}} (branches: {_listed(branches)})'
    )


def _read_enum(name: str, symbols: frozenset[str], value: Any) -> str:
    if not isinstance(value, str):
        raise _expected(f"a symbol of enum {name}", value)
    if value not in symbols:
        raise DataError(f"Unknown symbol in enum {name}: {_shown(value)}")
    return value


def _read_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _expected("bytes (a string)", value)
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise DataError(
            f"{_shown(value)} is not bytes: every character stands for one byte, \\u0000 to \\u00ff"
        ) from None


def _read_fixed(schema: Fixed, value: Any) -> bytes:
    data = _read_bytes(value)
    if len(data) != schema.size:
        raise DataError(
            f"Expected fixed length {schema.size}, but got {len(data)} (fixed {schema.name.full})"
        )
    return data


def _read_whole(kind: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _expected(f"{'an' if kind == 'int' else 'a'} {kind}", value)
    low, high = _RANGES[kind]
    if not low <= value <= high:
        raise DataError(f"{value} is out of range of {kind}")
    return value


def _read_float(value: Any) -> float:
    if isinstance(value, str) and value in _NAMED_NUMBERS:
        return _NAMED_NUMBERS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _expected("a number", value)
    try:
        return float(value)
    except OverflowError:
        raise DataError(f"{_shown(value)} is out of range of double") from None


def _read_exactly(kind: type, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise _expected(name, value)
    return value


def _read_null(value: Any) -> None:
    if value is not None:
        raise _expected("null", value)


_READ_PRIMITIVES: Final[dict[str, Convert]] = {
    "null": _read_null,
    "boolean": partial(_read_exactly, bool, "a boolean"),
    "int": partial(_read_whole, "int"),
    "long": partial(_read_whole, "long"),
    "float": _read_float,
    "double": _read_float,
    "bytes": _read_bytes,
    "string": partial(_read_exactly, str, "a string"),
}


class _Writing:
    """The other way round."""

    def __init__(self) -> None:
        self._records: dict[int, Convert] = {}

    def of(self, schema: AvroType) -> Convert:
        match schema:
            case Primitive():
                return _WRITE_PRIMITIVES.get(schema.kind, _same)
            case Enum():
                return _same
            case Fixed():
                return _write_bytes
            case Array():
                convert = self.of(schema.items)
                return lambda value: [convert(each) for each in value]
            case Map():
                inner = self.of(schema.values)
                return lambda value: {key: inner(each) for key, each in value.items()}
            case Union():
                branches = {full_name(each): self.of(each) for each in schema.branches}
                return partial(_write_union, branches)
            case Record():
                return self._record(schema)

    def _record(self, schema: Record) -> Convert:
        found = self._records.get(id(schema))
        if found is None:
            fields: list[tuple[str, Convert]] = []

            def write(value: Any) -> dict[str, Any]:
                return {name: convert(value[name]) for name, convert in fields}

            found = self._records[id(schema)] = write
            fields += [(each.name, self.of(each.type)) for each in schema.fields]
        return found


def _write_union(branches: dict[str, Convert], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        name, value = value
        return {name: branches[name](value)}
    for name in _candidates(value):
        if name in branches:
            return {name: branches[name](value)}
    raise DataError(f"{_shown(value)} is not a value of a union of {_listed(branches)}")


def _candidates(value: Any) -> tuple[str, ...]:
    """The unnamed branches that a value may belong to; named types come as pairs."""
    match value:
        case bool():
            return ("boolean",)
        case int():
            low, high = _RANGES["int"]
            return ("int", "long") if low <= value <= high else ("long",)
        case float():
            return ("double", "float")
        case str():
            return ("string",)
        case bytes():
            return ("bytes",)
        case list():
            return ("array",)
        case dict():
            return ("map",)
        case _:
            return ()


def _same(value: Any) -> Any:
    return value


def _write_bytes(value: Any) -> str:
    return bytes(value).decode("latin-1")


def _write_float(value: Any) -> Any:
    return shortest_float32(value) if math.isfinite(value) else _write_double(value)


def _write_double(value: Any) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_WRITE_PRIMITIVES: Final[dict[str, Convert]] = {
    "bytes": _write_bytes,
    "float": _write_float,
    "double": _write_double,
}


def _expected(what: str, value: Any) -> DataError:
    return DataError(f"Expected {what}, but got {_shown(value)}")


def _within(place: str, error: DataError) -> DataError:
    return DataError(f"{place}: {error}")


def _listed(branches: dict[str, Convert]) -> str:
    return ", ".join(branches)


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else f"a JSON {_KINDS[type(value)]}"
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."


_KINDS: Final = {dict: "object", list: "array"}
