"""Which aggregate functions a query calls, and whether all else is part of GROUP BY."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.types_of import unknown_function
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import WINDOW_BOUNDS, WINDOWEND, WINDOWSTART
from moldau.sql.syntax.expressions import ColumnRef, Expression, FunctionCall, children
from moldau.sql.syntax.formatting import text


@dataclass(slots=True)
class AggregateAnalysis:
    """Aggregate calls in order, their arguments, and the columns that must be at hand for them."""

    functions: list[FunctionCall] = field(default_factory=list)
    arguments: list[Expression] = field(default_factory=list)
    required: list[ColumnRef] = field(default_factory=list)


def analyze_aggregates(
    *,
    functions: Functions,
    selects: list[Expression],
    where: Expression | None,
    group_by: tuple[Expression, ...],
    having: Expression | None,
    windowed: bool,
    default_argument: ColumnRef,
) -> AggregateAnalysis:
    """Columns are unqualified by now."""
    found = AggregateAnalysis()
    groups: set[Expression] = set(group_by)
    if windowed:
        groups |= {ColumnRef(WINDOWSTART), ColumnRef(WINDOWEND)}

    def visit(node: Expression) -> list[tuple[str | None, ColumnRef]]:
        visitor = _Visitor(found, functions, groups, default_argument)
        visitor.visit(node, None)
        return visitor.columns

    def check_bounds(column: ColumnRef) -> None:
        if windowed and column.name in WINDOW_BOUNDS:
            raise KsqlException(
                f"Window bounds column {text(column)} can only be used in the SELECT clause of "
                "windowed aggregations and can not be passed to aggregate functions.\n"
                "See https://github.com/confluentinc/ksql/issues/4397"
            )

    unmatched = []
    for select in selects:
        others = []
        for function, column in visit(select):
            if function is not None:
                check_bounds(column)
            elif column not in groups:
                others.append(column)
        if select not in groups and others:
            unmatched.append(text(select))
    if where is not None:
        for _, column in visit(where):
            check_bounds(column)
    for group in group_by:
        for function, column in visit(group):
            if function is not None:
                raise KsqlException(
                    f"GROUP BY does not support aggregate functions: {function} is an aggregate "
                    "function."
                )
            check_bounds(column)
    in_having = []
    if having is not None:
        for function, column in visit(having):
            check_bounds(column)
            if function is None and column not in groups:
                in_having.append(text(column))
    _enforce(found, unmatched, in_having)
    return found


def _enforce(found: AggregateAnalysis, unmatched: list[str], in_having: list[str]) -> None:
    if not found.functions:
        raise KsqlException(
            "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
        )
    if unmatched:
        raise KsqlException(
            f"Non-aggregate SELECT expression(s) not part of GROUP BY: {', '.join(unmatched)}\n"
            "Either add the column(s) to the GROUP BY or remove them from the SELECT."
        )
    if in_having:
        raise KsqlException(
            f"Non-aggregate HAVING expression not part of GROUP BY: {', '.join(in_having)}\n"
            "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
        )


class _Visitor:
    """Collects the columns of an expression, each with the aggregate function it is inside of."""

    def __init__(
        self,
        found: AggregateAnalysis,
        functions: Functions,
        groups: set[Expression],
        default_argument: ColumnRef,
    ) -> None:
        self._found = found
        self._functions = functions
        self._groups = groups
        self._default = default_argument
        self._in_group: Expression | None = None
        self._seen_aggregate = False
        self.columns: list[tuple[str | None, ColumnRef]] = []

    def visit(self, node: Expression, function: str | None) -> None:
        is_group = node in self._groups and self._in_group is None
        if is_group:
            self._in_group = node
        if isinstance(node, ColumnRef):
            self._column(node, function)
        elif isinstance(node, FunctionCall):
            self._call(node, function)
        else:
            for child in children(node):
                self.visit(child, function)
        if is_group:
            self._in_group = None

    def _column(self, node: ColumnRef, function: str | None) -> None:
        is_bound = node.name in WINDOW_BOUNDS
        if self._in_group is None or self._seen_aggregate or is_bound:
            self.columns.append((function, node))
        if not is_bound and node not in self._found.required:
            self._found.required.append(node)

    def _call(self, node: FunctionCall, function: str | None) -> None:
        kind = self._functions.kind(node.name)
        if kind is None:
            raise unknown_function(node.name, self._functions)
        if kind == "aggregate":
            if not node.arguments:
                node = replace(node, arguments=(self._default,))
            if function is not None:
                raise KsqlException(
                    f"Aggregate functions can not be nested: {function}({node.name}())"
                )
            self._seen_aggregate = True
            function = node.name
            self._found.arguments += node.arguments
            self._found.functions.append(node)
        for argument in node.arguments:
            self.visit(argument, function)
