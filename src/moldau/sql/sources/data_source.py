"""A stream or a table, and the formats of its topic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.statements import SourceKind
from moldau.sql.types import quoted

WRAP = "WRAP_SINGLES"
UNWRAP = "UNWRAP_SINGLES"
WRAPPING = frozenset({WRAP, UNWRAP})
SCHEMA_ID = "schemaId"
FULL_SCHEMA_NAME = "fullSchemaName"


@dataclass(frozen=True, slots=True)
class FormatInfo:
    """A format by name, with its properties."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, properties: dict[str, str] | None = None) -> FormatInfo:
        return cls(name.upper(), tuple(sorted((properties or {}).items())))

    def without(self, name: str) -> FormatInfo:
        """The same without a property."""
        return replace(self, properties=tuple(each for each in self.properties if each[0] != name))

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.properties)
        return f"FormatInfo{{format={self.name}, properties={{{shown}}}}}"


@dataclass(frozen=True, slots=True)
class WindowInfo:
    """The windows of a key; sessions have no size."""

    kind: Literal["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int | None = None
    emit: Literal["CHANGES", "FINAL"] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class KeyFormat:
    format: FormatInfo
    features: frozenset[str] = frozenset()
    window: WindowInfo | None = None

    @property
    def is_windowed(self) -> bool:
        return self.window is not None


@dataclass(frozen=True, slots=True)
class ValueFormat:
    format: FormatInfo
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    name: str
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """What the metastore holds. `is_cas_target`: a CREATE ... AS SELECT made it."""

    name: str
    kind: SourceKind
    schema: LogicalSchema
    topic: str
    key_format: KeyFormat
    value_format: ValueFormat
    timestamp: TimestampColumn | None = None
    is_cas_target: bool = False
    is_source: bool = False
    sql: str = ""

    @property
    def is_windowed(self) -> bool:
        return self.key_format.is_windowed

    def cannot_become(self, other: DataSource) -> str | None:
        """Why OR REPLACE cannot turn this source into another; None if it can."""
        issues = []
        for label, mine, theirs in (
            ("name", quoted(self.name), quoted(other.name)),
            ("type", f"K{self.kind}", f"K{other.kind}"),
            ("topic", self._topic_text(), other._topic_text()),
            ("timestampColumn", str(self.timestamp), str(other.timestamp)),
        ):
            if mine != theirs:
                issues.append(self._issue(label, mine, theirs))
        schemas = _schema_issue(self.schema, other.schema)
        if schemas is not None:
            issue = self._issue("schema", str(self.schema), str(other.schema))
            issues.append(f"{issue}. ({schemas})")
        return "\n\tAND ".join(issues) or None

    def _topic_text(self) -> str:
        return f"{self.topic} {self.key_format} {self.value_format}"

    def _issue(self, label: str, mine: str, theirs: str) -> str:
        return (
            f"DataSource '{quoted(self.name)}' has {label} = {mine} which is not upgradeable to "
            f"{theirs}"
        )


def _schema_issue(mine: LogicalSchema, theirs: LogicalSchema) -> str | None:
    mine_keys, their_keys = list(enumerate(mine.key)), list(enumerate(theirs.key))
    missing = [str(each) for place, each in mine_keys if (place, each) not in their_keys]
    if missing:
        return (
            "Key columns must be identical. The following key columns are changed, missing or "
            f"reordered: [{', '.join(missing)}]"
        )
    found = list(enumerate(theirs.value))
    missing = [str(each) for place, each in enumerate(mine.value) if (place, each) not in found]
    if missing:
        return f"The following columns are changed, missing or reordered: [{', '.join(missing)}]"
    return None
