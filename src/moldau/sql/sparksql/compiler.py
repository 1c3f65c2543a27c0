"""Plans as Spark SQL, where the result is provably that of the streams topology.

What is the same: filters and projections of streams over plain columns. Formats are not Spark's:
the same serdes read and write the records. What differs is refused with the reason. ksqlDB's NULLs,
for one, are not SQL's: a comparison with NULL is false, and arithmetic with NULL is an error, which
makes a condition false and a column NULL. So arithmetic is compiled only where an error and a NULL
come to the same: as a whole column, and in comparisons that AND combines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning.steps import FilterStep, SelectStep, SinkStep, SourceStep, Step
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import (
    Arithmetic,
    Between,
    BooleanLiteral,
    Cast,
    ColumnRef,
    Comparison,
    Expression,
    InList,
    IntegerLiteral,
    IsNull,
    Logical,
    LongLiteral,
    Not,
    SearchedCase,
    StringLiteral,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    SqlType,
)

__all__ = ["SPARK_TYPES", "NotTheSame", "SparkPlan", "compiled"]

#: How columns of these types look in Spark: times are numbers, as in the engine's rows.
SPARK_TYPES: Final[dict[SqlType, str]] = {
    BOOLEAN: "boolean",
    INTEGER: "int",
    BIGINT: "bigint",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "binary",
    DATE: "int",
    TIME: "bigint",
    TIMESTAMP: "bigint",
}
#: Formats whose bytes need no registry.
_FORMATS: Final = ("JSON", "KAFKA", "DELIMITED", "NONE")
_WHOLE: Final = (INTEGER, BIGINT)


class NotTheSame(KsqlException):
    """Spark SQL would not give the same result, or nobody has shown that it does."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"ENGINE='spark-sql' cannot run this query: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlan:
    """Operators on a DataFrame whose columns are those of the source, with the key and the pseudo
    columns."""

    source: DataSource
    #: What the rows that are read have, and what is written.
    schema: LogicalSchema
    sink_schema: LogicalSchema
    sink: SinkStep | None
    filters: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    #: Whether sums wrap around: Spark does that if spark.sql.ansi.enabled is false.
    has_arithmetic: bool

    def __str__(self) -> str:
        lines = [f"read {self.source.topic} as {self.source.value_format.format.name}"]
        lines += [f"filter {each}" for each in self.filters]
        shown = ", ".join(f"{source} AS `{name}`" for name, source in self.columns)
        lines.append(f"select {shown}")
        if self.sink is not None:
            lines.append(f"write {self.sink.topic} as {self.sink.value_format.format.name}")
        return "\n".join(f" > [ SPARK SQL ] {each}" for each in lines)


def compiled(step: Step, functions: Functions) -> SparkPlan:
    """Raises NotTheSame."""
    return _Compiler(functions).plan(step)


class _Compiler:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._types: ExpressionTypes | None = None
        self._arithmetic = False

    def plan(self, step: Step) -> SparkPlan:
        sink = step if isinstance(step, SinkStep) else None
        body = step.input if isinstance(step, SinkStep) else step
        selects: list[SelectStep] = []
        filters: list[FilterStep] = []
        while not isinstance(body, SourceStep):
            if isinstance(body, SelectStep) and not selects and not filters:
                selects.append(body)
            elif isinstance(body, FilterStep):
                filters.append(body)
            else:
                raise NotTheSame(
                    "only filters and projections of one stream are the same; use the streams "
                    "engine for joins, groups, table functions, PARTITION BY and UNION"
                )
            body = body.input
        self._check_source(body.source, sink)
        self._types = ExpressionTypes(body.schema, self._functions)
        conditions = [
            self._conjunct(each)
            for filtered in reversed(filters)
            for each in _conjuncts(filtered.expression)
        ]
        if not selects:
            raise NotTheSame("the query has no SELECT list")
        columns = [(each.alias, self._column(each.expression)) for each in selects[0].selects]
        return SparkPlan(
            source=body.source,
            schema=body.schema,
            sink_schema=step.schema,
            sink=sink,
            filters=tuple(conditions),
            columns=tuple(columns),
            has_arithmetic=self._arithmetic,
        )

    def _check_source(self, source: DataSource, sink: SinkStep | None) -> None:
        if source.kind != "STREAM":
            raise NotTheSame(f"{source.name} is a table, whose rows replace one another")
        if source.is_windowed or source.timestamp is not None or source.schema.headers:
            raise NotTheSame(f"{source.name} has windows, header columns or a column of time")
        if sink is not None and sink.timestamp is not None:
            raise NotTheSame("the query takes the time of its rows from a column")
        formats = [source.key_format.format, source.value_format.format]
        if sink is not None:
            formats += [sink.key_format.format, sink.value_format.format]
        for each in formats:
            if each.name not in _FORMATS:
                raise NotTheSame(f"the format {each.name} needs a schema registry")
        for column in source.schema.columns:
            if column.type not in SPARK_TYPES:
                raise NotTheSame(f"the column {column.name} is of type {column.type}")

    def _type(self, node: Expression) -> SqlType | None:
        if self._types is None:
            raise NotTheSame("the types of the query are not known")
        return self._types.of(node)

    # A whole column: errors are NULL.

    def _column(self, node: Expression) -> str:
        if isinstance(node, Arithmetic):
            return self._number(node)
        return self._value(node)

    def _number(self, node: Expression) -> str:
        if not isinstance(node, Arithmetic):
            return self._value(node)
        if node.operator not in ("+", "-", "*"):
            raise NotTheSame(f"{text(node)}: division is not shown to be the same")
        sides = self._type(node.left), self._type(node.right)
        if not all(each in _WHOLE for each in sides):
            raise NotTheSame(f"{text(node)}: only INTEGER and BIGINT are computed the same way")
        self._arithmetic = True
        result = SPARK_TYPES[BIGINT if BIGINT in sides else INTEGER]
        left, right = self._number(node.left), self._number(node.right)
        return f"(CAST({left} AS {result}) {node.operator} CAST({right} AS {result}))"

    # What AND combines: an error, NULL and false are the same.

    def _conjunct(self, node: Expression) -> str:
        match node:
            case Comparison():
                return self._comparison(node, sums=True)
            case ColumnRef():
                return f"coalesce({self._value(node)}, false)"
        return self._value(node)

    def _comparison(self, node: Comparison, *, sums: bool = False) -> str:
        write = self._number if sums else self._value
        kinds = {self._type(node.left), self._type(node.right)}
        fits = kinds <= set(_WHOLE) or (kinds == {STRING} and node.operator in ("=", "<>"))
        fits = fits or (kinds == {BOOLEAN} and node.operator in ("=", "<>"))
        if not fits or node.operator not in ("=", "<>", "<", "<=", ">", ">="):
            raise NotTheSame(
                f"{text(node)}: whole numbers are compared the same way, and texts with = and <>"
            )
        return f"coalesce(({write(node.left)} {node.operator} {write(node.right)}), false)"

    # Anywhere: never an error.

    def _value(self, node: Expression) -> str:
        match node:
            case ColumnRef(name):
                return _quoted(name)
            case BooleanLiteral(value):
                return "true" if value else "false"
            case IntegerLiteral(value):
                return f"({value})" if value < 0 else str(value)
            case LongLiteral(value):
                return f"CAST('{value}' AS bigint)"
            case StringLiteral(value):
                return _string(value)
            case Comparison():
                return self._comparison(node)
            case Between(value, low, high):
                both = Comparison(">=", value, low), Comparison("<=", value, high)
                return f"({self._comparison(both[0])} AND {self._comparison(both[1])})"
            case Logical(operator, left, right):
                return f"({self._condition(left)} {operator} {self._condition(right)})"
            case Not(value):
                return f"(NOT {self._condition(value)})"
            case IsNull(value, negated):
                return f"({self._value(value)} IS {'NOT ' * negated}NULL)"
        return self._composed(node)

    def _condition(self, node: Expression) -> str:
        if isinstance(node, ColumnRef):
            raise NotTheSame(f"{text(node)} may be NULL, which is an error in ksqlDB")
        return self._value(node)

    def _composed(self, node: Expression) -> str:
        match node:
            case InList(value, items):
                each = [self._comparison(Comparison("=", value, item)) for item in items]
                return f"({' OR '.join(each)})"
            case Cast(value, kind):
                source = self._type(value)
                if source == kind or (source in _WHOLE and kind in (BIGINT, STRING)):
                    return f"CAST({self._value(value)} AS {SPARK_TYPES[kind]})"
            case SearchedCase(whens, default):
                parts = [
                    f"WHEN {self._condition(each.condition)} THEN {self._value(each.result)}"
                    for each in whens
                ]
                last = "" if default is None else f" ELSE {self._value(default)}"
                return f"CASE {' '.join(parts)}{last} END"
        raise NotTheSame(f"{text(node)} is not shown to be the same in Spark SQL")


def _conjuncts(node: Expression) -> list[Expression]:
    if isinstance(node, Logical) and node.operator == "AND":
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _string(value: str) -> str:
    """As bytes: no setting of Spark changes how they are read."""
    return f"CAST(X'{value.encode().hex()}' AS string)" if value else "''"
