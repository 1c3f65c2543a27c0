"""Values for an Avro schema. `arg.properties` of a type say how they look, as Confluent's Datagen:

| hint | for | meaning |
|---|---|---|
| options | all | one of these values |
| range: min, max | numbers | a number from min up to, but not including, max |
| iteration: start, step, restart, initial | numbers | counts |
| regex | strings | a text that matches |
| length | strings, arrays, maps | so long: a number, or min and max |
| odds | boolean | how likely true is |

Values without a hint are random.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from moldau.connect.api.errors import ConfigError
from moldau.connect.connectors.datagen.machine.patterns import Randomness, text_maker

Make: TypeAlias = Callable[[Randomness], Any]

_NUMBERS: Final = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
}
_NAMED: Final = ("record", "enum", "fixed")


def value_maker(schema: Any) -> Make:
    """A function that makes values of an Avro schema; it remembers how far iterations are."""
    return _Builder().of(schema)


class _Builder:
    def __init__(self) -> None:
        self._named: dict[str, Make] = {}

    def of(self, node: Any) -> Make:
        if isinstance(node, list):
            choices = [self.of(each) for each in node]
            return lambda source: choices[source.randint(0, len(choices) - 1)](source)
        if isinstance(node, str):
            return self._named.get(node) or self._plain(node, {})
        if not isinstance(node, Mapping) or "type" not in node:
            raise ConfigError.invalid("schema", json.dumps(node), "is not an Avro schema")
        kind, hints = node["type"], node.get("arg.properties") or {}
        if "options" in hints:
            return _option(hints["options"])
        if not isinstance(kind, str):
            return self.of(kind)
        made = self._complex(kind, node, hints)
        if made is None:
            made = self._named.get(kind) or self._plain(kind, hints)
        if kind in _NAMED and "name" in node:
            self._named[node["name"]] = made
        return made

    def _complex(self, kind: str, node: Mapping[str, Any], hints: Mapping[str, Any]) -> Make | None:
        match kind:
            case "record":
                fields = [(field["name"], self.of(field["type"])) for field in node["fields"]]
                return lambda source: {name: make(source) for name, make in fields}
            case "enum":
                return _option(node["symbols"])
            case "array":
                items, length = self.of(node["items"]), _length(hints, 1, 5)
                return lambda source: [items(source) for _ in range(length(source))]
            case "map":
                values, length = self.of(node["values"]), _length(hints, 1, 5)
                keys = _text({})
                return lambda source: {keys(source): values(source) for _ in range(length(source))}
            case "fixed":
                size = int(node["size"])
                return lambda source: bytes(source.randint(0, 255) for _ in range(size))
            case "bytes" if node.get("logicalType") == "decimal":
                return _decimal(node, hints)
        return None

    def _plain(self, kind: str, hints: Mapping[str, Any]) -> Make:
        match kind:
            case "null":
                return lambda source: None
            case "boolean":
                odds = float(hints.get("odds", 0.5))
                return lambda source: source.random() < odds
            case "string":
                return _text(hints)
            case "bytes":
                length = _length(hints, 1, 16)
                return lambda source: bytes(source.randint(0, 255) for _ in range(length(source)))
            case "int" | "long":
                return _integer(kind, hints)
            case "float" | "double":
                return _fraction(hints)
        raise ConfigError.invalid("schema", kind, "is not a type of Avro")


def _option(options: Any) -> Make:
    if not isinstance(options, list) or not options:
        raise ConfigError.invalid("options", json.dumps(options), "must be a list of values")
    return lambda source: options[source.randint(0, len(options) - 1)]


def _length(hints: Mapping[str, Any], low: int, high: int) -> Callable[[Randomness], int]:
    given = hints.get("length")
    if isinstance(given, Mapping):
        low, high = int(given.get("min", 0)), int(given.get("max", high)) - 1
    elif given is not None:
        low = high = int(given)
    return lambda source: source.randint(low, high)


def _text(hints: Mapping[str, Any]) -> Make:
    if "regex" in hints:
        return text_maker(str(hints["regex"]))
    length = _length(hints, 4, 12)
    letters = string.ascii_lowercase
    return lambda source: "".join(letters[source.randint(0, 25)] for _ in range(length(source)))


def _integer(kind: str, hints: Mapping[str, Any]) -> Make:
    if "iteration" in hints:
        numbers = _iteration(hints["iteration"], 1)
        return lambda source: int(next(numbers))
    low, high = _NUMBERS[kind]
    if "range" in hints:
        given = hints["range"]
        low, high = int(given.get("min", low)), int(given.get("max", high + 1)) - 1
    return lambda source: source.randint(low, max(low, high))


def _fraction(hints: Mapping[str, Any]) -> Make:
    if "iteration" in hints:
        numbers = _iteration(hints["iteration"], 1.0)
        return lambda source: float(next(numbers))
    given = hints.get("range") or {}
    low, high = float(given.get("min", 0.0)), float(given.get("max", 1.0))
    return lambda source: low + source.random() * (high - low)


def _decimal(node: Mapping[str, Any], hints: Mapping[str, Any]) -> Make:
    unit = 10 ** int(node.get("scale", 0))
    largest = 10 ** int(node.get("precision", 9)) - 1
    given = hints.get("range") or {}
    low = round(float(given.get("min", 0)) * unit)
    high = max(low, round(float(given["max"]) * unit) - 1 if "max" in given else largest)

    def make(source: Randomness) -> bytes:
        number = source.randint(low, high)
        return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)

    return make


def _iteration(hints: Mapping[str, Any], step: float) -> Iterator[float]:
    start = hints["start"]
    step = hints.get("step", step)
    restart = hints.get("restart")
    value = hints.get("initial", start)
    while True:
        yield value
        value += step
        if restart is not None and (value >= restart if step > 0 else value <= restart):
            value = start
