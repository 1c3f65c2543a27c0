"""Avro schemas at random, from a seed: most are valid, some nearly."""

from __future__ import annotations

import json
from random import Random
from typing import Any

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
_LOGICAL = [
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "string", "logicalType": "date"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "scale": 2},
]
_DEFAULTS = {
    "null": [None],
    "boolean": [True],
    "int": [5, -1],
    "long": [2**40],
    "float": [1, 1.5, "NaN", 0.1],
    "double": [2.5, 1e20, "-Infinity", 1e-5, 100.0],
    "bytes": ["\u00ff"],
    "string": ["", 'é"\\\n\u0001😀'],
    "array": [[]],
    "map": [{}],
    "enum": ["A"],
    "fixed": ["1234"],
    "record": [{}],
}
_PROPERTIES = ["z", "a", "logicalType", "avro.java.string", "doc", "default", "order", "scale"]
_VALUES = [1, 2.5, 1e10, 123456789.125, "date", "map", True, None, [1, {"b": 1}], {"y": 1, "x": []}]


class Schemas:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def record(self, depth: int = 0) -> dict[str, Any]:
        fields = []
        for _ in range(self._random.randrange(4)):
            field: dict[str, Any] = {"name": self._pick("abcdefgh"), "type": self.type(depth + 1)}
            if self._chance(0.35):
                field["default"] = self._default(field["type"])
            if self._chance(0.15):
                field["doc"] = self._pick(["", "x", 7])
            if self._chance(0.15):
                field["order"] = self._pick(["ascending", "descending", "ignore", "IGNORE"])
            if self._chance(0.2):
                field["aliases"] = self._pick([["a"], ["b", "c"], [], ["a", "a"]])
            fields.append(self._with_properties(field))
        return self._named({"type": self._pick(["record"] * 20 + ["error"]), "fields": fields})

    def type(self, depth: int = 0) -> Any:
        choice = self._random.random()
        if depth > 3 or choice < 0.35:
            return self._pick(PRIMITIVES)
        if choice < 0.42:
            return self._pick(["A", "B", "C", "D", "x.A", "y.B"])
        if choice < 0.5:
            return self._with_properties({"type": self._pick(PRIMITIVES)}, 0.4)
        if choice < 0.56:
            return self._with_properties(dict(self._pick(_LOGICAL)))
        if choice < 0.63:
            return self._with_properties({"type": "array", "items": self.type(depth + 1)})
        if choice < 0.70:
            return self._with_properties({"type": "map", "values": self.type(depth + 1)})
        if choice < 0.80:
            return [
                "null",
                self.type(depth + 1),
                *([self.type(depth + 1)] if self._chance(0.3) else []),
            ]
        if choice < 0.85:
            symbols = self._random.sample(["A", "B", "C", "D"], self._random.randrange(1, 4))
            return self._named({"type": "enum", "symbols": symbols})
        if choice < 0.89:
            return self._named({"type": "fixed", "size": self._pick([0, 4, 12, 16])})
        return self.record(depth)

    def changed(self, node: Any) -> Any:
        """The same schema with a few types, fields and symbols changed."""
        if isinstance(node, list):
            return [self.changed(each) for each in node]
        if not isinstance(node, dict):
            return self._pick(PRIMITIVES) if node in PRIMITIVES and self._chance(0.2) else node
        made = dict(node)
        for key in ("type", "items", "values", "fields"):
            if key in made:
                made[key] = self.changed(made[key])
        if isinstance(made.get("fields"), list) and made["fields"] and self._chance(0.3):
            made["fields"].pop(self._random.randrange(len(made["fields"])))
        elif isinstance(made.get("fields"), list) and self._chance(0.2):
            made["fields"].append({"name": self._pick("ijk"), "type": self.type(2)})
        if isinstance(made.get("symbols"), list) and self._chance(0.3):
            made["symbols"] = self._random.sample(["A", "B", "C", "D"], 2)
        return made

    def question(self) -> dict[str, Any]:
        """A schema, with what it refers to and sometimes one to compare it with."""
        schema = self.record() if self._chance(0.7) else self.type()
        references = [json.dumps(self.record(1)) for _ in range(self._pick([0, 0, 0, 1, 2]))]
        asked: dict[str, Any] = {"text": json.dumps(schema), "references": references}
        if self._chance(0.5):
            asked["references"] = []
            asked["writer"] = json.dumps(self.changed(schema))
        return asked

    def _named(self, node: dict[str, Any]) -> dict[str, Any]:
        names = ["A", "B", "C", "D"] * 5 + ["int", "x.A", "y.B", "Ä", "1a", "a-b", "", ".Q", "x..Z"]
        node["name"] = self._pick(names)
        if self._chance(0.25):
            node["namespace"] = self._pick(["x", "y", "", "x.y", "x", "1x", 5])
        if self._chance(0.2):
            node["doc"] = self._pick(["", "d", "é"])
        if self._chance(0.2):
            node["aliases"] = self._pick([["Q"], ["x.Q", "Q"], ["A"], [".W"], [], ["B", "B"]])
        if node["type"] == "enum" and self._chance(0.3):
            node["default"] = self._pick(["A", "B", 5])
        items = list(self._with_properties(node).items())
        return dict(self._random.sample(items, len(items)))

    def _default(self, node: Any) -> Any:
        if isinstance(node, list):
            return self._default(self._pick(node))
        kind = node["type"] if isinstance(node, dict) else node
        return self._pick(_DEFAULTS.get(str(kind), [{}]) if self._chance(0.9) else _VALUES)

    def _with_properties(self, node: dict[str, Any], chance: float = 0.15) -> dict[str, Any]:
        while self._chance(chance):
            node.setdefault(self._pick(_PROPERTIES), self._pick(_VALUES))
        return node

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, choices: Any) -> Any:
        return self._random.choice(choices)
