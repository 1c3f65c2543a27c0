"""The nodes of a logical plan, but for joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.sql.analysis.aggregates import AggregateAnalysis
from moldau.sql.analysis.analysis import ONE_GROUP, Analysis
from moldau.sql.analysis.names import (
    AliasGenerator,
    aggregate_column,
    table_function_column,
)
from moldau.sql.errors import KsqlException, grammatical
from moldau.sql.expressions.compiled import Select
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning import building
from moldau.sql.planning.node import (
    Built,
    Contains,
    Node,
    PartitionCount,
    PlanContext,
    keys_missing,
    ordered_names,
)
from moldau.sql.planning.projection import Projection, projection_schema, select_expressions
from moldau.sql.planning.steps import SourceStep
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import DataSource, FormatInfo
from moldau.sql.sources.schema import (
    PSEUDO_COLUMNS,
    WINDOW_BOUNDS,
    LogicalSchema,
    key_column,
)
from moldau.sql.syntax.expressions import (
    ColumnRef,
    Expression,
    FunctionCall,
    columns,
    rewrite,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import SelectItem, SingleColumn
from moldau.sql.types import Column

_AS_VALUE_HINT = (
    "Each key column must only be in the projection once. If you intended to copy the key into "
    "the value, then consider using the AS_VALUE function to indicate which key reference should "
    "be copied."
)


class DataSourceNode(Node):
    """Reads a stream or a table."""

    def __init__(self, node_id: str, source: DataSource, alias: str) -> None:
        schema = source.schema.with_pseudo_and_key_in_value(windowed=source.is_windowed)
        super().__init__(kind=source.kind, schema=schema, alias=alias)
        self._id = node_id
        self._source = source

    @property
    def data_source(self) -> DataSource:
        return self._source

    def source_nodes(self) -> Iterator[Node]:
        yield self

    def partitions(self, count: PartitionCount) -> int:
        return count(self._source.topic) or 1

    def resolve_star(self, source: str | None) -> list[str]:
        return ordered_names(self.schema.value, self.schema)

    def unknown_columns(self, required: set[ColumnRef]) -> set[ColumnRef]:
        return {each for each in required if self._is_unknown(each)}

    def _is_unknown(self, column: ColumnRef) -> bool:
        if column.source not in (None, self.alias):
            return True
        if column.name in PSEUDO_COLUMNS:
            return False
        if column.name in WINDOW_BOUNDS:
            return not self._source.is_windowed
        return self._source.schema.find(column.name) is None

    def check_key(self, sink: str, projection: Contains) -> None:
        for key in self.schema.key:
            found = projection.contains(ColumnRef(key.name, self.alias))
            if not found and not projection.contains(ColumnRef(key.name)):
                keys_missing(sink, "key column", [ColumnRef(each.name) for each in self.schema.key])

    def build(self, context: PlanContext) -> Built:
        step = SourceStep(
            context=(self._id, "Source"),
            schema=self.schema,
            kind=self.kind,
            source=self._source,
        )
        return Built(step, self._source.key_format)


class FilterNode(Node):
    def __init__(self, parent: Node, expression: Expression) -> None:
        super().__init__(
            kind=parent.kind, schema=parent.schema, alias=parent.alias, parents=[parent]
        )
        self._expression = expression

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        return self.parents[0].resolve_select(index, expression)

    def build(self, context: PlanContext) -> Built:
        built = self.parents[0].build(context)
        return building.filtered(built, self._expression, context, ("WhereFilter",))


class PartitionByNode(Node):
    """PARTITION BY: `expressions` in terms of the parent's columns, `original` as written."""

    def __init__(
        self,
        parent: Node,
        original: Sequence[Expression],
        expressions: Sequence[Expression],
        functions: Functions,
    ) -> None:
        schema = building.rekeyed_schema(parent.schema, expressions, functions)
        super().__init__(kind=parent.kind, schema=schema, alias=parent.alias, parents=[parent])
        self._original = list(original)
        self._expressions = tuple(expressions)

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        for key, each in zip(self.schema.key, self._expressions, strict=False):
            if each == expression:
                return ColumnRef(key.name)
        return expression

    def resolve_star(self, source: str | None) -> list[str]:
        return ordered_names(self.schema.value, self.schema)

    def check_key(self, sink: str, projection: Contains) -> None:
        if building.is_null_key(self._expressions):
            return
        if not all(projection.contains(each) for each in self._expressions):
            keys_missing(sink, "partitioning expression", self._original)

    def build(self, context: PlanContext) -> Built:
        return building.rekeyed(
            self.parents[0].build(context),
            self._expressions,
            self.data_source.value_format.format,
            context,
            ("PartitionBy",),
        )


class FlatMapNode(Node):
    """Table functions: their results are columns of their own, which the projection refers to."""

    def __init__(
        self,
        parent: Node,
        calls: Sequence[FunctionCall],
        items: Sequence[SelectItem],
        functions: Functions,
    ) -> None:
        schema = building.flat_map_schema(parent.schema, calls, functions)
        super().__init__(kind=parent.kind, schema=schema, parents=[parent])
        self._calls = tuple(calls)
        self._replaced: dict[int, Expression] = {}
        number = 0

        def replaced(node: Expression) -> Expression | None:
            nonlocal number
            if isinstance(node, FunctionCall) and functions.kind(node.name) == "table":
                number += 1
                return ColumnRef(table_function_column(number - 1), position=node.position)
            return None

        for index, item in enumerate(items):
            if isinstance(item, SingleColumn):
                expression = rewrite(item.expression, replaced)
                if expression != item.expression:
                    self._replaced[index] = expression

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        found = self._replaced.get(index)
        if found is None:
            return self.parents[0].resolve_select(index, expression)
        return found

    def build(self, context: PlanContext) -> Built:
        built = self.parents[0].build(context)
        return building.flat_mapped(built, self._calls, context, ("FlatMap",))


class FinalProjectNode(Node):
    """The SELECT list of a query without aggregates."""

    def __init__(
        self,
        parent: Node,
        items: Sequence[SelectItem],
        functions: Functions,
        *,
        persistent: bool,
        target: LogicalSchema | None,
    ) -> None:
        self._projection = Projection(items)
        selects = select_expressions(parent, items, target)
        schema = projection_schema(parent.schema, selects, functions)
        if persistent:
            selects = _without_keys(parent.schema, selects)
            schema = schema.without_pseudo_and_key_in_value()
        else:
            values = [Column(each.name, each.type) for each in schema.columns]
            schema = LogicalSchema([*parent.schema.key, *values])
        super().__init__(kind=parent.kind, schema=schema, alias=parent.alias, parents=[parent])
        self._selects = selects
        if not schema.value:
            raise KsqlException("The projection contains no value columns.")
        self._check_columns()

    def _check_columns(self) -> None:
        required = {
            column for expression in self._projection.singles for column in columns(expression)
        }
        unknown = self.parents[0].unknown_columns(required)
        if unknown:
            shown = [f"{each.prefix}Column '{text(each)}' cannot be resolved." for each in unknown]
            raise KsqlException("\n".join(shown))

    def check_sink(self, sink: str) -> None:
        self.parents[0].check_key(sink, self._projection)

    def build(self, context: PlanContext) -> Built:
        return building.selected(
            self.parents[0].build(context),
            [each.name for each in self.schema.key],
            self._selects,
            self.data_source.value_format.format,
            context,
            ("Project",),
        )


def _without_keys(parent: LogicalSchema, selects: list[Select]) -> list[Select]:
    """The selects that make up the value: key columns stay in the key."""
    kept: list[Select] = []
    seen: dict[str, set[str]] = {}
    for select in selects:
        if isinstance(select.expression, ColumnRef):
            name = select.expression.name
            if name in WINDOW_BOUNDS and select.alias == name:
                continue
            if parent.is_key(name):
                seen.setdefault(name, set()).add(select.alias)
                continue
        kept.append(select)
    for name, aliases in seen.items():
        if len(aliases) > 1:
            raise KsqlException(
                f"The projection contains a key column (`{name}`) more than once, aliased as: "
                f"{grammatical(sorted(aliases), 'and')}.\n{_AS_VALUE_HINT}"
            )
    return kept


class AggregateNode(Node):
    """GROUP BY with its aggregates, HAVING and SELECT list."""

    def __init__(
        self,
        parent: Node,
        analysis: Analysis,
        selects: list[Select],
        group_by: tuple[Expression, ...],
        having: Expression | None,
        found: AggregateAnalysis,
        functions: Functions,
    ) -> None:
        self._group_by = group_by
        self._window = analysis.window
        self._emit_final = analysis.query.emit == "FINAL"
        self._found = found
        self._all_selects = selects
        persistent = analysis.into is not None
        schema = _aggregate_schema(
            parent.schema,
            group_by,
            selects,
            functions,
            persistent=persistent,
            windowed=self._window is not None,
        )
        super().__init__(kind="TABLE", schema=schema, parents=[parent])
        replaced = _Replacer(functions)
        new = [Select(each.alias, replaced.of(each.expression)) for each in selects]
        self._selects = [each for each in new if not persistent or each.expression not in group_by]
        self._having = None if having is None else replaced.of(having)
        self._types = ExpressionTypes(parent.schema, functions)
        self._functions = functions

    def check_sink(self, sink: str) -> None:
        missing = list(self._group_by)
        for select in self._all_selects:
            if select.expression in missing:
                missing.remove(select.expression)
        if not missing:
            return
        if ONE_GROUP in missing:
            shown = ", ".join(text(each) for each in self._found.functions)
            raise KsqlException(
                "CREATE TABLE AS SELECT statement does not support aggregate function "
                f"[{shown}] without a GROUP BY clause."
            )
        keys_missing(sink, "grouping expression", missing)

    def build(self, context: PlanContext) -> Built:
        value_format = self.data_source.value_format.format
        built = self.parents[0].build(context)
        names = _internal_names([*self._found.required, *self._found.arguments])
        arguments = [Select(names[text(each)], each) for each in _distinct(names, self._found)]
        source_keys = [each.name for each in self.parents[0].schema.key]
        built = building.selected(
            built, source_keys, arguments, value_format, context, ("Aggregate", "Prepare")
        )
        built = building.grouped(
            built, self._group_by, value_format, context, ("Aggregate", "GroupBy")
        )
        built = building.aggregated(
            built,
            [names[text(each)] for each in self._found.required],
            [self._internal_call(each, names) for each in self._found.functions],
            self._window,
            value_format,
            context,
            ("Aggregate", "Aggregate"),
            emit_final=self._emit_final,
        )
        if self._having is not None:
            built = building.filtered(built, self._having, context, ("Aggregate", "HavingFilter"))
        return self._project(built, value_format, context)

    def _project(self, built: Built, value_format: FormatInfo, context: PlanContext) -> Built:
        keys = [each.name for each in self.schema.key]
        return building.selected(
            built, keys, self._selects, value_format, context, ("Aggregate", "Project")
        )

    def _internal_call(self, call: FunctionCall, names: dict[str, str]) -> FunctionCall:
        """The call over the prepared columns; initial arguments stay literals."""
        types = [self._types.of(each) for each in call.arguments]
        count = len(types) - self._functions.init_argument_count(call.name, types)
        columns_of = [ColumnRef(names[text(each)]) for each in call.arguments[:count]]
        return FunctionCall(call.name, (*columns_of, *call.arguments[count:]))


def _internal_names(expressions: Sequence[Expression]) -> dict[str, str]:
    """The columns that an aggregation prepares, by the text of their expressions."""
    names: dict[str, str] = {}
    for each in expressions:
        shown = text(each)
        if shown not in names:
            is_column = isinstance(each, ColumnRef)
            names[shown] = shown if is_column else f"KSQL_INTERNAL_COL_{len(names)}"
            if isinstance(each, ColumnRef):
                names[shown] = each.name
    return names


def _distinct(names: dict[str, str], found: AggregateAnalysis) -> list[Expression]:
    by_text = {text(each): each for each in [*found.arguments, *found.required]}
    return [by_text[shown] for shown in names]


class _Replacer:
    """Puts the columns of aggregates in place of their calls, numbering them."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._count = 0

    def of(self, expression: Expression) -> Expression:
        return rewrite(expression, self._replaced)

    def _replaced(self, node: Expression) -> Expression | None:
        if isinstance(node, FunctionCall) and self._functions.kind(node.name) == "aggregate":
            self._count += 1
            return ColumnRef(aggregate_column(self._count - 1), position=node.position)
        return None


def _aggregate_schema(
    source: LogicalSchema,
    group_by: tuple[Expression, ...],
    selects: list[Select],
    functions: Functions,
    *,
    persistent: bool,
    windowed: bool,
) -> LogicalSchema:
    widened = source.with_pseudo_and_key_in_value(windowed=windowed)
    projected = projection_schema(widened, selects, functions)

    def alias_of(expression: Expression) -> str | None:
        found = [each.alias for each in selects if each.expression == expression]
        if len(found) > 1:
            shown = grammatical([f"`{each}`" for each in found], "and")
            raise KsqlException(
                f"The projection contains a key column more than once: {shown}.\n{_AS_VALUE_HINT}"
            )
        return found[0] if found else None

    values = [Column(each.name, each.type) for each in projected.columns]
    if persistent:
        key_names = {alias_of(each) for each in group_by}
        values = [each for each in projected.value if each.name not in key_names]
        if not values:
            raise KsqlException("The projection contains no value columns.")
    types = ExpressionTypes(source, functions)
    keys = []
    for each in group_by:
        kind = types.of(each)
        if kind is None:
            raise KsqlException(f"Cannot group by {text(each)}: its type is unknown")
        name = alias_of(each)
        if name is None:
            is_column = isinstance(each, ColumnRef)
            name = each.name if is_column else AliasGenerator([source]).alias_for(each)  # type: ignore[attr-defined]
        keys.append(key_column(name, kind))
    return LogicalSchema([*keys, *values])
