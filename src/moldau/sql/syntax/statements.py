"""Statements: what the parser returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as Choice

from moldau.sql.syntax.expressions import Expression, Literal, Position
from moldau.sql.types import SqlType

SourceKind = Choice["STREAM", "TABLE"]
Properties = Mapping[str, Literal]

#: Milliseconds of a unit, by its plural.
UNIT_MS = {
    "DAYS": 86_400_000,
    "HOURS": 3_600_000,
    "MINUTES": 60_000,
    "SECONDS": 1000,
    "MILLISECONDS": 1,
}


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of a unit, which is kept for formatting."""

    value: int
    unit: str

    @property
    def ms(self) -> int:
        return self.value * UNIT_MS[self.unit]

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"


@dataclass(frozen=True, slots=True)
class Statement:
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


# Queries.


@dataclass(frozen=True, slots=True)
class SelectItem:
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SingleColumn(SelectItem):
    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class AllColumns(SelectItem):
    source: str | None = None


@dataclass(frozen=True, slots=True)
class StructAll(SelectItem):
    base: Expression


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table of Spark: delta.`/data/orders#versionAsOf=3`."""

    format: str
    location: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.format}.`{self.location}`"


@dataclass(frozen=True, slots=True)
class Relation:
    """A source under an alias, which is its name if none was given; or a query in brackets; or a
    table of Spark."""

    name: str
    alias: str
    query: Query | None = None
    spark: SparkTable | None = None
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Within:
    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class JoinedSource:
    kind: Choice["INNER", "LEFT", "RIGHT", "OUTER"]
    relation: Relation
    criteria: Expression
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """`size` is the gap of sessions."""

    kind: Choice["TUMBLING", "HOPPING", "SESSION"]
    size: Duration
    advance: Duration | None = None
    retention: Duration | None = None
    grace: Duration | None = None
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """What a pull query sorts by. NULLs come last, or first where it descends, unless said."""

    expression: Expression
    descending: bool = False
    nulls_last: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Statement):
    """`emit` is None in pull queries. `unions` are those that UNION ALL adds to this one."""

    select: tuple[SelectItem, ...]
    source: Relation
    joins: tuple[JoinedSource, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    emit: Choice["CHANGES", "FINAL"] | None = None
    limit: int | None = None
    order_by: tuple[OrderItem, ...] = ()
    offset: int | None = None
    unions: tuple[Query, ...] = ()

    @property
    def is_pull(self) -> bool:
        return self.emit is None


# Sources.


@dataclass(frozen=True, slots=True)
class Element:
    """A column of a CREATE statement. `header` is "" for all headers, else one header's key."""

    name: str
    type: SqlType
    constraint: Choice["KEY", "PRIMARY KEY", "HEADERS"] | None = None
    header: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def is_key(self) -> bool:
        return self.constraint in ("KEY", "PRIMARY KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource(Statement):
    kind: SourceKind
    name: str
    elements: tuple[Element, ...] = ()
    properties: Properties = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAsSelect(Statement):
    kind: SourceKind
    name: str
    query: Query
    properties: Properties = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto(Statement):
    target: str
    query: Query
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues(Statement):
    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource(Statement):
    kind: SourceKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource(Statement):
    kind: SourceKind
    name: str
    columns: tuple[tuple[str, SqlType], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateType(Statement):
    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType(Statement):
    name: str
    if_exists: bool = False


# Connectors.


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnector(Statement):
    kind: Choice["SOURCE", "SINK"]
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConnector(Statement):
    name: str
    if_exists: bool = False


# What is there.


@dataclass(frozen=True, slots=True, kw_only=True)
class Show(Statement):
    """LIST or SHOW. `scope` is ALL for topics, SOURCE or SINK for connectors."""

    what: Choice[
        "PROPERTIES",
        "TOPICS",
        "STREAMS",
        "TABLES",
        "FUNCTIONS",
        "CONNECTORS",
        "CONNECTOR PLUGINS",
        "TYPES",
        "VARIABLES",
        "QUERIES",
    ]
    extended: bool = False
    scope: Choice["ALL", "SOURCE", "SINK"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe(Statement):
    what: Choice["SOURCE", "STREAMS", "TABLES", "FUNCTION", "CONNECTOR"]
    name: str = ""
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Statement):
    """Of a running query, or of a statement."""

    query_id: str | None = None
    statement: Statement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintTopic(Statement):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


# Queries that run, and the session.


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlQuery(Statement):
    """`query_id` None stands for ALL."""

    action: Choice["TERMINATE", "PAUSE", "RESUME"]
    query_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperty(Statement):
    name: str
    value: str
    is_system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetProperty(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefineVariable(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndefineVariable(Statement):
    name: str


# Assertions.


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertTopic(Statement):
    topic: str
    properties: Properties
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSchema(Statement):
    subject: str | None = None
    schema_id: int | None = None
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertValues(Statement):
    """Test tool: the next record of a source. A tombstone has only key columns."""

    values: InsertValues
    is_tombstone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSource(Statement):
    """Test tool: a source is as a CREATE statement says."""

    expected: CreateSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScript(Statement):
    path: str
