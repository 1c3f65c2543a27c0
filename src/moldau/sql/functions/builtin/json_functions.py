"""Texts that hold JSON, read as Jackson reads them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from moldau.data.json_text import compact, quoted
from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import ArgumentTypes, Evaluate, overload, scalar
from moldau.sql.functions.errors import FunctionError
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
from moldau.sql.values import texts, times
from moldau.sql.values.decimals import plain
from moldau.sql.values.doubles import double_text

_MISSING = object()
_SPACE = " \t\n\r"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)


def _parse(text: str) -> Any:
    """The first JSON value of a text; what follows it is not looked at. `_MISSING` if empty."""
    start = 0
    while start < len(text) and text[start] in _SPACE:
        start += 1
    if start == len(text):
        return _MISSING
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError, ArithmeticError):
        raise FunctionError(f"Invalid JSON format:{text}") from None


def _is_json(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return _parse(text) is not _MISSING
    except FunctionError:
        return False


def _node_text(node: Any) -> str:
    return node if isinstance(node, str) else compact(node)


def _plain_text(node: Any) -> str:
    """JSON with decimals written out, without exponents."""
    if isinstance(node, Decimal):
        return plain(node)
    if isinstance(node, dict):
        inner = (f"{quoted(key)}:{_plain_text(each)}" for key, each in node.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(_plain_text, node)) + "]"
    return compact(node)


def _array_length(text: str) -> int | None:
    node = _parse(text)
    return len(node) if isinstance(node, list) else None


def _keys(text: str) -> list[str] | None:
    node = _parse(text)
    return list(node) if isinstance(node, dict) else None


def _records(text: str) -> dict[str, str] | None:
    node = _parse(text)
    if not isinstance(node, dict):
        return None
    return {key: _node_text(each) for key, each in node.items()}


def _items(text: str) -> list[str | None]:
    node = _parse(text)
    if not isinstance(node, list):
        raise FunctionError(f"Invalid JSON format:{text}")
    return [compact(each) for each in node]


def _concat(*values: str | None) -> str | None:
    nodes: list[Any] = []
    for text in values:
        node = _MISSING if text is None else _parse(text)
        if node is _MISSING:
            return None
        nodes.append(node)
    if not nodes:
        return None
    if all(isinstance(each, dict) for each in nodes):
        merged: dict[str, Any] = {}
        for each in nodes:
            merged.update(each)
        return _plain_text(merged)
    if len(nodes) == 1:
        return _plain_text(nodes[0])
    items: list[Any] = []
    for each in nodes:
        items.extend(each if isinstance(each, list) else [each])
    return _plain_text(items)


def _bind_contains(arguments: ArgumentTypes, result: SqlType) -> Evaluate:
    wanted_type = arguments[1]

    def same_kind(node: Any) -> bool:
        if wanted_type in (INTEGER, BIGINT):
            return isinstance(node, int) and not isinstance(node, bool)
        if wanted_type is DOUBLE:
            return isinstance(node, Decimal)
        if wanted_type is STRING:
            return isinstance(node, str)
        return wanted_type is BOOLEAN and isinstance(node, bool)

    def contains(text: str | None, value: Any) -> bool:
        try:
            node = None if text is None else _parse(text)
        except FunctionError:
            return False
        if not isinstance(node, list):
            return False
        if value is None:
            return any(each is None for each in node)
        return any(same_kind(each) and _as_double(each) == value for each in node)

    return contains


def _as_double(node: Any) -> Any:
    return float(node) if isinstance(node, Decimal) else node


_SEGMENT = re.compile(r"\.([\w:@]+)|\[\"((?:[^\"\\]|\\[\"\\])*)\"\]|\[(\w+)\]")


@lru_cache(maxsize=1000)
def _path(path: str) -> tuple[str, ...]:
    if not path.startswith("$"):
        raise KsqlException(f"Invalid JSON path: '{path}'")
    tokens: list[str] = []
    position = 1
    while position < len(path):
        found = _SEGMENT.match(path, position)
        if found is None:
            raise KsqlException(f"Invalid JSON path: '{path}'")
        segment, in_quotes, subscript = found.groups()
        if in_quotes is not None:
            tokens.append(re.sub(r"\\(.)", r"\1", in_quotes))
        else:
            tokens.append(subscript if segment is None else segment)
        position = found.end()
    return tuple(tokens)


def _extract(text: str, path: str) -> str | None:
    tokens = _path(path)
    node = _parse(text)
    if node is _MISSING:
        return None if tokens else ""
    for token in tokens:
        if isinstance(node, list):
            if not re.fullmatch(r"\d+", token, re.ASCII) or int(token) >= len(node):
                return None
            node = node[int(token)]
        elif isinstance(node, dict):
            if token not in node:
                return None
            node = node[token]
        else:
            return None
    return _node_text(node)


def _nullable(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "null" if value is None else show(value)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _double(value: float) -> str:
    shown = double_text(value)
    return shown if shown[-1].isdigit() else f'"{shown}"'


_WRITERS: dict[SqlType, Callable[[Any], str]] = {
    BOOLEAN: _boolean,
    INTEGER: str,
    BIGINT: str,
    DOUBLE: _double,
    STRING: quoted,
    BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    DATE: lambda value: f'"{times.date_text(value)}"',
    TIME: lambda value: f'"{times.time_text(value)}"',
    TIMESTAMP: lambda value: f'"{times.timestamp_text(value)}"',
}


def writer(sql_type: SqlType) -> Callable[[Any], str]:
    """How a value of the type, which may be NULL, is written as JSON; names are in order."""
    match sql_type:
        case DecimalType():
            return _nullable(plain)
        case ArrayType():
            item = writer(sql_type.item)
            return _nullable(lambda value: "[" + ",".join(map(item, value)) + "]")
        case MapType():
            name, item = texts.nested_text_of(sql_type.key), writer(sql_type.value)
            return _nullable(
                lambda value: (
                    "{"
                    + ",".join(
                        f"{quoted(key)}:{item(each)}"
                        for key, each in sorted((name(key), value[key]) for key in value)
                    )
                    + "}"
                )
            )
        case StructType():
            return _struct_writer(sql_type)
        case _:
            return _nullable(_WRITERS[sql_type])


def _struct_writer(sql_type: StructType) -> Callable[[Any], str]:
    fields = sorted(
        (name, index, writer(each)) for index, (name, each) in enumerate(sql_type.fields)
    )

    def write(value: tuple[Any, ...]) -> str:
        inner = (f"{quoted(name)}:{show(value[index])}" for name, index, show in fields)
        return "{" + ",".join(inner) + "}"

    return _nullable(write)


def _bind_to_json(arguments: ArgumentTypes, result: SqlType) -> Evaluate:
    given = arguments[0]
    return (lambda value: "null") if given is None else writer(given)


FUNCTIONS = [
    scalar(
        "IS_JSON_STRING",
        "JSON",
        "Whether a text begins with a JSON value.",
        "IS_JSON_STRING('[1]') -> true",
        overload("(STRING input) -> BOOLEAN", _is_json, nulls=True),
    ),
    scalar(
        "JSON_ARRAY_CONTAINS",
        "JSON",
        "Whether a JSON array has a value.",
        "JSON_ARRAY_CONTAINS('[1, 2]', 2) -> true",
        overload("(STRING jsonArray, T val) -> BOOLEAN", bind=_bind_contains, nulls=True),
    ),
    scalar(
        "JSON_ARRAY_LENGTH",
        "JSON",
        "The number of elements of a JSON array; NULL for other JSON.",
        "JSON_ARRAY_LENGTH('[1, 2]') -> 2",
        overload("(STRING jsonArray) -> INT", _array_length),
    ),
    scalar(
        "JSON_CONCAT",
        "JSON",
        "JSON objects merged into one, or arrays and values put together in one array.",
        """JSON_CONCAT('{"a":1}', '{"b":2}') -> '{"a":1,"b":2}'""",
        overload("(STRING... jsonStrings) -> STRING", _concat, nulls=True),
    ),
    scalar(
        "extractjsonfield",
        "JSON",
        "The value at a path such as $.a[0]; text as it is, other values as JSON.",
        """EXTRACTJSONFIELD('{"a":[1]}', '$.a[0]') -> '1'""",
        overload("(STRING input, STRING path) -> STRING", _extract),
    ),
    scalar(
        "JSON_ITEMS",
        "JSON",
        "The elements of a JSON array, each as JSON.",
        "JSON_ITEMS('[1, {}]') -> ['1', '{}']",
        overload("(STRING jsonItems) -> ARRAY<STRING>", _items),
    ),
    scalar(
        "JSON_KEYS",
        "JSON",
        "The names in a JSON object; NULL for other JSON.",
        """JSON_KEYS('{"a":1}') -> ['a']""",
        overload("(STRING jsonObj) -> ARRAY<STRING>", _keys),
    ),
    scalar(
        "JSON_RECORDS",
        "JSON",
        "The names and values in a JSON object; text as it is, other values as JSON.",
        """JSON_RECORDS('{"a":1}') -> {a='1'}""",
        overload("(STRING jsonObj) -> MAP<STRING, STRING>", _records),
    ),
    scalar(
        "TO_JSON_STRING",
        "JSON",
        "Any value as JSON.",
        "TO_JSON_STRING(ARRAY[1, 2]) -> '[1,2]'",
        overload("(T input) -> STRING", bind=_bind_to_json, nulls=True),
    ),
]
