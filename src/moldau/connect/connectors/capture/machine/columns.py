"""Which columns are captured, how their texts are hidden, and which make the key.

Columns are named `SCHEMA.TABLE.COLUMN`, or `DATABASE.TABLE.COLUMN`, by regular expressions over the
whole name. A column of the key that is left out of values stays in the key.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from moldau.connect.connectors.capture.machine.envelope import ColumnType, TableColumn
from moldau.data import builders
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type

#: Settings whose names have numbers, algorithms and salts in them.
TRUNCATE: Final = "column.truncate.to."
MASK: Final = "column.mask."
_TRUNCATED: Final = re.compile(r"column\.truncate\.to\.(\d+)\.chars")
_MASKED: Final = re.compile(r"column\.mask\.with\.(\d+)\.chars")
_HASHED: Final = re.compile(r"column\.mask\.hash\.(v2\.)?([^.]+)\.with\.salt\.(.+)")
_KEYS: Final = re.compile(r"\s*([^:]+):([^:,]+(?:,[^:,]+)*)\s*")
#: How Java writes an object that is a text of up to 65535 bytes.
_JAVA_TEXT: Final = b"\xac\xed\x00\x05t"

_BINARIES: Final[dict[str, Callable[[bytes], str]]] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "hex": bytes.hex,
}
BINARY_MODES: Final = ("bytes", *_BINARIES)

Change = Callable[[Any], Any]


def binary(mode: str, read: Callable[[Any], bytes]) -> ColumnType:
    """Binary data by `binary.handling.mode`."""
    shown = _BINARIES.get(mode)
    if shown is None:
        return ColumnType(builders.BYTES, read)
    return ColumnType(builders.STRING, lambda given: shown(read(given)))


@dataclass(frozen=True, slots=True)
class _Rule:
    """What happens to the texts of some columns, and what a schema says of it."""

    patterns: tuple[re.Pattern[str], ...]
    change: Change
    parameters: Mapping[str, str]


class Columns:
    """Of the settings `column.*` and `message.key.columns`."""

    def __init__(self, config: Mapping[str, Any], props: Mapping[str, str]) -> None:
        self._include = patterns(config["column.include.list"])
        self._exclude = patterns(config["column.exclude.list"])
        self._keys = key_columns(config["message.key.columns"])
        self._rules = [
            rule for key, text in props.items() if (rule := _rule(key, text)) is not None
        ]

    def of_table(self, table: str, columns: Sequence[TableColumn]) -> list[TableColumn]:
        """The columns of a table, of which `table` is the name with its schema or database."""
        keys = {
            name.lower()
            for pattern, names in self._keys
            if pattern.fullmatch(table)
            for name in names
        }
        found = []
        for column in columns:
            is_key = column.name.lower() in keys if keys else column.is_key
            found.append(self._column(f"{table}.{column.name}", replace(column, is_key=is_key)))
        return found

    def _column(self, name: str, column: TableColumn) -> TableColumn:
        included = not self._include or any(each.fullmatch(name) for each in self._include)
        excluded = any(each.fullmatch(name) for each in self._exclude)
        kind = column.type
        for rule in self._rules:
            if kind is not None and any(each.fullmatch(name) for each in rule.patterns):
                kind = _hidden(kind, rule)
        return replace(column, type=kind, in_value=included and not excluded)


def patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(each.strip(), re.IGNORECASE) for each in texts)


def key_columns(text: str | None) -> list[tuple[re.Pattern[str], list[str]]]:
    """Of `TABLE:COLUMN,COLUMN;TABLE:COLUMN`."""
    found = []
    for part in (text or "").split(";"):
        if not part.strip():
            continue
        match = _KEYS.fullmatch(part)
        if match is None:
            raise DataError(f"message.key.columns must be TABLE:COLUMN,COLUMN;..., not {part!r}")
        names = [each.strip() for each in match.group(2).split(",")]
        found.append((re.compile(match.group(1), re.IGNORECASE), names))
    return found


def _rule(key: str, text: str) -> _Rule | None:
    if not key.startswith((TRUNCATE, MASK)):
        return None
    named = patterns(text.split(","))
    if match := _TRUNCATED.fullmatch(key):
        size = int(match.group(1))
        return _Rule(named, lambda value: value and value[:size], {"truncateLength": str(size)})
    if match := _MASKED.fullmatch(key):
        stars = "*" * int(match.group(1))
        return _Rule(named, lambda _: stars, {"masked": "true"})
    if match := _HASHED.fullmatch(key):
        return _Rule(named, _hash(*match.groups()), {"masked": "true"})
    return None


def rule_error(key: str, text: str) -> str | None:
    """What is wrong with a setting that hides columns."""
    if not key.startswith((TRUNCATE, MASK)):
        return None
    try:
        found = _rule(key, text)
    except (DataError, re.error) as error:
        return f"{key}: {error}"
    if found is not None:
        return None
    return (
        f"{key} is none of column.truncate.to.NUMBER.chars, column.mask.with.NUMBER.chars and "
        "column.mask.hash.[v2.]ALGORITHM.with.salt.SALT"
    )


def _hash(second: str | None, algorithm: str, salt: str) -> Change:
    name = algorithm.replace("-", "").lower()
    if name not in hashlib.algorithms_available:
        raise DataError(f"there is no hash algorithm {algorithm}")

    def change(value: str | None) -> str | None:
        if value is None:
            return None
        data = value.encode()
        if second is None:
            data = _JAVA_TEXT + len(data).to_bytes(2, "big") + data
        return hashlib.new(name, salt.encode() + data).hexdigest()

    return change


def _hidden(kind: ColumnType, rule: _Rule) -> ColumnType:
    """Columns that are no texts are as they were; only their schema says what was asked for."""
    parameters = {**(kind.schema.parameters or {}), **rule.parameters}
    schema: Schema = kind.schema.replace(parameters=parameters)
    if kind.schema.type is not Type.STRING or kind.schema.name is not None:
        return replace(kind, schema=schema)
    convert, of_null = kind.convert, kind.of_null
    return ColumnType(
        schema,
        lambda given: rule.change(convert(given)),
        lambda: rule.change(None if of_null is None else of_null()),
    )
