"""Cypher for batches of records: a query of the user, or one made of a pattern.

Patterns are those of Neo4j's connector: `(:User{!userId, name, -secret})` for nodes and
`(:User{!userId})-[:BOUGHT{price}]->(:Product{!productId})` for relationships. A property with `!`
is part of the key; `*` is all properties, which is also meant if only keys are given; one with `-`
is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_NODE: Final = r"\(?\s*:?\s*(?P<labels>[\w:`]+)\s*\{(?P<fields>[^}]*)\}\s*\)?"
_ONLY_NODE: Final = re.compile(_NODE)
_RELATION: Final = re.compile(
    r"(?P<start>\(?[^()\[\]]+\)?)\s*(?P<back><)?-?\s*\[?\s*:?\s*(?P<type>\w+)\s*"
    r"(?:\{(?P<fields>[^}]*)\})?\s*\]?\s*-?(?P<forth>>)?\s*(?P<end>\(?[^()\[\]]+\)?)"
)
_NAMED: Final = re.compile(r"(?P<name>[\w.]+)(?:\s*:\s*(?P<source>[\w.]+))?")

#: What the records of a batch are called in a query, in the older and the newer connector.
OLD_HEAD: Final = (
    "UNWIND $events AS message WITH message.value AS event, message.timestamp AS timestamp "
)
NEW_HEAD: Final = (
    "UNWIND $events AS message WITH message.value AS event, "
    "message.timestamp AS __timestamp, message.header AS __header, "
    "message.key AS __key, message.value AS __value "
)


@dataclass(frozen=True, slots=True)
class Fields:
    keys: tuple[tuple[str, str], ...]
    """Name of the property, and of the field it comes from."""
    taken: tuple[tuple[str, str], ...]
    left_out: frozenset[str]
    everything: bool

    @classmethod
    def of(cls, text: str, *, needs_key: bool = True) -> Fields:
        keys, taken, left_out, everything = [], [], set(), False
        for part in filter(None, (each.strip() for each in text.split(","))):
            if part == "*":
                everything = True
                continue
            match = _NAMED.fullmatch(part.lstrip("!-"))
            if match is None:
                raise ValueError(f"{part!r} is no property")
            pair = (match["name"], match["source"] or match["name"])
            if part.startswith("!"):
                keys.append(pair)
            elif part.startswith("-"):
                left_out.add(pair[1])
            else:
                taken.append(pair)
        if needs_key and not keys:
            raise ValueError(f"{{{text}}} has no key: mark a property with !")
        if taken and left_out:
            raise ValueError(f"{{{text}}} both takes and leaves out properties: do one of them")
        return cls(tuple(keys), tuple(taken), frozenset(left_out), everything or not taken)

    def key(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return {name: record.get(source) for name, source in self.keys}

    def others(
        self, record: Mapping[str, Any], used: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The properties besides the key; `used` are fields that belong elsewhere."""
        found = {name: record[source] for name, source in self.taken if source in record}
        if self.everything:
            hidden = self.left_out | used | {source for _, source in self.keys}
            hidden |= {source for _, source in self.taken}
            found |= {name: each for name, each in record.items() if name not in hidden}
        return found


@dataclass(frozen=True, slots=True)
class NodePattern:
    labels: str
    fields: Fields

    @classmethod
    def of(cls, text: str) -> NodePattern:
        match = _ONLY_NODE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a node pattern: write (:Label{{!key, property}})")
        return cls(_labels(match["labels"]), Fields.of(match["fields"]))

    @property
    def query(self) -> str:
        keys = ", ".join(f"`{name}`: event.key.`{name}`" for name, _ in self.fields.keys)
        return (
            f"UNWIND $events AS event MERGE (n{self.labels} {{{keys}}}) SET n += event.properties"
        )

    @property
    def deletion(self) -> str:
        keys = ", ".join(f"`{name}`: event.key.`{name}`" for name, _ in self.fields.keys)
        return f"UNWIND $events AS event MATCH (n{self.labels} {{{keys}}}) DETACH DELETE n"

    def event(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return {"key": self.fields.key(record), "properties": self.fields.others(record)}


@dataclass(frozen=True, slots=True)
class RelationPattern:
    start: NodePattern
    end: NodePattern
    type: str
    fields: Fields

    @classmethod
    def of(cls, text: str) -> RelationPattern:
        match = _RELATION.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"{text!r} is not a relationship pattern: write "
                "(:A{!a})-[:TYPE{property}]->(:B{!b})"
            )
        start, end = NodePattern.of(match["start"]), NodePattern.of(match["end"])
        if match["back"]:
            start, end = end, start
        return cls(start, end, match["type"], Fields.of(match["fields"] or "", needs_key=False))

    @property
    def query(self) -> str:
        parts = []
        for name, node in (("start", self.start), ("end", self.end)):
            keys = ", ".join(f"`{key}`: event.{name}.key.`{key}`" for key, _ in node.fields.keys)
            parts.append(
                f"MERGE ({name}{node.labels} {{{keys}}}) SET {name} += event.{name}.properties"
            )
        return (
            f"UNWIND $events AS event {' '.join(parts)} "
            f"MERGE (start)-[r:`{self.type}`]->(end) SET r += event.properties"
        )

    @property
    def deletion(self) -> str:
        keys = [
            ", ".join(f"`{key}`: event.{name}.key.`{key}`" for key, _ in node.fields.keys)
            for name, node in (("start", self.start), ("end", self.end))
        ]
        return (
            f"UNWIND $events AS event MATCH (start{self.start.labels} {{{keys[0]}}})"
            f"-[r:`{self.type}`]->(end{self.end.labels} {{{keys[1]}}}) DELETE r"
        )

    def event(self, record: Mapping[str, Any]) -> dict[str, Any]:
        nodes = {}
        used: set[str] = set()
        for name, node in (("start", self.start), ("end", self.end)):
            # Without a name of its own, a field belongs to the relationship.
            own = node.fields
            chosen = {name: record[source] for name, source in own.taken if source in record}
            nodes[name] = {"key": own.key(record), "properties": chosen}
            used |= {source for _, source in (*own.keys, *own.taken)}
        return {**nodes, "properties": self.fields.others(record, frozenset(used))}


Pattern = NodePattern | RelationPattern


def pattern_of(text: str) -> Pattern:
    """A node or a relationship, by what the text has; ValueError if it is neither."""
    stripped = re.sub(r"\{[^}]*\}", "", text)
    is_relation = "-" in stripped or len(re.findall(r"\{", text)) > 1
    return RelationPattern.of(text) if is_relation else NodePattern.of(text)


def _labels(text: str) -> str:
    return "".join(f":`{each.strip('`')}`" for each in text.split(":") if each)


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields as one level, with dots in their names: properties cannot be maps."""
    found: dict[str, Any] = {}
    for name, each in value.items():
        if isinstance(each, Mapping):
            found |= flat(each, f"{prefix}{name}.")
        else:
            found[prefix + name] = each
    return found
