"""Cases for Connect's transforms, predicates and converters that combine every type with every
option, written as the shared vectors write them."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from typing import Any

__all__ = ["all_cases"]

Case = dict[str, Any]

_DATA = "org.apache.kafka.connect.data."
_AT = 1566570894346


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


DECIMAL = {"type": "bytes", "name": f"{_DATA}Decimal", "version": 1, "parameters": {"scale": "2"}}
DATE = {"type": "int32", "name": f"{_DATA}Date", "version": 1}
TIME = {"type": "int32", "name": f"{_DATA}Time", "version": 1}
TIMESTAMP = {"type": "int64", "name": f"{_DATA}Timestamp", "version": 1}
STRUCT = {"type": "struct", "fields": [{"field": "x", "schema": "int32?"}]}
ARRAY = {"type": "array", "items": "string"}
MAP = {"type": "map", "keys": "string", "values": "int32"}

#: Every type of Connect with values at its edges.
TYPED: list[tuple[Any, list[Any]]] = [
    ("int8", [0, 1, -128, 127]),
    ("int16", [0, 300, -32768]),
    ("int32", [0, -1, 70000, 2**31 - 1, -(2**31)]),
    ("int64", [0, 1, 2**63 - 1, -(2**63), _AT]),
    ("float32", [0.0, 1.5, -1.5, 3.4e38, 1e-5, 16777216.0, "NaN", "Infinity"]),
    ("float64", [0.0, 1.5, -2.5, 1e300, 1e-7, 123456789.0, 300.7, "NaN", "-Infinity"]),
    ("boolean", [True, False]),
    (
        "string",
        ["", "42", "-1", "+7", "1.5", "1e3", "true", "TRUE", "no", "128", "99999999999999999999",
         " 5", "0x1", "1d", "2f", "NaN", "Infinity", "0x1p3", "1.", ".5", "1_0", "٣"],
    ),
    ("bytes", ["", _b64(b"\x01\xff")]),
    (DECIMAL, ["1.50", "-300.25", "0.00", "99999999999.99"]),
    (DATE, [0, 86400000 * 18131, -86400000]),
    (TIME, [0, 45296123]),
    (TIMESTAMP, [0, _AT, -1]),
    (ARRAY, [[], ["a"]]),
    (MAP, [{}, {"a": 1}]),
    (STRUCT, [{"x": 1}, {"x": None}]),
]  # fmt: skip
UNTYPED: list[Any] = [
    {"$int8": 5}, {"$int16": 300}, {"$int32": 70000}, 5, {"$float32": 1.5}, 2.5, True, False, "42",
    "x", "true", {"$bytes": _b64(b"ab")}, {"$decimal": "1.50"}, {"$date_ms": _AT}, [1, "a"], {},
    {"a": 1}, None,
]  # fmt: skip
TYPES = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes"]


def _optional(schema: Any) -> Any:
    if isinstance(schema, str):
        return f"{schema}?"
    return {**schema, "optional": True}


def data(schema: Any, value: Any) -> Case:
    return {"schema": schema, "value": value}


def struct_of(**fields: tuple[Any, Any]) -> Case:
    made = [{"field": name, "schema": schema} for name, (schema, _) in fields.items()]
    values = {name: value for name, (_, value) in fields.items()}
    return data({"type": "struct", "name": "N", "version": 1, "fields": made}, values)


def _record(part: str, content: Case | None, **more: Any) -> Case:
    other = "value" if part == "key" else "key"
    return {
        "topic": "topic",
        "partition": 0,
        part: content,
        other: data("string", "other"),
        "timestamp": _AT,
        **more,
    }


def _change(smt: str, config: dict[str, str], content: Case | None, **more: Any) -> Case:
    part = "key" if smt.endswith("$Key") else "value"
    record = _record(part, content, **more)
    return {"kind": "record", "smt": smt, "config": config, "input": record}


def _contents() -> Iterator[Case]:
    for schema, values in TYPED:
        for value in values:
            yield data(schema, value)
        yield data(_optional(schema), None)
    for value in UNTYPED:
        yield data(None, value)


def _casts() -> Iterator[Case]:
    for content, target in itertools.product(_contents(), TYPES):
        yield _change("Cast$Value", {"spec": target}, content)
    for (schema, values), target in itertools.product(TYPED, TYPES[:-1]):
        inner = struct_of(a=(schema, values[-1]), b=("string", "s"))
        yield _change("Cast$Key", {"spec": f"a:{target}"}, inner)
        with_default = struct_of(a=(_with_default(schema, values[0]), None), b=("string", "s"))
        for replace in ("true", "false"):
            config = {"spec": f"a:{target}", "replace.null.with.default": replace}
            yield _change("Cast$Value", config, with_default)
    specs = ("a:INT8", " a : int8 ", "a:int8,a:int16", "int8,int16", ":", "a:struct", "a:date", ",")
    for spec in specs:
        yield _change("Cast$Value", {"spec": spec}, struct_of(a=("int32", 1)))


def _with_default(schema: Any, default: Any) -> Any:
    base = {"type": schema} if isinstance(schema, str) else schema
    if base["type"] in ("array", "map", "struct"):
        return {**base, "optional": True}
    return {**base, "optional": True, "default": default}


_FORMATS = (
    *("yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "yyyy-MM-dd HH:mm:ss z", "yyMMdd"),
    *("EEE, d MMM yyyy", "yyyy-MM-dd'T'HH:mm:ssXXX", "HH:mm:ss.SSS", "hh:mm a", "D-yyyy"),
    *("dd/MM/yyyy HH:mm:ss Z", "k:m", "K:m a", "u F W w", "YYYY-ww", "S"),
    *("SSSSSS", "''yyyy''", "yyyy''MM", "X", "XX", "y", "M", "L", "n", "'open"),
    *("yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSS", "zzzz", "b"),
)
_TEXTS = (
    *("2019-08-23", "2019-8-3", "2019-08-23T14:34:54.346Z", "2019-02-31", "x", "", "190823"),
    *("14:34:54.346", "02:05 PM", "02:05 pm", "Fri, 23 Aug 2019", "2019-08-23T14:34:54+02:00"),
    *("2019-08-23T14:34:54Z", "23/08/2019 14:34:54 +0200", "2019-08-23 14:34:54 GMT"),
    *("2019-08-23 14:34:54 UTC", "AD 2019", "BC 5", "2019-08-23 and more"),
    *("24:30", "235-2019", "2019-08-23 14:34:54 PST", "2019-08-23T14:34:54.3Z"),
)
_TIMES: list[tuple[Any, Any]] = [
    ("int64", _AT),
    ("int64", 0),
    ("int64", -1),
    ("int64", -86400001),
    ("int64?", None),
    ("int32", 5),
    ("string?", None),
    (DATE, 86400000 * 18131),
    (TIME, 45296123),
    (TIMESTAMP, _AT),
    (TIMESTAMP, -1),
    (_optional(TIMESTAMP), None),
    ("boolean", True),
    ("float64", 1.5),
    ("bytes", ""),
    (DECIMAL, "1.50"),
    (None, _AT),
    (None, {"$date_ms": _AT}),
    (None, None),
    (None, True),
    (None, 1.5),
    (None, [1]),
    (None, {"$decimal": "1.50"}),
]


def _timestamps() -> Iterator[Case]:
    name, targets = "TimestampConverter$Value", ("string", "unix", "Date", "Time", "Timestamp")
    for pattern, (schema, value) in itertools.product(
        _FORMATS, [("int64", _AT), ("int64", -86400001), (TIMESTAMP, 1577836799999)]
    ):
        config = {"target.type": "string", "format": pattern}
        yield _change(name, config, data(schema, value))
    for pattern, text in itertools.product(_FORMATS, _TEXTS):
        config = {"target.type": "Timestamp", "format": pattern}
        yield _change(name, config, data("string", text))
    units = (None, "seconds", "microseconds", "nanoseconds")
    for (schema, value), target, unit in itertools.product(_TIMES, targets, units):
        config = {"target.type": target, "format": "yyyy-MM-dd HH:mm:ss.SSS"}
        config |= {} if unit is None else {"unix.precision": unit}
        yield _change(name, config, data(schema, value))
        if unit is None:
            field = config | {"field": "a"}
            content = data(None, {"a": value}) if schema is None else struct_of(a=(schema, value))
            yield _change(name, field, content)
            yield _change("TimestampConverter$Key", field, data("int64", 1))
            yield _change(name, field, data(None, {"b": 1}))
            yield _change(name, field, struct_of(b=("int64", 1)))
    for config in ({}, {"target.type": "unix", "format": ""}, {"target.type": "STRING"}):
        yield _change(name, config, data("string", "2019-08-23"))


def _nested() -> Iterator[Case]:
    """Values that are looked into."""
    deep = {"type": "struct", "fields": [
        {"field": "x", "schema": {"type": "int32", "optional": True, "default": 7}},
        {"field": "y.z", "schema": "string"},
        {"field": "in", "schema": {"type": "struct", "optional": True, "fields": [
            {"field": "q", "schema": DECIMAL}]}},
    ]}  # fmt: skip
    value = {"x": None, "y.z": "v", "in": {"q": "1.50"}}
    yield struct_of(a=(deep, value), b=("int64?", None), c=(ARRAY, ["1"]), d=(MAP, {"k": 1}))
    yield struct_of(a=({**deep, "optional": True}, None), b=("string", "s"))
    yield struct_of(a=({"type": "string", "optional": True, "default": "d"}, None), b=(DATE, 0))
    yield struct_of(a=("bytes", _b64(b"x")), b=("boolean", True), c=(TIMESTAMP, _AT))
    yield struct_of(a=({"type": "map", "keys": "int32", "values": deep}, [[1, value]]))
    yield struct_of()
    yield data(None, {"a": {"x": 1, "y.z": {"q": [1, {"r": 2}]}}, "b": None, "c": {}, "d": "s"})
    yield data(None, {"a": {"$bytes": _b64(b"x")}, "b": {"$decimal": "1.5"}, "c": {"$date_ms": 0}})
    yield data(None, {"$pairs": [[1, "a"], ["b", 2]]})
    yield data(None, {})
    yield data({"type": "struct", "optional": True, "fields": []}, None)
    yield from (data("string", "s"), data("string?", None), data(ARRAY, ["a"]), data(MAP, {"a": 1}))
    yield from (data(None, "s"), data(None, [1]), data(None, None), data(None, 5))


_SETTINGS: dict[str, list[dict[str, str]]] = {
    "ExtractField": [
        {},
        {"field": ""},
        {"field": "a"},
        {"field": "zz"},
        {"field": "a.x"},
        *(
            {"field": each, "field.syntax.version": "V2"}
            for each in (
                "a.x",
                "a.`y.z`",
                "a.in.q",
                "a.zz",
                "zz.y",
                "d.k",
                "c.x",
                "`a`.x",
                "`a",
                "a..x",
            )
        ),
        {"field": "a.x", "field.syntax.version": "V2", "replace.null.with.default": "false"},
        {"field": "a", "replace.null.with.default": "false"},
        {"field": "a", "field.syntax.version": "V9"},
    ],
    "HoistField": [{}, {"field": "m"}, {"field": ""}],
    "Flatten": [{}, {"delimiter": "_"}, {"delimiter": ""}],
    "InsertField": [
        {},
        {"static.field": "s"},
        {"static.field": "s", "static.value": "v"},
        {"static.value": "v"},
        {"static.field": "a", "static.value": "v"},
        {"topic.field": "t!"},
        {"topic.field": "t?"},
        {"topic.field": ""},
        {"partition.field": "p!"},
        {"timestamp.field": "ts"},
        {"offset.field": "o"},
        {
            "topic.field": "t",
            "offset.field": "o!",
            "timestamp.field": "ts?",
            "partition.field": "p",
            "static.field": "s!",
            "static.value": "v",
        },
        {"timestamp.field": "ts", "replace.null.with.default": "false"},
    ],
    "MaskField": [
        {},
        {"fields": ""},
        {"fields": "a"},
        {"fields": "a,b,c,d"},
        {"fields": "zz"},
        {"fields": "a,b,c", "replace.null.with.default": "false"},
        {"fields": "b", "replacement": ""},
        *(
            {"fields": "b", "replacement": each}
            for each in ("x", "5", "-1.5", "true", "300", "1e2")
        ),
    ],
    "ReplaceField": [
        {},
        {"exclude": "a"},
        {"include": "a"},
        {"include": "a,zz"},
        {"renames": "a:x"},
        {"renames": "a:b"},
        {"renames": "a:x,a:y"},
        {"renames": "a"},
        {"renames": "a:"},
        {"renames": "a:b:c"},
        {"exclude": "a", "include": "a,b"},
        {"include": "a", "renames": "a:x"},
        {"blacklist": "a"},
        {"whitelist": "a"},
        {"blacklist": "a", "exclude": "b"},
        {"exclude": "", "include": ""},
        {"include": "b", "replace.null.with.default": "false"},
    ],
    "SetSchemaMetadata": [
        {},
        {"schema.name": "M"},
        {"schema.name": ""},
        {"schema.version": "7"},
        {"schema.version": "x"},
        {"schema.name": "M", "schema.version": "2", "replace.null.with.default": "false"},
    ],
    "HeaderFrom": [
        {},
        {"fields": "a", "headers": "h", "operation": "move"},
        {"fields": "a,b", "headers": "h,g", "operation": "copy"},
        {"fields": "a,b", "headers": "h,h", "operation": "move"},
        {"fields": "a,a", "headers": "h,g", "operation": "move"},
        {"fields": "zz", "headers": "h", "operation": "move"},
        {"fields": "a", "headers": "h,g", "operation": "copy"},
        {"fields": "a", "headers": "h", "operation": "COPY"},
        {"fields": "a", "headers": "h"},
        {"fields": "a", "headers": "h", "operation": "copy", "replace.null.with.default": "false"},
    ],
}
_WHOLE: dict[str, list[dict[str, str]]] = {
    "ValueToKey": [
        {},
        {"fields": ""},
        {"fields": "a"},
        {"fields": "a,b"},
        {"fields": "b,a,b"},
        {"fields": "zz"},
        {"fields": "a", "replace.null.with.default": "false"},
    ],
    "DropHeaders": [{}, {"headers": ""}, {"headers": "h"}, {"headers": "h,g"}, {"headers": "zz"}],
    "InsertHeader": [
        {},
        {"header": "n"},
        {"header": "", "value.literal": "x"},
        {"header": "n", "value.literal": ""},
        *(
            {"header": "h", "value.literal": each}
            for each in (
                "1",
                "x",
                "[1,2]",
                '{"a":1}',
                "2019-08-23",
                "null",
                " 5 ",
                "1.5",
                "99999999999",
            )
        ),
    ],
    "Filter": [{}],
    "RegexRouter": [
        {},
        {"regex": "t.*"},
        {"regex": "t.*", "replacement": ""},
        {"regex": "(to)(.*)", "replacement": "$2-$1"},
        {"regex": "(?<n>to).*", "replacement": "${n}x"},
        {"regex": "x", "replacement": "y"},
        {"regex": "(", "replacement": "y"},
        {"regex": "t.*", "replacement": "$1"},
        {"regex": "t.*", "replacement": "a\\\\b\\$"},
        {"regex": "t.*", "replacement": "${zz}"},
        {"regex": "(t)(o)?(z)?.*", "replacement": "$3x$10"},
        {"regex": "[a-z&&[^x]]+", "replacement": "y"},
        {"regex": "t\\p{Lower}+", "replacement": "y"},
        {"regex": "(?i)TOPIC", "replacement": "y"},
        {"regex": "t.*", "replacement": "$"},
        {"regex": "t.*", "replacement": "\\"},
        {"regex": "", "replacement": "y"},
        {"regex": "\\Qtopic\\E", "replacement": "y"},
        {"regex": "t++opic", "replacement": "y"},
        {"regex": "\\w*", "replacement": "$0"},
        {"regex": "topi", "replacement": "y"},
    ],
    "TimestampRouter": [
        {},
        {"topic.format": "x"},
        {"topic.format": "${topic}_${topic}_${timestamp}"},
        {"topic.format": ""},
        {"timestamp.format": "YYYY.ww"},
        {"timestamp.format": "'"},
        {"timestamp.format": ""},
        {"timestamp.format": "yyyy-MM-dd'T'HH"},
        {"timestamp.format": "nope"},
        {"topic.format": "$topic${x}"},
    ],
}
_HEADERS = [
    {"key": "h", "schema": "string", "value": "1"},
    {"key": "g", "schema": None, "value": None},
    {"key": "h", "schema": "int32", "value": 2},
]


def _shapes() -> Iterator[Case]:
    for name, configs in _SETTINGS.items():
        for config, content in itertools.product(configs, _nested()):
            yield _change(f"{name}$Value", config, content, headers=_HEADERS)
        for config in configs:
            for content in itertools.islice(_nested(), 3):
                sink = {"kind": "sink", "offset": 42}
                yield _change(f"{name}$Key", config, content, **sink)
                yield _change(f"{name}$Value", config, content, timestamp=None, **sink)
                yield _change(f"{name}$Value", config, content, timestamp=None, partition=None)
    for name, configs in _WHOLE.items():
        for config, content in itertools.product(configs, _nested()):
            yield _change(name, config, content, headers=_HEADERS)
        for config in configs:
            yield _change(name, config, data(None, {"a": 1}), timestamp=None)
            yield _change(name, config, data(None, {"a": 1}), topic="a.b-c_d")
    for schema, values in TYPED:
        mask = struct_of(a=(schema, values[-1]), b=(_optional(schema), values[0]))
        for text in (None, "5", "1.5", "x", "true", "300", "99999999999999999999"):
            config = {"fields": "a,b"} | ({} if text is None else {"replacement": text})
            yield _change("MaskField$Value", config, mask)
    for value in UNTYPED:
        for text in (None, "5", "x", "1.5"):
            config = {"fields": "a"} | ({} if text is None else {"replacement": text})
            yield _change("MaskField$Value", config, data(None, {"a": value}))


def _predicates() -> Iterator[Case]:
    settings: dict[str, list[dict[str, str]]] = {
        "HasHeaderKey": [{}, {"name": ""}, {"name": "h"}, {"name": "zz"}],
        "RecordIsTombstone": [{}, {"x": "y"}],
        "TopicNameMatches": [
            {},
            {"pattern": ""},
            {"pattern": "t.*"},
            {"pattern": "top"},
            {"pattern": "["},
        ],
    }
    records = [
        _record("value", data("string", "x"), headers=_HEADERS),
        _record("value", data("string?", None)),
        _record("value", data(None, None), topic="x"),
    ]
    for name, configs in settings.items():
        for config, record in itertools.product(configs, records):
            yield {"kind": "predicate", "predicate": name, "config": config, "input": record}


_CONVERTERS = "org.apache.kafka.connect."


def _converters() -> Iterator[Case]:
    for content in _contents():
        yield {"kind": "values_to_string", "input": content}
        yield {"kind": "connect_to_header", "input": content}
    for text in (None, "", "5", "x", "[1,2]", '{"a":1}', '"q"', "2019-08-23", "1.5", "true", " 5 "):
        yield {"kind": "header_to_connect", "input": text}
    names = [
        f"converters.{each}Converter"
        for each in ("Short", "Integer", "Long", "Float", "Double", "Boolean", "ByteArray")
    ]
    names += ["storage.StringConverter", "storage.SimpleHeaderConverter"]
    for name in names[:-1]:
        shared = {"converter": f"{_CONVERTERS}{name}", "config": {}}
        for content in _contents():
            yield {"kind": "converter_from_connect", "input": content, **shared}
        for raw in (
            b"",
            b"\x00",
            b"\x01",
            b"\x02",
            b"\x00\x05",
            b"\xff" * 4,
            b"\x7f" * 8,
            b"abc",
            b"\xc3\x28",
        ):
            yield {"kind": "converter_to_connect", "input": {"$bytes": _b64(raw)}, **shared}
        yield {"kind": "converter_to_connect", "input": None, **shared}
    yield from _json()


def _json() -> Iterator[Case]:
    options: list[dict[str, str]] = [
        {},
        {"schemas.enable": "false"},
        {"decimal.format": "NUMERIC"},
        {"decimal.format": "x"},
        {"schemas.enable": "false", "decimal.format": "numeric"},
        {"replace.null.with.default": "false"},
        {"schemas.cache.size": "0"},
        {"schemas.cache.size": "-1"},
        {"schemas.enable": "maybe"},
    ]
    shared = {"converter": f"{_CONVERTERS}json.JsonConverter"}
    contents = [*_contents(), *_nested()]
    contents += [data(_with_default(schema, values[0]), None) for schema, values in TYPED]
    for config, content in itertools.product(options, contents):
        yield {"kind": "converter_from_connect", "input": content, "config": config, **shared}


def all_cases() -> Iterator[Case]:
    yield from _casts()
    yield from _timestamps()
    yield from _shapes()
    yield from _predicates()
    yield from _converters()
