"""SELECT lists: what * stands for, which columns are keys, and how results are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.compiled import Select
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning.node import Node
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import LogicalSchema, key_column
from moldau.sql.syntax.expressions import (
    ColumnRef,
    DecimalLiteral,
    Dereference,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    LongLiteral,
)
from moldau.sql.syntax.statements import AllColumns, SelectItem, SingleColumn, StructAll
from moldau.sql.types import Column, DecimalType, StructType
from moldau.sql.values import decimals


class Projection:
    """Whether a SELECT list contains an expression."""

    def __init__(self, items: Sequence[SelectItem]) -> None:
        self.items = tuple(items)
        self._all = any(isinstance(each, AllColumns) and each.source is None for each in items)
        self._sources = {each.source for each in items if isinstance(each, AllColumns)}
        self.singles = {each.expression for each in items if isinstance(each, SingleColumn)}
        self._structs = {each.base for each in items if isinstance(each, StructAll)}

    def contains(self, expression: Expression) -> bool:
        if self._all:
            return True
        if isinstance(expression, ColumnRef) and expression.source in self._sources:
            return expression.source is not None
        return expression in self.singles or expression in self._structs


def select_expressions(
    parent: Node, items: Sequence[SelectItem], target: LogicalSchema | None
) -> list[Select]:
    """The columns of a SELECT list. `target` is the schema that INSERT INTO writes to."""
    found: list[Select] = []
    for index, item in enumerate(items):
        if isinstance(item, SingleColumn):
            expression = parent.resolve_select(index, item.expression)
            found.append(Select(item.alias or "", _as_target(expression, target, index)))
        elif isinstance(item, AllColumns):
            for name in parent.resolve_star(item.source):
                found.append(Select(name, ColumnRef(name, position=item.position)))
        elif isinstance(item, StructAll):
            base = parent.resolve_select(index, item.base)
            for name, _ in _struct_of(parent.schema, base).fields:
                found.append(Select(name, Dereference(base, name)))
    return found


def _as_target(expression: Expression, target: LogicalSchema | None, index: int) -> Expression:
    """A numeric constant takes the scale of the DECIMAL column it is inserted into."""
    if target is None or index >= len(target.columns):
        return expression
    wanted = target.columns[index].type
    if not isinstance(wanted, DecimalType):
        return expression
    match expression:
        case IntegerLiteral(value) | LongLiteral(value):
            number = Decimal(value)
        case DoubleLiteral(value):
            number = Decimal(repr(value))
        case DecimalLiteral(value):
            number = value
        case _:
            return expression
    source = decimals.type_of(number)
    if source.scale > wanted.scale or source.precision - source.scale > (
        wanted.precision - wanted.scale
    ):
        return expression
    return DecimalLiteral(decimals.rescale(number, wanted.scale), position=expression.position)


def _struct_of(schema: LogicalSchema, expression: Expression) -> StructType:
    if isinstance(expression, ColumnRef):
        column = schema.find(expression.name)
        if column is not None and isinstance(column.type, StructType):
            return column.type
        raise KsqlException(f"Column `{expression.name}` is not a STRUCT type.")
    if isinstance(expression, Dereference):
        for name, kind in _struct_of(schema, expression.base).fields:
            if name == expression.field:
                if isinstance(kind, StructType):
                    return kind
                raise KsqlException(f"Field {name} is not a STRUCT type.")
        raise KsqlException(f"Field {expression.field} was not found on STRUCT.")
    raise KsqlException(f"Unsupported struct column expression: {type(expression).__name__}")


def projection_schema(
    parent: LogicalSchema, selects: Iterable[Select], functions: Functions
) -> LogicalSchema:
    """The schema of a SELECT list: key columns stay key columns, in the order of the key."""
    types = ExpressionTypes(parent, functions)
    selects = list(selects)
    places = {each.name: index for index, each in enumerate(parent.key)}
    keys = [
        each
        for each in selects
        if isinstance(each.expression, ColumnRef) and each.expression.name in places
    ]
    ordered = sorted(keys, key=lambda each: places[each.expression.name])  # type: ignore[attr-defined]
    pending = iter(ordered)
    columns: list[Column] = []
    for select in selects:
        if select in keys:
            key = next(pending)
            kind = types.of(key.expression)
            if kind is not None:
                columns.append(key_column(key.alias, kind))
            continue
        kind = types.of(select.expression)
        if kind is None:
            raise KsqlException(
                "Can't infer a type of null. Please explicitly cast it to a required type, e.g. "
                "CAST(null AS VARCHAR)."
            )
        columns.append(Column(select.alias, kind))
    return LogicalSchema(columns)
