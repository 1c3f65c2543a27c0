"""Steps with their schemas: the operations on streams and tables that nodes are built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moldau.sql.analysis.magic import with_timestamps
from moldau.sql.analysis.names import AliasGenerator, aggregate_column, table_function_column
from moldau.sql.errors import KsqlException
from moldau.sql.expressions.compiled import Compiler, Select, ignore_errors
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning.node import Built, PlanContext
from moldau.sql.planning.steps import (
    AggregateStep,
    FilterStep,
    FlatMapStep,
    GroupStep,
    SelectKeyStep,
    SelectStep,
)
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import SCHEMA_ID, FormatInfo, KeyFormat, WindowInfo
from moldau.sql.sources.schema import WINDOWEND, WINDOWSTART, LogicalSchema, key_column
from moldau.sql.syntax.expressions import ColumnRef, Expression, FunctionCall, NullLiteral
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import Window
from moldau.sql.types import BIGINT, Column, SqlType

_NO_WINDOWED_REPARTITION = (
    "Implicit repartitioning of windowed sources is not supported. "
    "See https://github.com/confluentinc/ksql/issues/4385."
)


def compiler(schema: LogicalSchema, functions: Functions) -> Compiler:
    """Only to check expressions: nothing is computed while a query is planned."""
    return Compiler(schema, functions, ignore_errors)


def internal(info: FormatInfo) -> FormatInfo:
    """A format as internal topics use it."""
    return info.without(SCHEMA_ID)


def internal_key(key_format: KeyFormat) -> KeyFormat:
    if key_format.format.name == "NONE":
        raise KsqlException("NONE can not be used for internal topics")
    return KeyFormat(internal(key_format.format), key_format.features, key_format.window)


def filtered(
    built: Built, expression: Expression, context: PlanContext, name: tuple[str, ...]
) -> Built:
    """WHERE and HAVING."""
    condition = with_timestamps(expression)
    compiler(built.schema, context.functions).type_of(condition, "Predicate")
    step = FilterStep(
        context=name,
        schema=built.schema,
        kind=built.step.kind,
        input=built.step,
        expression=condition,
    )
    return Built(step, built.key_format)


def selected(
    built: Built,
    key_names: Sequence[str],
    selects: Sequence[Select],
    value_format: FormatInfo,
    context: PlanContext,
    name: tuple[str, ...],
) -> Built:
    """A projection of the value; the key stays, perhaps under other names."""
    compiled = compiler(built.schema, context.functions)
    names = list(key_names) or [each.name for each in built.schema.key]
    keys = [
        key_column(name_of, each.type)
        for name_of, each in zip(names, built.schema.key, strict=False)
    ]
    values = [Column(each.alias, compiled.type_of(each.expression)) for each in selects]
    step = SelectStep(
        context=name,
        schema=LogicalSchema([*keys, *values]),
        kind=built.step.kind,
        input=built.step,
        selects=tuple(selects),
        key_format=replace(built.key_format, format=internal(built.key_format.format)),
        value_format=internal(value_format),
    )
    return Built(step, built.key_format)


def repartition_needed(schema: LogicalSchema, expressions: Sequence[Expression]) -> bool:
    """Whether grouping or joining by these expressions needs a new key."""
    if len(schema.key) != 1 or len(expressions) != 1:
        return True
    only = expressions[0]
    return not isinstance(only, ColumnRef) or only.name != schema.key[0].name


def is_null_key(expressions: Sequence[Expression]) -> bool:
    """PARTITION BY NULL."""
    if not any(isinstance(each, NullLiteral) for each in expressions):
        return False
    if len(expressions) > 1:
        raise KsqlException("Cannot PARTITION BY multiple columns including NULL")
    return True


def rekeyed_schema(
    schema: LogicalSchema, expressions: Sequence[Expression], functions: Functions
) -> LogicalSchema:
    """New key columns; an expression that is no column also becomes a value column."""
    types = ExpressionTypes(schema, functions)
    kinds = [types.of(each) for each in expressions]
    if is_null_key(expressions):
        return LogicalSchema(schema.value)
    aliases = AliasGenerator([schema])
    keys, added = [], []
    for expression, kind in zip(expressions, kinds, strict=True):
        if kind is None:
            raise KsqlException(f"Cannot infer the type of {text(expression)}")
        if isinstance(expression, ColumnRef):
            keys.append(key_column(expression.name, kind))
            continue
        alias = aliases.alias_for(expression)
        keys.append(key_column(alias, kind))
        added.append(Column(alias, kind))
    return LogicalSchema([*keys, *schema.value, *added])


def rekeyed(
    built: Built,
    expressions: tuple[Expression, ...],
    value_format: FormatInfo,
    context: PlanContext,
    name: tuple[str, ...],
    *,
    key_format: KeyFormat | None = None,
    force: bool = False,
) -> Built:
    """Rows under a new key, or in a new key format."""
    needed = repartition_needed(built.schema, expressions)
    changes = key_format is not None and key_format != built.key_format
    if not (needed or changes or force):
        return built
    is_table = built.step.kind == "TABLE"
    if is_table:
        _check_table_rekey(built, expressions, needed=needed, force=force)
    elif (needed or not force) and built.key_format.is_windowed:
        raise KsqlException(_NO_WINDOWED_REPARTITION)
    types = _types(built.schema, expressions, context)
    new_format = context.formats.sanitized(
        built.key_format if key_format is None else key_format, types, may_change=not is_table
    )
    for each in expressions:
        if not isinstance(each, NullLiteral):
            compiler(built.schema, context.functions).type_of(each, "SelectKey")
    step = SelectKeyStep(
        context=name,
        schema=rekeyed_schema(built.schema, expressions, context.functions),
        kind=built.step.kind,
        input=built.step,
        expressions=expressions,
        key_format=new_format,
        value_format=internal(value_format),
    )
    return Built(step, new_format)


def _check_table_rekey(
    built: Built, expressions: tuple[Expression, ...], *, needed: bool, force: bool
) -> None:
    if len(built.schema.key) > 1:
        raise KsqlException(
            "Cannot repartition a TABLE source. If this is a join, joins on tables with multiple "
            "columns is not yet supported."
        )
    if needed:
        shown = ", ".join(text(each) for each in expressions)
        raise KsqlException(
            "Cannot repartition a TABLE source. If this is a join, make sure that the criteria "
            f"uses the TABLE's key column {built.schema.key[0].name} instead of [{shown}]"
        )
    if built.key_format.is_windowed:
        more = ""
        if force:
            more = (
                " As a result, ksqlDB does not support joins on windowed sources with "
                "Schema-Registry-enabled key formats (AVRO, JSON_SR, PROTOBUF) at this time. "
                "Please repartition your sources to use a different key format before performing "
                "the join."
            )
        raise KsqlException(_NO_WINDOWED_REPARTITION + more)


def _types(
    schema: LogicalSchema, expressions: Sequence[Expression], context: PlanContext
) -> list[SqlType]:
    types = ExpressionTypes(schema, context.functions)
    return [kind for each in expressions if (kind := types.of(each)) is not None]


def flat_mapped(
    built: Built,
    functions: Sequence[FunctionCall],
    context: PlanContext,
    name: tuple[str, ...],
) -> Built:
    """Rows for each value of table functions."""
    step = FlatMapStep(
        context=name,
        schema=flat_map_schema(built.schema, functions, context.functions),
        kind=built.step.kind,
        input=built.step,
        functions=tuple(functions),
    )
    return Built(step, built.key_format)


def flat_map_schema(
    schema: LogicalSchema, calls: Sequence[FunctionCall], functions: Functions
) -> LogicalSchema:
    types = ExpressionTypes(schema, functions)
    added = [
        Column(table_function_column(index), types.table(each).result)
        for index, each in enumerate(calls)
    ]
    return LogicalSchema([*schema.key, *schema.value, *added])


def grouped(
    built: Built,
    expressions: tuple[Expression, ...],
    value_format: FormatInfo,
    context: PlanContext,
    name: tuple[str, ...],
) -> Built:
    """Rows grouped by expressions, or by their key where that is the same."""
    is_table = built.step.kind == "TABLE"
    if not is_table and not repartition_needed(built.schema, expressions):
        if built.key_format.is_windowed:
            raise KsqlException("Group by on windowed should always require rekey")
        step = GroupStep(
            context=name,
            schema=built.schema,
            kind=built.step.kind,
            input=built.step,
            expressions=None,
            key_format=internal_key(built.key_format),
            value_format=internal(value_format),
        )
        return Built(step, built.key_format)
    key_format = built.key_format
    if key_format.format.name == "NONE" and not is_table:
        key_format = KeyFormat(FormatInfo.of(context.default_key_format))
    if is_table or key_format.is_windowed:
        key_format = KeyFormat(key_format.format, key_format.features)
    types = _types(built.schema, expressions, context)
    key_format = context.formats.sanitized(key_format, types, may_change=True)
    aliases = AliasGenerator([built.schema])
    keys = []
    for each in expressions:
        kind = compiler(built.schema, context.functions).type_of(each, "Group By")
        alias = each.name if isinstance(each, ColumnRef) else aliases.alias_for(each)
        keys.append(key_column(alias, kind))
    step = GroupStep(
        context=name,
        schema=LogicalSchema([*keys, *built.schema.value]),
        kind=built.step.kind,
        input=built.step,
        expressions=expressions,
        key_format=internal_key(key_format),
        value_format=internal(value_format),
    )
    return Built(step, key_format)


def window_info(window: Window) -> WindowInfo:
    return WindowInfo(window.kind, None if window.kind == "SESSION" else window.size.ms)


def aggregated(
    built: Built,
    columns: Sequence[str],
    calls: Sequence[FunctionCall],
    window: Window | None,
    value_format: FormatInfo,
    context: PlanContext,
    name: tuple[str, ...],
    *,
    emit_final: bool,
) -> Built:
    """Aggregates of grouped rows."""
    is_table = built.step.kind == "TABLE"
    types = ExpressionTypes(built.schema, context.functions)
    if is_table and window is not None:
        raise KsqlException("Windowing not supported for table aggregations.")
    found = [types.aggregate(each) for each in calls]
    if is_table:
        _check_undoable(
            [call.name for call, each in zip(calls, found, strict=True) if each.undo is None]
        )
    key_format = built.key_format
    if window is not None:
        key_format = KeyFormat(key_format.format, key_format.features, window_info(window))
    key_types = [each.type for each in built.schema.key]
    if not is_table:
        key_format = context.formats.sanitized(key_format, key_types, may_change=False)
    kept = [each for column in columns if (each := built.schema.find_value(column)) is not None]
    values = [*kept, *(Column(aggregate_column(i), each.result) for i, each in enumerate(found))]
    stored = [Column(aggregate_column(i), each.aggregate_type) for i, each in enumerate(found)]
    if window is not None:
        values += [Column(WINDOWSTART, BIGINT), Column(WINDOWEND, BIGINT)]
    step = AggregateStep(
        context=name,
        schema=LogicalSchema([*built.schema.key, *values]),
        kind="TABLE",
        input=built.step,
        columns=tuple(columns),
        functions=tuple(calls),
        window=window,
        emit_final=emit_final,
        key_format=internal_key(key_format),
        value_format=internal(value_format),
        store_schema=LogicalSchema([*built.schema.key, *kept, *stored]),
    )
    return Built(step, key_format)


def _check_undoable(names: list[str]) -> None:
    unsupported = list(dict.fromkeys(names))
    if not unsupported:
        return
    plural = "" if len(unsupported) == 1 else "s"
    shown = unsupported[0]
    if len(unsupported) > 1:
        shown = f"{', '.join(unsupported[:-1])} and {unsupported[-1]}"
    raise KsqlException(
        f"The aggregation function{plural} {shown} cannot be applied to a table source, only to a "
        "stream source."
    )
