"""What statements return, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moldau.sql.planning.planner import QueryPlan
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sparksql.compiler import SparkPlan
from moldau.sql.topology.builder import BuiltTopology


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that changed something, or nothing, with ksqlDB's message."""

    message: str


@dataclass(slots=True, kw_only=True)
class PersistentQuery:
    """A query that runs until it is terminated. A host runs its topology."""

    id: str
    sql: str
    plan: QueryPlan
    built: BuiltTopology
    application_id: str
    #: The source that it writes to; None for source tables.
    sink: str | None
    is_insert: bool = False
    state: str = "RUNNING"
    settings: dict[str, Any] = field(default_factory=dict)
    #: Those of the settings that the statement's session had set.
    overrides: dict[str, Any] = field(default_factory=dict)
    #: With ENGINE='spark-sql': the same query for Spark.
    spark: SparkPlan | None = None

    @property
    def sources(self) -> list[DataSource]:
        return self.plan.sources


@dataclass(frozen=True, slots=True)
class Started:
    """A persistent query was created, or replaced."""

    query: PersistentQuery
    replaced: PersistentQuery | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Persistent queries were terminated, paused or resumed."""

    action: str
    queries: list[PersistentQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """A record that INSERT VALUES wants to have written. Without ROWTIME the host sets the time."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """What SHOW and DESCRIBE found: `kind` says what, `rows` are maps by ksqlDB's field names."""

    kind: str
    rows: list[dict[str, Any]]


Result = Done | Started | Stopped | Inserted | Listing
