"""The functions of an aggregation, written as source and compiled once per query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning.steps import AggregateStep
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import ColumnRef, FunctionCall
from moldau.sql.syntax.formatting import text

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AggregateFunctions:
    """What the steps of streams call: rows in, aggregates and results out."""

    initialize: Callable[[], Row]
    add: Callable[[Any, Row, Row], Row]
    undo: Callable[[Any, Row, Row], Row]
    merge: Callable[[Any, Row, Row], Row]
    result: Callable[[Row], Row]


def aggregate_functions(
    step: AggregateStep, input_schema: LogicalSchema, functions: Functions
) -> AggregateFunctions:
    """The functions of an aggregation over rows of the schema."""
    types = ExpressionTypes(input_schema, functions)
    calls = [types.aggregate(each) for each in step.functions]
    arguments = [_arguments(each, input_schema, types) for each in step.functions]
    kept = len(step.columns)
    names: dict[str, Any] = {}
    for index, each in enumerate(calls):
        names |= {
            f"init{index}": each.initialize,
            f"add{index}": each.add,
            f"undo{index}": each.undo,
            f"merge{index}": each.merge,
            f"map{index}": each.map_result,
        }
    count = range(len(calls))
    start = ["None"] * kept
    columns = [f"r[{i}]" for i in range(kept)]
    same = [f"a[{i}]" for i in range(kept)]
    first = [f"(b[{i}] if a[{i}] is None else a[{i}])" for i in range(kept)]
    return AggregateFunctions(
        initialize=_compiled("", [*start, *(f"init{i}()" for i in count)], names),
        add=_compiled(
            "k, r, a", [*columns, *(f"add{i}({arguments[i]}, a[{kept + i}])" for i in count)], names
        ),
        undo=_compiled(
            "k, r, a",
            [*columns, *(f"undo{i}({arguments[i]}, a[{kept + i}])" for i in count)],
            names,
        ),
        merge=_compiled(
            "k, a, b",
            [*first, *(f"merge{i}(a[{kept + i}], b[{kept + i}])" for i in count)],
            names,
        ),
        result=_compiled("a", [*same, *(f"map{i}(a[{kept + i}])" for i in count)], names),
    )


def _arguments(call: FunctionCall, schema: LogicalSchema, types: ExpressionTypes) -> str:
    """The value that a row adds: the only column argument, or a tuple of them."""
    kinds = [types.of(each) for each in call.arguments]
    count = len(kinds) - types.functions.init_argument_count(call.name, kinds)
    places = []
    for each in call.arguments[:count]:
        if not isinstance(each, ColumnRef) or each.name not in schema.value_index:
            raise KsqlException(f"Could not find column for expression: {text(each)}")
        places.append(f"r[{schema.value_index[each.name]}]")
    return places[0] if len(places) == 1 else f"({', '.join(places)})"


def _compiled(parameters: str, parts: Sequence[str], names: dict[str, Any]) -> Any:
    shown = ", ".join(parts) + ("," if len(parts) == 1 else "")
    return eval(f"lambda {parameters}: ({shown})", dict(names))
