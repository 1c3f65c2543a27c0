"""Random cases for Connect's values and transforms: texts, JSON with and without schemas, and
transforms with settings that are right, wrong or old. A seed gives the same cases again."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

__all__ = ["RandomCases"]

_ATOMS = (
    *("1", "-1", "0", "00", "1.5", "1e5", "-0", "+1", ".5", "5.", "true", "false", "null", "True"),
    *("abc", '"a b"', '"a\\"b"', "'x'", "2019-08-23", "2019-08-23T14:34:54.346Z", "14:34:54.346Z"),
    *("127", "128", "32768", "2147483648", "9223372036854775808", "99999999999999999999999", "NaN"),
    *("1f", "0x1F", "1_000", "\\", '"', "[", "]", "{", "}", ",", ":", " ", "", "é", "1 2", "{}"),
    *("[]", "-", "--1", '""', "a,b", "a:b"),
)
#: Lists and maps are no keys in Python, so such texts stay texts.
_KEYS = tuple(each for each in _ATOMS if not set(each) & set("[]{}"))
_TEXTS = ("", "x", "1", "true", "12.5", "2019-08-23", "2019-08-23T14:34:54.346Z", " 7 ", "é中")
_PLAIN: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -5, 127, 128, 32768, 2**31, 2**53, 2**63 - 1, 1.5, -2.25, 1e300),
    *("", "x", "1", "true", "12.5", "1566570894346", 1566570894346, " 7 "),
)
_NAMES = ("a", "b", "c", "d", "e.f")
_FIELDS = ("a", "b", "c", "d", "e.f", "a.b", "`e.f`", "zz")
_TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes")
_DATA = "org.apache.kafka.connect.data."
_LOGICAL: dict[str, dict[str, Any]] = {
    "Decimal": {"type": "bytes", "parameters": {"scale": "2"}},
    "Date": {"type": "int32"},
    "Time": {"type": "int32"},
    "Timestamp": {"type": "int64"},
}
_LOGICAL_VALUES: dict[str, tuple[Any, ...]] = {
    "Decimal": ("AQ==", "/w==", "AAAB", 1.5, "1.5", 7),
    "Date": (0, 1, -1, 18000, 2932896, -719162),
    "Time": (0, 1, 86399999, 45000000),
    "Timestamp": (0, -1, 1566570894346, 253402300799999, -62135596800000),
}


class RandomCases:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self) -> dict[str, Any]:
        at = self._random.random()
        if at < 0.25:
            return {"kind": "parse", "text": self._text(0)}
        return self._json() if at < 0.5 else self._transform()

    def _is(self, chance: float) -> bool:
        return self._random.random() < chance

    # Texts.

    def _text(self, depth: int) -> str:
        choose, at = self._random.choice, self._random.random()
        if depth > 2 or at < 0.5:
            return str(choose(_ATOMS))
        count = range(self._random.randint(0, 3))
        if at < 0.7:
            inner = choose((",", " , ")).join(self._text(depth + 1) for _ in count)
            return f"[{inner}{choose((']', ']', ']', ''))}"
        if at < 0.9:
            pairs = [f"{choose(_KEYS)}:{self._text(depth + 1)}" for _ in count]
            return f"{{{choose((',', ', ')).join(pairs)}{choose(('}', '}', '}', ''))}"
        return choose((" ", "", "\n")) + self._text(depth + 1) + choose((" ", ""))

    # JSON.

    def _json(self) -> dict[str, Any]:
        config: dict[str, str] = {}
        if self._is(0.3):
            config["schemas.enable"] = "false"
        if self._is(0.4):
            config["decimal.format"] = self._random.choice(("NUMERIC", "BASE64", "numeric"))
        if self._is(0.3):
            config["replace.null.with.default"] = "false"
        if "schemas.enable" in config:
            return {"kind": "json", "text": json.dumps(self._plain(0)), "config": config}
        schema = self._schema(0, is_struct=self._is(0.6))
        text = json.dumps({"schema": schema, "payload": self._value(schema, wild=True)})
        return {"kind": "json", "text": text, "config": config}

    def _plain(self, depth: int) -> Any:
        at = self._random.random()
        if depth == 0 or (depth < 3 and at < 0.2):
            names = self._random.sample(_NAMES, self._random.randint(0, 4))
            return {name: self._plain(depth + 1) for name in names}
        if depth < 3 and at < 0.3:
            return [self._plain(depth + 1) for _ in range(self._random.randint(0, 3))]
        return self._random.choice(_PLAIN)

    def _schema(self, depth: int, *, is_struct: bool = False) -> dict[str, Any]:
        at = self._random.random()
        made: dict[str, Any]
        if is_struct or (depth < 3 and at < 0.25):
            names = self._random.sample(_NAMES, self._random.randint(0, 4))
            fields = [{**self._schema(depth + 1), "field": name} for name in names]
            made = {"type": "struct", "fields": fields}
        elif depth < 3 and at < 0.35:
            made = {"type": "array", "items": self._schema(depth + 1)}
        elif depth < 3 and at < 0.45:
            key = self._random.choice(("string", "int32"))
            made = {"type": "map", "keys": {"type": key}, "values": self._schema(depth + 1)}
        elif at < 0.6:
            name = self._random.choice(tuple(_LOGICAL))
            made = {**_LOGICAL[name], "name": _DATA + name, "version": 1}
        else:
            kinds = ("boolean", "int8", "int16", "int32", "int64", "float", "double", "string")
            made = {"type": self._random.choice((*kinds, "bytes"))}
            extras = {"name": "my.Name", "doc": "d", "version": 2, "parameters": {"p": "q"}}
            made |= {name: each for name, each in extras.items() if self._is(0.1)}
        if self._is(0.4):
            made["optional"] = self._is(0.7)
        # Kafka refuses its own structs as defaults.
        if self._is(0.15) and "struct" not in json.dumps(made):
            default = self._value(made, wild=False)
            made |= {} if default is None else {"default": default}
        if self._is(0.02):
            made["type"] = self._random.choice(("int", "float32", "nope", None, 5))
        return made

    def _value(self, schema: dict[str, Any], *, wild: bool) -> Any:
        choose = self._random.choice
        if wild and self._is(0.04):
            return choose((None, 1, "x", 1.5, [], {}, True, "AQI=", -5, 300, 70000))
        if (schema.get("optional") or "default" in schema) and self._is(0.3):
            return None
        if (name := schema.get("name", "").removeprefix(_DATA)) in _LOGICAL_VALUES:
            return choose(_LOGICAL_VALUES[name])
        count = range(self._random.randint(0, 2))
        match schema.get("type"):
            case "struct":
                return {
                    each["field"]: self._value(each, wild=wild)
                    for each in schema["fields"]
                    if not self._is(0.05)
                }
            case "array":
                return [self._value(schema["items"], wild=wild) for _ in count]
            case "map" if schema["keys"]["type"] == "string":
                return {f"k{each}": self._value(schema["values"], wild=wild) for each in count}
            case "map":
                return [[each, self._value(schema["values"], wild=wild)] for each in count]
        return self._primitive(schema.get("type"))

    def _primitive(self, kind: Any) -> Any:
        choose, between = self._random.choice, self._random.randint
        makers: dict[Any, Callable[[], Any]] = {
            "boolean": lambda: self._is(0.5),
            "int8": lambda: between(-128, 127),
            "int16": lambda: between(-32768, 32767),
            "int32": lambda: choose((0, -1, 2**31 - 1, -(2**31), between(-9999, 9999))),
            "int64": lambda: choose((0, 2**63 - 1, -(2**63), between(-(10**12), 10**12))),
            "float": lambda: choose((0.0, 1.5, -2.25, 3.1415927, 1e10, 3)),
            "double": lambda: choose((0.0, 1.5, -2.25, 3.141592653589793, 1e300, 5)),
            "string": lambda: choose(_TEXTS),
            "bytes": lambda: base64.b64encode(self._random.randbytes(between(0, 4))).decode(),
        }
        return makers[kind]() if kind in makers else None

    # Transforms.

    def _transform(self) -> dict[str, Any]:
        name, config = self._random.choice(_TRANSFORMS)(self._random)
        schemas = self._is(0.6)
        return {
            "kind": "smt",
            "smt": name,
            "config": config,
            "schemas": str(schemas).lower(),
            "key": self._part(schemas),
            "value": self._part(schemas),
            "topic": self._random.choice(("topic", "t", "x.y")),
            "timestamp": self._random.choice((None, 0, 1566570894346)),
        }

    def _part(self, schemas: bool) -> str | None:
        if self._is(0.07):
            return None
        if not schemas:
            return json.dumps(self._plain(0))
        schema = self._schema(0, is_struct=self._is(0.85))
        return json.dumps({"schema": schema, "payload": self._value(schema, wild=False)})


_Made = tuple[str, dict[str, str]]
_Make = Callable[[random.Random], _Made]


def _for_part(name: str, *configs: dict[str, str]) -> _Make:
    """Of the key or the value, with one of the configurations and some of the shared settings."""

    def make(numbers: random.Random) -> _Made:
        config = dict(numbers.choice(configs))
        if numbers.random() < 0.2:
            config["replace.null.with.default"] = numbers.choice(("true", "false"))
        if numbers.random() < 0.2:
            config["field.syntax.version"] = numbers.choice(("V1", "V2", "v2", "V3"))
        return name + numbers.choice(("$Value", "$Value", "$Key")), config

    return make


def _whole(name: str, *configs: dict[str, str]) -> _Make:
    return lambda numbers: (name, dict(numbers.choice(configs)))


def _cast(numbers: random.Random) -> _Made:
    fields = numbers.sample(_FIELDS[:4], numbers.randint(1, 3))
    specs = [",".join(f"{each}:{numbers.choice(_TYPES)}" for each in fields)]
    specs += [*_TYPES[:8], "", "a", "a:", "a:b:c", "a:nope", "a:int8,int16"]
    weights = [16, *[1] * (len(specs) - 1)]
    return f"Cast{numbers.choice(('$Value', '$Key'))}", {"spec": numbers.choices(specs, weights)[0]}


def _timestamps(numbers: random.Random) -> _Made:
    targets = ("string", "unix", "Date", "Time", "Timestamp", "nope")
    config = {"target.type": numbers.choice(targets), "field": numbers.choice(("a", "b", "c", ""))}
    if numbers.random() < 0.7:
        formats = ("yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "", "EEE MMM dd", "bad'")
        config["format"] = numbers.choice(formats)
    if numbers.random() < 0.4:
        units = ("seconds", "milliseconds", "microseconds", "nanoseconds", "hours")
        config["unix.precision"] = numbers.choice(units)
    return f"TimestampConverter{numbers.choice(('$Value', '$Key'))}", config


_TRANSFORMS: tuple[_Make, ...] = (
    _cast,
    _timestamps,
    _for_part("ExtractField", *({"field": each} for each in _FIELDS)),
    _for_part("Flatten", {}, {"delimiter": "_"}, {"delimiter": ""}),
    _for_part(
        "HeaderFrom",
        {"fields": "a", "headers": "h", "operation": "move"},
        {"fields": "a", "headers": "h", "operation": "copy"},
        {"fields": "a,b", "headers": "h", "operation": "copy"},
        {"fields": "", "headers": "", "operation": "move"},
    ),
    _for_part("HoistField", {"field": "m"}, {}),
    _for_part(
        "InsertField",
        {"static.field": "s!", "static.value": "v"},
        {"static.field": "a", "static.value": "v"},
        {"topic.field": "t!", "partition.field": "p", "timestamp.field": "ts?"},
        {"offset.field": "o"},
        {},
    ),
    _for_part(
        "MaskField",
        {"fields": "a,b"},
        {"fields": "zz"},
        {"fields": ""},
        *({"fields": "a,b,c", "replacement": each} for each in ("x", "1", "1.5", "true")),
    ),
    _for_part(
        "ReplaceField",
        {"exclude": "a,b"},
        {"include": "a,c"},
        {"renames": "a:x,b:y"},
        {"exclude": "a", "renames": "b:a"},
        {"renames": "a"},
    ),
    _for_part(
        "SetSchemaMetadata", {"schema.name": "N"}, {"schema.version": "7"}, {"schema.version": "x"}
    ),
    _whole(
        "TimestampRouter",
        {},
        {"topic.format": "foo-${timestamp}", "timestamp.format": "yyyyMM"},
        {"timestamp.format": "w-Y-D"},
    ),
    _whole("ValueToKey", {"fields": "a"}, {"fields": "a,b"}, {"fields": "zz"}, {"fields": ""}),
    _whole(
        "RegexRouter",
        {"regex": "(t)(.*)", "replacement": "$2-$1"},
        {"regex": "(?<n>t).*", "replacement": "${n}"},
        {"regex": "t.*", "replacement": "\\$x"},
        {"regex": "t+?", "replacement": "$3"},
        {"regex": "(", "replacement": ""},
    ),
    _whole(
        "InsertHeader", *({"header": "h", "value.literal": each} for each in ("1", "x", "[1,2]"))
    ),
)
