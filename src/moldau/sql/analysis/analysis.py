"""What a query reads, joins, groups and writes, checked against its sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from moldau.config.suggestions import did_you_mean
from moldau.sql.analysis.names import maybe_synthetic_key
from moldau.sql.errors import KsqlException
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.sources.properties import SourceProperties
from moldau.sql.sources.schema import (
    PSEUDO_COLUMNS,
    SYSTEM_COLUMNS,
    WINDOW_BOUNDS,
    LogicalSchema,
)
from moldau.sql.syntax.expressions import (
    BytesLiteral,
    ColumnRef,
    Comparison,
    Expression,
    FunctionCall,
    Logical,
    SearchedCase,
    children,
    columns,
    walk,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import (
    JoinedSource,
    Query,
    Relation,
    SelectItem,
    SingleColumn,
    Window,
    Within,
)

JoinKind = Choice["INNER", "LEFT", "RIGHT", "OUTER"]
JOIN_TEXTS = {
    "INNER": "[INNER] JOIN",
    "LEFT": "LEFT [OUTER] JOIN",
    "RIGHT": "RIGHT [OUTER] JOIN",
    "OUTER": "[FULL] OUTER JOIN",
}
_KAFKA_LIMITATION = """
The KAFKA format is primarily intended for use as a key format. It can be used as a value format, \
but can not be used in any operation that requires a repartition or changelog topic.
Removing this limitation requires enhancements to the core of KSQL. This will come in a future \
release. Until then, avoid using the KAFKA format for values.
If you have an existing topic with KAFKA formatted values you can duplicate the data and serialize \
using Avro or JSON with a statement such as:\x20

'CREATE STREAM <new-stream-name> WITH(VALUE_FORMAT='Avro') AS SELECT * FROM \
<existing-kafka-formated-stream-name>;'
For more info see https://github.com/confluentinc/ksql/issues/3060"""
#: A query with aggregates but without GROUP BY puts all rows into one group.
ONE_GROUP = BytesLiteral(b"\x01")


@dataclass(frozen=True, slots=True)
class AliasedSource:
    alias: str
    source: DataSource


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinInfo:
    """A join as it is built: `flipped` if the query wrote the two sides the other way round."""

    left: AliasedSource
    left_expression: Expression
    right: AliasedSource
    right_expression: Expression
    kind: JoinKind
    flipped: bool
    within: Within | None

    def flip(self) -> JoinInfo:
        return replace(
            self,
            left=self.right,
            left_expression=self.right_expression,
            right=self.left,
            right_expression=self.left_expression,
        )

    @property
    def condition(self) -> str:
        """As the query wrote it."""
        sides = [text(self.left_expression), text(self.right_expression)]
        return " = ".join(reversed(sides) if self.flipped else sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Into:
    """Where a persistent query writes: a new source, or one that exists."""

    name: str
    properties: SourceProperties
    existing: DataSource | None = None
    or_replace: bool = False

    @property
    def creates(self) -> bool:
        return self.existing is None


@dataclass(slots=True, kw_only=True)
class Analysis:
    query: Query
    into: Into | None
    sources: list[AliasedSource] = field(default_factory=list)
    joins: list[JoinInfo] = field(default_factory=list)
    group_by: tuple[Expression, ...] | None = None
    table_functions: list[FunctionCall] = field(default_factory=list)
    aggregate_functions: list[FunctionCall] = field(default_factory=list)

    @property
    def first(self) -> AliasedSource:
        return self.sources[0]

    @property
    def is_join(self) -> bool:
        return len(self.sources) > 1

    @property
    def window(self) -> Window | None:
        return self.query.window

    @property
    def select(self) -> tuple[SelectItem, ...]:
        return self.query.select

    def source(self, alias: str) -> AliasedSource | None:
        return next((each for each in self.sources if each.alias == alias), None)

    def schemas(self, *, after_aggregation: bool) -> dict[str, LogicalSchema]:
        """The columns that the query may use, by alias."""
        windowed = after_aggregation and self.window is not None
        return {
            each.alias: each.source.schema.with_pseudo_and_key_in_value(
                windowed=each.source.is_windowed or windowed
            )
            for each in self.sources
        }


def analyze(
    query: Query, metastore: MetaStore, functions: Functions, into: Into | None
) -> Analysis:
    """Analyse a query whose columns are qualified."""
    return _Analyzer(query, metastore, functions, into).run()


class _Analyzer:
    def __init__(
        self, query: Query, metastore: MetaStore, functions: Functions, into: Into | None
    ) -> None:
        self._query = query
        self._metastore = metastore
        self._functions = functions
        self._found = Analysis(query=query, into=into, group_by=query.group_by)

    def run(self) -> Analysis:
        found, query = self._found, self._query
        self._add(query.source)
        for joined in query.joins:
            self._join(joined)
        for item in query.select:
            if isinstance(item, SingleColumn):
                self._select(item)
        if query.group_by is None and query.having is not None:
            self._one_group(query.having)
        self._check_columns(possible_synthetic=not query.is_pull and query.group_by is None)
        self._check_kafka_format()
        self._check_names()
        if found.table_functions and found.first.source.kind == "TABLE":
            raise KsqlException("Table source is not supported with table functions")
        return found

    # Sources and joins.

    def _add(self, relation: Relation) -> AliasedSource:
        found = self._found
        source = self._metastore.source(relation.name)
        if source is None:
            raise KsqlException(f"Source `{relation.name}` does not exist.")
        before = next((each for each in found.sources if each.source.name == source.name), None)
        if before is not None:
            if len(found.sources) > 1:
                raise KsqlException(
                    "N-way joins do not support multiple occurrences of the same source. "
                    f"Source: '{relation.name}'."
                )
            raise KsqlException(
                f"Can not join '{relation.name}' to '{before.source.name}': self joins are not "
                "yet supported."
            )
        aliased = AliasedSource(relation.alias, source)
        found.sources.append(aliased)
        return aliased

    def _join(self, joined: JoinedSource) -> None:
        source = self._add(joined.relation)
        criteria = joined.criteria
        if not isinstance(criteria, Comparison):
            if isinstance(criteria, Logical) and all(
                _is_equality(each) for each in (criteria.left, criteria.right)
            ):
                raise KsqlException(
                    "Invalid join condition: joins on multiple conditions are not yet supported. "
                    f"Got {text(criteria)}."
                )
            raise KsqlException(f"Unsupported join expression: {text(criteria)}")
        if not _is_equality(criteria):
            raise KsqlException("Only equality join criteria is supported.")
        left_alias = self._only_source(criteria.left, criteria)
        right_alias = self._only_source(criteria.right, criteria)
        left, right = self._found.source(left_alias), self._found.source(right_alias)
        if left is None or right is None:
            raise KsqlException(f"Cannot join on unknown source: `{left_alias}`")
        if left_alias == right_alias:
            raise KsqlException(
                "Each side of the join must reference exactly one source and not the same "
                f"source. Left side references `{left_alias}` and right references "
                f"`{right_alias}`"
            )
        _check_windows(left, right)
        if source not in (left, right):
            raise KsqlException(
                f"A join criteria is expected to reference the source (`{source.alias}`) in the "
                f"FROM clause, instead the right source references `{right.alias}` and the left "
                f"source references `{left.alias}`"
            )
        info = JoinInfo(
            left=left,
            left_expression=criteria.left,
            right=right,
            right_expression=criteria.right,
            kind=joined.kind,
            flipped=right_alias == self._found.first.alias,
            within=joined.within,
        )
        self._found.joins.append(info.flip() if info.flipped else info)

    def _only_source(self, side: Expression, criteria: Expression) -> str:
        schemas = self._found.schemas(after_aggregation=False)
        aliases = {
            self._source_of(each, "JOIN ON", schemas, possible_synthetic=False)
            for each in columns(side)
        }
        if len(aliases) != 1:
            raise KsqlException(
                f"Invalid comparison expression '{text(side)}' in join '{text(criteria)}'. Each "
                "side of the join comparision must contain references from exactly one source."
            )
        return aliases.pop() or ""

    # What is selected.

    def _select(self, item: SingleColumn) -> None:
        alias, expression = item.alias or "", item.expression
        upper = alias.upper()
        if upper in SYSTEM_COLUMNS:
            shown = text(expression)
            if shown[shown.find(".") + 1 :].upper() != upper:
                raise KsqlException(
                    f"`{upper}` is a reserved column name. "
                    "You cannot use it as an alias for a column."
                )
            if self._found.into is not None:
                raise KsqlException(
                    f"Reserved column name in select: `{upper}`. Please remove or alias the column."
                )
        if self._query.group_by is None:
            self._one_group(expression)
        self._table_functions(expression, None, None)

    def _one_group(self, expression: Expression) -> None:
        """Aggregates of a query without GROUP BY are over all rows."""
        for node in walk(expression):
            if self._is(node, "aggregate") and isinstance(node, FunctionCall):
                self._found.aggregate_functions.append(node)
                self._found.group_by = (ONE_GROUP,)

    def _is(self, node: Expression, kind: str) -> bool:
        return isinstance(node, FunctionCall) and self._functions.kind(node.name) == kind

    def _table_functions(
        self, node: Expression, inside: str | None, case: SearchedCase | None
    ) -> None:
        if isinstance(node, SearchedCase):
            case = node
        if self._is(node, "table") and isinstance(node, FunctionCall):
            if inside is not None:
                raise KsqlException(f"Table functions cannot be nested: {inside}({node.name}())")
            if self._found.group_by is not None:
                raise KsqlException("Table functions cannot be used with aggregations.")
            if case is not None:
                raise KsqlException(f"Table functions cannot be used in CASE: {text(case)}")
            self._found.table_functions.append(node)
            inside = node.name
        for child in children(node):
            self._table_functions(child, inside, case)

    # Checks.

    def _check_columns(self, *, possible_synthetic: bool) -> None:
        query = self._query
        schemas = self._found.schemas(after_aggregation=True)
        selects = [each.expression for each in query.select if isinstance(each, SingleColumn)]
        clauses: list[tuple[str, Iterable[Expression]]] = [
            ("WHERE", [] if query.where is None else [query.where]),
            ("GROUP BY", query.group_by or ()),
            ("PARTITION BY", query.partition_by or ()),
            ("HAVING", [] if query.having is None else [query.having]),
            ("SELECT", selects),
        ]
        for clause, expressions in clauses:
            for expression in expressions:
                for column in columns(expression):
                    self._source_of(column, clause, schemas, possible_synthetic=possible_synthetic)

    def _source_of(
        self,
        column: ColumnRef,
        clause: str,
        schemas: dict[str, LogicalSchema],
        *,
        possible_synthetic: bool,
    ) -> str | None:
        """The alias of the source that has a column; None for the key that a join makes up."""
        having = [
            alias
            for alias, schema in schemas.items()
            if column.source in (None, alias) and schema.find(column.name) is not None
        ]
        unknown = not having or (
            column.source is None and column.name in WINDOW_BOUNDS and len(having) > 1
        )
        if not unknown:
            return column.source or having[0]
        is_join_key = (
            possible_synthetic
            and len(schemas) > 1
            and column.source is None
            and clause == "SELECT"
            and maybe_synthetic_key(column.name)
        )
        if is_join_key and not having:
            return None
        shown = text(column)
        message = "cannot be resolved."
        if clause == "PARTITION BY":
            message = (
                f"cannot be resolved. '{shown}' must be a column in the source schema since "
                "PARTITION BY is applied on the input."
            )
        names = [
            each.name
            for alias, schema in schemas.items()
            if column.source in (None, alias)
            for each in schema.columns
        ]
        hint = did_you_mean(column.name, dict.fromkeys(names))
        raise KsqlException(f"{column.prefix}{clause} column '{shown}' {message}{hint}")

    def _check_kafka_format(self) -> None:
        kafka = [
            each.alias
            for each in self._found.sources
            if each.source.value_format.format.name == "KAFKA"
        ]
        operation = "JOIN" if self._query.joins else "GROUP BY" if self._query.group_by else None
        if kafka and operation is not None:
            raise KsqlException(
                f"Source(s) {', '.join(kafka)} are using the 'KAFKA' value format. This format "
                f"does not yet support {operation}.{_KAFKA_LIMITATION}"
            )

    def _check_names(self) -> None:
        into = self._found.into
        if into is not None and any(
            each.source.kind == "TABLE" and each.source.is_windowed for each in self._found.sources
        ):
            raise KsqlException("KSQL does not support persistent queries on windowed tables.")
        clashing = [
            f"`{column.name}`"
            for each in self._found.sources
            for column in each.source.schema.value
            if column.name in PSEUDO_COLUMNS
        ]
        if clashing:
            raise KsqlException(
                "Your stream/table has columns with the same name as newly introduced "
                "pseudocolumns in ksqlDB, and cannot be queried as a result. The conflicting "
                f"names are: {', '.join(clashing)}.\n"
            )


def _is_equality(node: Expression) -> bool:
    return isinstance(node, Comparison) and node.operator == "="


def _check_windows(left: AliasedSource, right: AliasedSource) -> None:
    one, other = left.source.key_format.window, right.source.key_format.window
    if (one is None) != (other is None):
        raise KsqlException(
            "Can not join windowed source to non-windowed source.\n"
            f"`{left.alias}` is {'not' if one is None else one.kind} windowed\n"
            f"`{right.alias}` is {'not' if other is None else other.kind} windowed"
        )
    if one is None or other is None or (one.kind == "SESSION") == (other.kind == "SESSION"):
        return
    raise KsqlException(
        f"Incompatible windowed sources.\nLeft source: {one.kind}\nRight source: {other.kind}\n"
        "Session windowed sources can only be joined to other session windowed sources, and may "
        "still not result in expected behaviour as session bounds must be an exact match for the "
        "join to work\nHopping and tumbling windowed sources can only be joined to other hopping "
        "and tumbling windowed sources"
    )
