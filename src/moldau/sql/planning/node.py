"""What every node of a logical plan can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from moldau.sql.errors import KsqlException, grammatical
from moldau.sql.planning.formats import Formats
from moldau.sql.planning.steps import Step
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import DataSource, KeyFormat
from moldau.sql.sources.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, LogicalSchema
from moldau.sql.syntax.expressions import ColumnRef, Expression
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import SourceKind
from moldau.sql.types import Column

#: How many partitions a topic has; None if it does not exist.
PartitionCount = Callable[[str], int | None]


class Contains(Protocol):
    """A SELECT list, as far as nodes ask about it."""

    def contains(self, expression: Expression) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What building steps needs to know of the world."""

    functions: Functions
    formats: Formats
    default_key_format: str = "KAFKA"


@dataclass(frozen=True, slots=True)
class Built:
    """The last step so far, and the format of its key."""

    step: Step
    key_format: KeyFormat

    @property
    def schema(self) -> LogicalSchema:
        return self.step.schema


class Node:
    """A node of a logical plan: most ask the node before them."""

    def __init__(
        self,
        *,
        kind: SourceKind,
        schema: LogicalSchema,
        alias: str | None = None,
        parents: Sequence[Node] = (),
    ) -> None:
        self.kind = kind
        self.schema = schema
        #: The source that the node's rows are of, where it is one source.
        self.alias = alias
        self.parents = tuple(parents)

    def build(self, context: PlanContext) -> Built:
        raise NotImplementedError

    def source_nodes(self) -> Iterator[Node]:
        for parent in self.parents:
            yield from parent.source_nodes()

    @property
    def data_source(self) -> DataSource:
        """The leftmost source."""
        return next(self.source_nodes()).data_source

    def partitions(self, count: PartitionCount) -> int:
        """How many partitions the rows come in, by topic."""
        return self.parents[0].partitions(count)

    def resolve_star(self, source: str | None) -> list[str]:
        """The columns that * stands for."""
        found: list[str] = []
        for parent in self.parents:
            if source is None or parent.alias in (None, source):
                found += parent.resolve_star(source)
        return found

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        """The expression of a SELECT list in terms of this node's columns."""
        return expression

    def unknown_columns(self, required: set[ColumnRef]) -> set[ColumnRef]:
        return self.parents[0].unknown_columns(required)

    def check_key(self, sink: str, projection: Contains) -> None:
        """An error where the key is not in the SELECT list."""
        for parent in self.parents:
            parent.check_key(sink, projection)


def keys_missing(
    sink: str,
    what: str,
    keys: Sequence[Expression],
    *,
    all_needed: bool = True,
    synthetic: bool = False,
) -> NoReturn:
    """ksqlDB's error where the SELECT list lacks the key."""
    shown = [text(each) for each in keys]
    plural = "s" if all_needed and len(keys) > 1 else ""
    kinds = what + ("" if len(keys) == 1 else "s")
    joined = grammatical(shown, "and" if all_needed else "or")
    example = ", ".join(shown) if all_needed else shown[0]
    link = "See https://cnfl.io/2LV7ouS.\n" if synthetic else "\n"
    more = (
        f"\n{shown[0]} was added as a synthetic key column because the join criteria did not "
        "match any source column. This expression must be included in the projection and may be "
        "aliased. "
        if synthetic
        else ""
    )
    raise KsqlException(
        f"Key{plural} missing from projection (ie, SELECT). {link}"
        f"The query used to build `{sink}` must include the {kinds} {joined} in its projection "
        f"(eg, SELECT {example}...).{more}"
    )


def ordered_names(columns: Sequence[Column], schema: LogicalSchema) -> list[str]:
    """What * stands for: the key, window bounds, then values."""
    names = [each.name for each in columns]
    keys = [each.name for each in schema.key if each.name in names]
    bounds = [name for name in names if name in WINDOW_BOUNDS]
    values = [
        name
        for name in names
        if name not in WINDOW_BOUNDS and name not in PSEUDO_COLUMNS and not schema.is_key(name)
    ]
    return keys + bounds + values
