"""Joins as steps of a topology."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.planning.steps import ForeignKeyJoinStep, JoinStep
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.topology.holders import Holder, StreamHolder, TableHolder
from moldau.sql.topology.serdes import Serdes
from moldau.streams.machine.context import Processor
from moldau.streams.records import Record
from moldau.streams.topology import join_steps, stream_steps, table_steps
from moldau.streams.topology.handles import Handle, Materialized
from moldau.streams.topology.join_steps import StreamJoinStep
from moldau.streams.windows import JoinWindows

_DAY_MS = 24 * 60 * 60 * 1000


def _joiner(
    left: LogicalSchema, right: LogicalSchema, result: LogicalSchema
) -> Callable[[Any, Any], Any]:
    """Rows side by side; a key that is no column of either side has a place, but no value."""
    no_left, no_right = (None,) * len(left.value), (None,) * len(right.value)
    more = (None,) * (len(result.value) - len(no_left) - len(no_right))

    def join(one: Any, other: Any) -> Any:
        return (no_left if one is None else one) + (no_right if other is None else other) + more

    return join


def by_key(step: JoinStep, left: Holder, right: Holder, serdes: Serdes) -> Holder:
    """A join of two streams, a stream and a table, or two tables."""
    formats = step.left_format, step.right_format
    if step.join == "RIGHT":
        left, right = right, left
        formats = step.right_format, step.left_format
    join = _joiner(left.schema, right.schema, step.schema)
    left_outer, right_outer = step.join != "INNER", step.join == "OUTER"
    if isinstance(left, TableHolder):
        if not isinstance(right, TableHolder):
            raise KsqlException("a table cannot be joined with a stream")
        table = table_steps.join_tables(
            left.table,
            right.table,
            join,
            left_outer=left_outer,
            right_outer=right_outer,
            name=None,
            store=None,
        )
        return TableHolder(table=table, schema=step.schema)
    stream = left.with_serdes(
        serdes.key(step.key_format, left.schema), serdes.value(formats[0], left.schema)
    )

    def join_with_key(key: Any, one: Any, other: Any) -> Any:
        return join(one, other)

    if isinstance(right, TableHolder):
        handle = join_steps.join_stream_table(
            stream, right.table, join_with_key, left=left_outer, name=step.name, grace_ms=None
        )
        return StreamHolder(handle=handle, schema=step.schema)
    other = right.with_serdes(
        serdes.key(step.key_format, right.schema), serdes.value(formats[1], right.schema)
    )
    handle = StreamJoinStep(
        stream,
        other,
        join_with_key,
        _windows(step),
        left_outer=left_outer,
        right_outer=right_outer,
        name=step.name,
        store_name=None,
        # Without GRACE PERIOD a row without a match comes out at once, not when its window closes.
        waits_for_grace=step.grace_ms is not None,
    ).add()
    return StreamHolder(handle=handle, schema=step.schema)


def _windows(step: JoinStep) -> JoinWindows:
    before, after = step.before_ms, step.after_ms
    return JoinWindows(
        before=before, after=after, grace=_DAY_MS if step.grace_ms is None else step.grace_ms
    )


def foreign_key(
    step: ForeignKeyJoinStep,
    left: Holder,
    right: Holder,
    key: Callable[[Any], Any],
    serdes: Serdes,
) -> Holder:
    """A join of a table by what an expression over its rows gives."""
    if not isinstance(left, TableHolder) or not isinstance(right, TableHolder):
        raise KsqlException("a join by foreign key is one of tables")
    right_keys = right.table.handle.key_serde
    if right_keys is None:
        raise KsqlException("the right table of a join by foreign key has no key format")

    def key_of(_key: Any, row: Any) -> Any:
        found = key(row)
        return None if found is None else (found,)

    table = join_steps.join_table(
        left.with_serdes(
            serdes.key(step.key_format, left.schema), serdes.value(step.value_format, left.schema)
        ),
        right.with_serdes(right_keys, serdes.value(step.value_format, right.schema)),
        _joiner(left.schema, right.schema, step.schema),
        (step.join == "LEFT", False),
        key_of,
        Materialized(
            key_serde=serdes.key(step.key_format, step.schema),
            value_serde=serdes.value(step.value_format, step.schema),
        ),
        None,
    )
    return TableHolder(table=table, schema=step.schema)


class _Output(Processor):
    def __init__(self, on_row: Callable[[Any, Any, int], None]) -> None:
        self._on_row = on_row

    def process(self, record: Record[Any, Any]) -> None:
        self._on_row(record.key, record.value, record.timestamp)


def add_output(handle: Handle, on_row: Callable[[Any, Any, int], None]) -> None:
    """Ends a push query: its rows go to a function."""
    stream_steps.process(handle, "KSTREAM-PROCESSOR-", lambda: _Output(on_row), (), None)
