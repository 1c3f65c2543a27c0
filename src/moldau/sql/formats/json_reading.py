"""JSON to rows, by the rules of ksqlDB's own deserializer.

Names match in their own case, else in capitals. Numbers and texts convert into one another, an
object or array in a STRING column is kept as text. Most records need none of that: a reader that
takes exact types only is tried first, and what it refuses is read again by the rules.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data.json_text import compact
from moldau.sql.formats.errors import Misfit
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
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import decimals
from moldau.sql.values.arithmetic import base_name
from moldau.sql.values.casts import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    parse_int,
    parse_long,
    wrap_int,
    wrap_long,
)

_DAY_MS = 86_400_000
_SPACE = " \t\n\r"
Read = Callable[[Any], Any]


def _refuse(constant: str) -> Any:
    raise ValueError(f"Unrecognized token '{constant}'")


_EXACT = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)
_QUICK = json.JSONDecoder(parse_constant=_refuse)


def parse(data: bytes, decoder: json.JSONDecoder = _EXACT) -> Any:
    """The first JSON value; what follows it is not looked at, as with Jackson."""
    try:
        text = data.decode()
        start = 0
        while text[start : start + 1] and text[start] in _SPACE:
            start += 1
        return decoder.raw_decode(text, start)[0]
    except (ValueError, ArithmeticError) as error:
        raise Misfit(f"{error}") from None
    except RecursionError:
        raise Misfit("JSON is nested too deeply") from None


def row_reader(sql_type: StructType) -> Callable[[bytes], tuple[Any, ...]]:
    """Bytes to the tuple of the fields; `Misfit` if they are not such an object."""
    return _reader(sql_type)


def value_reader(sql_type: SqlType) -> Callable[[bytes], Any]:
    """Bytes to a value of the type."""
    return _reader(sql_type)


def _reader(sql_type: SqlType) -> Callable[[bytes], Any]:
    quick, careful = _quick(sql_type), by_rules(sql_type)
    decoder = _EXACT if _has_decimal(sql_type) else _QUICK
    # The scanner in C, without what the decoder does about space around a document.
    scan = decoder.scan_once  # type: ignore[attr-defined]

    def read(data: bytes) -> Any:
        try:
            text = data.decode()
            value, end = scan(text, 0)
            if end != len(text):
                raise _NotQuick
            return quick(value)
        except Exception:
            # Not exactly what was expected: the rules say what it is, or what is wrong.
            return careful(parse(data))

    return read


def _has_decimal(sql_type: SqlType) -> bool:
    match sql_type:
        case DecimalType():
            return True
        case ArrayType():
            return _has_decimal(sql_type.item)
        case MapType():
            return _has_decimal(sql_type.value)
        case StructType():
            return any(_has_decimal(each) for _, each in sql_type.fields)
        case _:
            return False


# The quick way: generated source that raises for anything unusual.


class _NotQuick(Exception):
    """Read this by the rules instead."""


def _quick_bytes(value: str) -> bytes:
    if type(value) is not str:
        raise _NotQuick
    return base64.b64decode(value, validate=True)


class _Generator:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {"_NotQuick": _NotQuick, "_bytes": _quick_bytes}
        self.lines: list[str] = []
        self._count = 0

    def check(self, sql_type: SqlType, name: str, indent: str) -> None:
        """Source that checks or converts the value in `name`, unless it is None."""
        add = self.lines.append
        add(f"{indent}if {name} is not None:")
        inner = indent + "    "
        if sql_type in _RANGES:
            low, high = _RANGES[sql_type]
            add(f"{inner}if type({name}) is not int or not {low} <= {name} <= {high}:")
            add(f"{inner}    raise _NotQuick")
        elif sql_type is STRING or sql_type is BOOLEAN:
            add(f"{inner}if type({name}) is not {'str' if sql_type is STRING else 'bool'}:")
            add(f"{inner}    raise _NotQuick")
        elif sql_type is DOUBLE:
            add(f"{inner}if type({name}) is not float:")
            add(f"{inner}    if type({name}) is bool or type({name}) is str:")
            add(f"{inner}        raise _NotQuick")
            add(f"{inner}    {name} = float({name})")
        elif sql_type is BYTES:
            add(f"{inner}{name} = _bytes({name})")
        else:
            self._count += 1
            helper = f"_read_{self._count}"
            self.names[helper] = _quick_nested(sql_type)
            add(f"{inner}{name} = {helper}({name})")


_RANGES = {
    INTEGER: (INT_MIN, INT_MAX),
    BIGINT: (LONG_MIN, LONG_MAX),
    DATE: (INT_MIN, INT_MAX),
    TIME: (0, _DAY_MS),
    TIMESTAMP: (LONG_MIN, LONG_MAX),
}


def _quick_nested(sql_type: SqlType) -> Read:
    match sql_type:
        case DecimalType():
            return _quick_decimal(sql_type)
        case ArrayType():
            item = _quick(sql_type.item)

            def read_array(value: Any) -> list[Any]:
                if type(value) is not list:
                    raise _NotQuick
                return [item(each) for each in value]

            return read_array
        case MapType():
            entry = _quick(sql_type.value)

            def read_map(value: Any) -> dict[str, Any]:
                if type(value) is not dict:
                    raise _NotQuick
                return {key: entry(each) for key, each in value.items()}

            return read_map
        case StructType():
            return _quick(sql_type)
        case _:
            raise ValueError(f"JSON has no {sql_type}")


def _quick_decimal(sql_type: DecimalType) -> Read:
    def read(value: Any) -> Decimal:
        if type(value) is not Decimal and type(value) is not int:
            raise _NotQuick
        return decimals.ensure_fit(Decimal(value), sql_type)

    return read


def _quick(sql_type: SqlType) -> Read:
    generator = _Generator()
    if not isinstance(sql_type, StructType):
        generator.check(sql_type, "value", "    ")
        body = "\n".join(generator.lines)
        return _function(f"def read(value):\n{body}\n    return value\n", generator.names)
    if not sql_type.fields:
        return lambda value: ()
    places = [f"v{index}" for index in range(len(sql_type.fields))]
    names = [name for name, _ in sql_type.fields]
    exact = "\n".join(
        f"        {place} = value[{name!r}]" for place, name in zip(places, names, strict=True)
    )
    loose = "\n".join(
        f"        {place} = value[{name!r}] if {name!r} in value else capitals.get({name!r})"
        for place, name in zip(places, names, strict=True)
    )
    for place, (_, each) in zip(places, sql_type.fields, strict=True):
        generator.check(each, place, "    ")
    source = (
        "def read(value):\n"
        "    if value is None:\n        return None\n"
        "    if type(value) is not dict:\n        raise _NotQuick\n"
        f"    try:\n{exact}\n"
        "    except KeyError:\n"
        "        capitals = {key.upper(): each for key, each in value.items()}\n"
        f"{loose}\n" + "\n".join(generator.lines) + f"\n    return ({', '.join(places)},)\n"
    )
    return _function(source, generator.names)


def _function(source: str, names: dict[str, Any]) -> Read:
    scope = dict(names)
    exec(compile(source, "<json reader>", "exec"), scope)  # source is made of types alone
    made: Read = scope["read"]
    return made


# By the rules.

_NODES = {
    bool: "BooleanNode",
    str: "TextNode",
    int: "IntNode",
    Decimal: "DecimalNode",
    dict: "ObjectNode",
    list: "ArrayNode",
}


def _wrong(value: Any, wanted: SqlType) -> Misfit:
    source = _NODES.get(type(value), type(value).__name__)
    if isinstance(value, int) and not isinstance(value, bool) and not INT_MIN <= value <= INT_MAX:
        source = "LongNode" if LONG_MIN <= value <= LONG_MAX else "BigIntegerNode"
    shown = str(wanted).replace("`", "")
    return Misfit(f"Can't convert type. sourceType: {source}, requiredType: {shown}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _integer(wanted: SqlType, wrap: Callable[[int], int], parse_text: Callable[[str], int]) -> Read:
    def read(value: Any) -> int:
        if _is_number(value):
            return wrap(int(value))
        if isinstance(value, str):
            try:
                return parse_text(_untrimmed(value))
            except Exception:
                raise Misfit(
                    f"Can't coerce string to type. targetType: {base_name(wanted)}"
                ) from None
        raise _wrong(value, wanted)

    return read


def _untrimmed(text: str) -> str:
    if text != text.strip():
        raise ValueError(text)
    return text


def _double(value: Any) -> float:
    if _is_number(value):
        return float(value)
    if isinstance(value, str):
        named = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value)
        try:
            return float(value.strip()) if named is None and "_" not in value else named or math.nan
        except ValueError:
            raise Misfit("Can't coerce string to type. targetType: DOUBLE") from None
    raise _wrong(value, DOUBLE)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(value, BOOLEAN)


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join('null' if each is None else _string(each) for each in value)}]"
    return compact(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong(value, BYTES)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit(f"Value is not a valid Base64 encoded string: {value}") from None


def _decimal(wanted: DecimalType) -> Read:
    def read(value: Any) -> Decimal:
        if _is_number(value):
            return _fitted(Decimal(value), wanted)
        if isinstance(value, str):
            return _fitted(decimals.from_text(value), wanted)
        raise _wrong(value, wanted)

    return read


def _fitted(value: Decimal, wanted: DecimalType) -> Decimal:
    return decimals.ensure_fit(value, wanted)


def _time(value: int) -> int:
    if not 0 <= value <= _DAY_MS:
        raise Misfit(
            f"Time values must use number of milliseconds greater than 0 and less than {_DAY_MS}."
        )
    return value


_TIME = _integer(TIME, wrap_long, parse_long)
_RULES: dict[SqlType, Read] = {
    BOOLEAN: _boolean,
    INTEGER: _integer(INTEGER, wrap_int, parse_int),
    BIGINT: _integer(BIGINT, wrap_long, parse_long),
    DOUBLE: _double,
    STRING: _string,
    BYTES: _bytes,
    DATE: _integer(DATE, wrap_long, parse_long),
    TIME: lambda value: _time(_TIME(value)),
    TIMESTAMP: _integer(TIMESTAMP, wrap_long, parse_long),
}


def by_rules(sql_type: SqlType) -> Read:
    """A parsed JSON value, with Decimals for fractions, to a value of the type; None stays None."""
    match sql_type:
        case DecimalType():
            read = _decimal(sql_type)
        case ArrayType():
            read = _array(sql_type)
        case MapType():
            read = _map(sql_type)
        case StructType():
            read = _struct(sql_type)
        case _:
            read = _RULES[sql_type]

    def guarded(value: Any) -> Any:
        if value is None:
            return None
        try:
            return read(value)
        except Misfit:
            raise
        except Exception as error:
            raise Misfit(str(error)) from None

    return guarded


def _array(sql_type: ArrayType) -> Read:
    item = by_rules(sql_type.item)

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(value, sql_type)
        found: list[Any] = []
        for index, each in enumerate(value):
            try:
                found.append(item(each))
            except Misfit as misfit:
                raise misfit.within(f"[{index}]") from None
        return found

    return read


def _map(sql_type: MapType) -> Read:
    entry = by_rules(sql_type.value)

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(value, sql_type)
        found: dict[str, Any] = {}
        for key, each in value.items():
            try:
                found[key] = entry(each)
            except Misfit as misfit:
                raise misfit.within(f".{key}.value") from None
        return found

    return read


def _struct(sql_type: StructType) -> Read:
    fields = [(name, by_rules(each)) for name, each in sql_type.fields]

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, dict):
            raise _wrong(value, sql_type)
        capitals = {key.upper(): each for key, each in value.items()}
        found: list[Any] = []
        for name, convert in fields:
            try:
                found.append(convert(value[name] if name in value else capitals.get(name)))
            except Misfit as misfit:
                raise misfit.within(f".{name}") from None
        return tuple(found)

    return read
