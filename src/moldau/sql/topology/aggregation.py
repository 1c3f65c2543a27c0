"""GROUP BY and its aggregates as steps of a topology."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.planning.steps import AggregateStep, GroupStep
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.statements import Window
from moldau.sql.topology.aggregates import AggregateFunctions, aggregate_functions
from moldau.sql.topology.holders import Holder, Materialization, StreamHolder, TableHolder
from moldau.sql.topology.serdes import Serdes
from moldau.streams.machine.stateless import Filter, SelectKey
from moldau.streams.topology import aggregate_steps, stream_steps, table_steps
from moldau.streams.topology.aggregate_steps import Aggregation, Grouped
from moldau.streams.topology.handles import Materialized, TableHandle
from moldau.streams.topology.stream_steps import KEY
from moldau.streams.windows import EmitStrategy, SessionWindows, TimeWindows

_DAY_MS = 24 * 60 * 60 * 1000

Grouper = Callable[[Any], Any]


def build_aggregate(
    step: AggregateStep,
    group: GroupStep,
    holder: Holder,
    groupers: list[Grouper],
    serdes: Serdes,
    functions: Functions,
) -> Holder:
    """Group and aggregate a stream or a table."""
    work = aggregate_functions(step, group.schema, functions)
    try:
        values = serdes.value(step.value_format, step.store_schema)
    except KsqlException as error:
        raise KsqlException(
            "One of the functions used in the statement has an intermediate type that the value "
            "format can not handle. Please remove the function or change the format."
        ) from error
    store = Materialized(
        name=f"{step.name}-Materialize",
        key_serde=serdes.plain_key(step.key_format, step.store_schema),
        value_serde=values,
        retention=_retention(step),
    )
    if isinstance(holder, StreamHolder):
        table = _of_stream(step, group, holder, groupers, serdes, work, store)
    else:
        table = _of_table(step, group, holder, groupers, serdes, work, store)
    return _with_results(step, table, work, store)


def _key_of(groupers: list[Grouper]) -> Callable[[Any], Any]:
    """The key of a row's group; a row with a NULL in it belongs to none."""

    def key_of(row: Any) -> Any:
        key = tuple([each(row) for each in groupers])
        return None if None in key else key

    return key_of


def _of_stream(
    step: AggregateStep,
    group: GroupStep,
    holder: StreamHolder,
    groupers: list[Grouper],
    serdes: Serdes,
    work: AggregateFunctions,
    store: Materialized,
) -> TableHandle:
    handle = holder.handle
    if group.expressions is not None:
        key_of = _key_of(groupers)
        handle = stream_steps.step(
            handle, "KSTREAM-FILTER-", None, lambda: Filter(lambda key, row: row is not None)
        )
        handle = stream_steps.step(
            handle,
            "KSTREAM-KEY-SELECT-",
            None,
            lambda: SelectKey(lambda key, row: key_of(row)),
            **KEY,
        )
    handle = replace(
        handle,
        key_serde=serdes.plain_key(group.key_format, group.schema),
        value_serde=serdes.value(group.value_format, group.schema),
    )
    emit = EmitStrategy.ON_WINDOW_CLOSE if step.emit_final else EmitStrategy.ON_WINDOW_UPDATE
    what = Aggregation(
        initializer=work.initialize,
        aggregator=work.add,
        merger=work.merge,
        windows=windows_of(step.window, is_final=step.emit_final),
        emit=emit,
    )
    return aggregate_steps.aggregate_stream(
        Grouped(handle=handle, name=group.name),
        what,
        prefix="KSTREAM-AGGREGATE-",
        store=store,
        name=None,
        value_serde=None,
    )


def _of_table(
    step: AggregateStep,
    group: GroupStep,
    holder: TableHolder,
    groupers: list[Grouper],
    serdes: Serdes,
    work: AggregateFunctions,
    store: Materialized,
) -> TableHandle:
    key_of = _key_of(groupers)
    grouped = table_steps.group_table(
        holder.table,
        lambda key, row: (key_of(row), row),
        key_serde=serdes.plain_key(group.key_format, group.schema),
        value_serde=serdes.value(group.value_format, group.schema),
        name=None,
    )
    return table_steps.aggregate_table(
        grouped,
        group.name,
        prefix="KTABLE-AGGREGATE-",
        initializer=work.initialize,
        adder=work.add,
        subtractor=work.undo,
        store=store,
        name=None,
        value_serde=None,
    )


def _with_results(
    step: AggregateStep, table: TableHandle, work: AggregateFunctions, store: Materialized
) -> Holder:
    result = work.result

    def windowed(key: Any, row: Any) -> Any:
        return (*result(row), key.window.start, key.window.end)

    def plain(key: Any, row: Any) -> Any:
        return result(row)

    compute = plain if step.window is None else windowed
    mapped = table_steps.derive(
        table, "KTABLE-TRANSFORMVALUES-", compute, name=None, store=None, keeps_values=False
    )
    found = Materialization(
        store_name=store.name or "",
        store_schema=step.store_schema,
        schema=step.store_schema,
        key_format=step.key_format,
        window=step.key_format.window,
    ).then(lambda key, row, timestamp: compute(key, row), LogicalSchema(step.schema.columns))
    return TableHolder(table=mapped, schema=step.schema, materialization=found)


def windows_of(
    window: Window | None, *, is_final: bool = False
) -> TimeWindows | SessionWindows | None:
    """The windows of streams. Without GRACE PERIOD 24 hours are kept in all, or none if final."""
    if window is None:
        return None
    size = window.size.ms
    grace = 0 if is_final else max(_DAY_MS - size, 0)
    if window.grace is not None:
        grace = window.grace.ms
    if window.kind == "SESSION":
        return SessionWindows(inactivity_gap=size, grace=grace)
    advance = None if window.advance is None else window.advance.ms
    return TimeWindows(size=size, advance=advance, grace=grace)


def _retention(step: AggregateStep) -> int | None:
    window = step.window
    if window is None:
        return None
    if window.retention is not None:
        return window.retention.ms
    if not step.emit_final:
        return None
    # The store of final results is in the order of time, and keeps one millisecond more.
    return window.size.ms + (0 if window.grace is None else window.grace.ms) + 1
