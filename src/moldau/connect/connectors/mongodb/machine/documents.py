"""Documents before they are written: which fields they keep, and what those are called.

Lists of fields have dots for fields of documents (`a.b`), `*` for any one name, `**` for all below,
and names that end with `*`, which stand for all that begin so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.connect.api.records import SinkRecord
from moldau.data.errors import DataError

Document = dict[str, Any]
ALLOW: Final = ("allowlist", "whitelist")
BLOCK: Final = ("blocklist", "blacklist")
PROJECTIONS: Final = ("none", *ALLOW, *BLOCK)
_META: Final = "topic-partition-offset"
_JAVA_NAMES: Final = {"CreateTime": "CREATE_TIME", "LogAppendTime": "LOG_APPEND_TIME"}


@dataclass(frozen=True, slots=True)
class Projection:
    kind: str
    fields: frozenset[str]

    @classmethod
    def of(cls, kind: str, fields: Iterable[str]) -> Projection:
        """To keep a field of a document is to keep the document."""
        found = set(fields)
        if kind in ALLOW:
            for field in fields:
                parts = field.split(".")
                found.update(".".join(parts[:count]) for count in range(1, len(parts)))
        return cls(kind, frozenset(found))

    def apply(self, document: Document) -> None:
        if self.kind in ALLOW and "**" not in self.fields:
            self._keep(document, "")
        elif self.kind in BLOCK:
            for field in self.fields:
                _remove(field, document)

    def _keep(self, document: Document, path: str) -> None:
        for name, value in list(document.items()):
            key = f"{path}.{name}" if path else name
            if not self._has(key):
                del document[name]
            elif f"{key}.**" not in self.fields:
                for each in _documents(value):
                    self._keep(each, key)

    def _has(self, key: str) -> bool:
        parts = key.split(".")
        for field in self.fields:
            wanted = field.split(".")
            if len(wanted) == len(parts) and all(
                each in ("*", part) for each, part in zip(wanted, parts, strict=True)
            ):
                return True
            begins = len(wanted) == 1 and field != "*" and field.endswith("*")
            if begins and key.startswith(field[:-1]):
                return True
        return False


def _documents(value: Any) -> list[Document]:
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, dict)]


def _remove(field: str, document: Document) -> None:
    first, _, rest = field.partition(".")
    if first == "**":
        document.clear()
    elif first == "*":
        for name, value in list(document.items()):
            if not isinstance(value, dict):
                del document[name]
            elif rest:
                _remove(rest, value)
    elif rest:
        for each in _documents(document.get(first)):
            _remove(rest, each)
    elif first.endswith("*"):
        for name in [each for each in document if each.startswith(first[:-1])]:
            del document[name]
    else:
        document.pop(first, None)


@dataclass(frozen=True, slots=True)
class Renames:
    """By whole names, as `value.a.b`, or by patterns, of which a part is replaced."""

    names: Mapping[str, str]
    patterns: Sequence[tuple[re.Pattern[str], re.Pattern[str], str]] = ()

    @classmethod
    def of(cls, mapping: str, regexp: str) -> Renames:
        """Of JSON: `[{"oldName": "value.a", "newName": "b"}]` and
        `[{"regexp": "^value.x.*", "pattern": "x", "replace": "y"}]`."""
        try:
            names = {each["oldName"]: each["newName"] for each in json.loads(mapping or "[]")}
            patterns = [
                (re.compile(each["regexp"]), re.compile(each["pattern"]), each["replace"])
                for each in json.loads(regexp or "[]")
            ]
        except (ValueError, KeyError, TypeError, re.error) as error:
            raise DataError(f"not a list of names to change: {error!r}") from None
        return cls(names, patterns)

    def apply(self, document: Document, path: str) -> None:
        made: Document = {}
        for name, value in list(document.items()):
            new = self._renamed(path, name)
            if new != name:
                del document[name]
                if new not in document:
                    made.setdefault(new, value)
            if isinstance(value, dict):
                self.apply(value, f"{path}.{new}")
        document.update(made)

    def _renamed(self, path: str, name: str) -> str:
        new = self.names.get(f"{path}.{name}", name)
        for whole, part, replaced in self.patterns:
            if whole.fullmatch(f"{path}.{name}"):
                new = part.sub(replaced, new)
        return new


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def add_place(document: Document, record: SinkRecord) -> None:
    """Where the record was, and when it was written."""
    document[_META] = f"{record.topic}-{record.partition}-{record.offset}"
    if record.timestamp is not None:
        kind = _JAVA_NAMES.get(record.timestamp_type, "NO_TIMESTAMP_TYPE")
        document[kind] = record.timestamp


def flattened(document: Mapping[str, Any], prefix: str = "") -> Document:
    """Fields of documents by paths, so that a filter does not depend on their order."""
    found: Document = {}
    for name, value in document.items():
        if isinstance(value, dict):
            found.update(flattened(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def looked_up(document: Any, path: str) -> Any:
    """The field at a path; None if there is none."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def split(text: str) -> frozenset[str]:
    return frozenset(each.strip() for each in text.split(",") if each.strip())


def short(names: Iterable[str]) -> list[str]:
    """Class names without their packages."""
    return [each.strip().rpartition(".")[2] for each in names if each.strip()]
