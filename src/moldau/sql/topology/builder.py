"""Builds a topology from a plan, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from moldau.sql.errors import KsqlException, QueryFailed
from moldau.sql.expressions.compiled import Compiler, OnError
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning.building import is_null_key
from moldau.sql.planning.formats import Formats
from moldau.sql.planning.steps import (
    AggregateStep,
    FilterStep,
    FlatMapStep,
    ForeignKeyJoinStep,
    GroupStep,
    JoinStep,
    SelectKeyStep,
    SelectStep,
    SinkStep,
    SourceStep,
    Step,
    UnionStep,
)
from moldau.sql.ports import Functions, SchemaRegistry
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import ColumnRef, FunctionCall, columns
from moldau.sql.syntax.formatting import text
from moldau.sql.topology import joining
from moldau.sql.topology.aggregation import build_aggregate
from moldau.sql.topology.holders import Holder, Materialization, StreamHolder, TableHolder
from moldau.sql.topology.processors import FlatMapRows, SetTime
from moldau.sql.topology.serdes import Serdes, SinkSerde
from moldau.sql.topology.sources import SourceBuilder
from moldau.sql.topology.times import time_reader
from moldau.streams.machine.context import Processor
from moldau.streams.machine.stateless import Filter, Map, MapValues, PassThrough
from moldau.streams.records import Windowed
from moldau.streams.topology import stream_steps, table_steps
from moldau.streams.topology.handles import Handle, Materialized
from moldau.streams.topology.stream_steps import KEY, VALUE
from moldau.streams.topology.streams_builder import StreamsBuilder
from moldau.streams.topology.topology import Topology

#: Receives what could not be computed: the step, the message, the error, the row.
ProcessingLog = Callable[[str, str, Exception, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """What building a topology needs beside the plan."""

    functions: Functions
    formats: Formats
    registry: SchemaRegistry | None
    log: ProcessingLog
    application_id: str = "ksql"
    timestamp_throws: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTopology:
    """A query's topology. `output` is set for queries without a sink: it is called per row."""

    topology: Topology
    schema: LogicalSchema
    materialization: Materialization | None


#: Key, row (None: deleted) and timestamp of a result of a push query.
OnRow = Callable[[Any, Any, int], None]


def build_topology(plan: Step, context: BuildContext, on_row: OnRow | None = None) -> BuiltTopology:
    """The topology of a plan; rows of a plan without a sink go to `on_row`."""
    builder = _TopologyBuilder(plan, context)
    if isinstance(plan, SinkStep):
        holder = builder.sink(plan)
    else:
        holder = builder.build(plan)
        if on_row is not None:
            builder.output(holder, on_row)
    found = holder.materialization if isinstance(holder, TableHolder) else None
    return BuiltTopology(
        topology=builder.streams.build(), schema=holder.schema, materialization=found
    )


def _is_same(step: SelectStep, schema: LogicalSchema) -> bool:
    """Whether a projection only gives other names to all columns, as each side of a join has it."""
    names = [
        each.expression.name if isinstance(each.expression, ColumnRef) else None
        for each in step.selects
    ]
    return names == [each.name for each in schema.value]


def _process(holder: StreamHolder, step: Step, supplier: Callable[[], Processor]) -> Handle:
    """A step that keeps the key. Its name is given, so that it takes no number."""
    if isinstance(step, FilterStep | SelectStep):
        # ksqlDB looks at the rows before these steps, which takes one.
        holder.handle.builder.new_name("KSTREAM-PEEK-")
    return stream_steps.process(holder.handle, "KSTREAM-PROCESSVALUES-", supplier, (), step.name)


class _TopologyBuilder:
    def __init__(self, plan: Step, context: BuildContext) -> None:
        self._context = context
        self._functions = context.functions
        self._serdes = Serdes(context.formats, context.registry)
        self._internal = Serdes(context.formats, context.registry, context.application_id)
        self.streams = StreamsBuilder()
        self._sources = SourceBuilder(
            self.streams,
            self._serdes,
            self._internal,
            plan,
            throws=context.timestamp_throws,
        )
        self._read: list[tuple[SourceStep, Holder]] = []

    def _on_error(self, step: Step) -> OnError:
        log, name = self._context.log, step.name

        def failed(message: str, error: Exception, row: Any) -> None:
            if isinstance(error, QueryFailed):
                raise error
            log(name, message, error, row)

        return failed

    def _compiler(self, step: Step, schema: LogicalSchema) -> Compiler:
        return Compiler(schema, self._functions, self._on_error(step))

    def build(self, step: Step) -> Holder:
        match step:
            case SourceStep():
                return self._source(step)
            case UnionStep():
                return self._union(step)
            case FilterStep():
                return self._filter(step)
            case SelectStep():
                return self._select(step)
            case SelectKeyStep():
                return self._select_key(step)
            case FlatMapStep():
                return self._flat_map(step)
            case AggregateStep():
                return self._aggregate(step)
            case JoinStep() | ForeignKeyJoinStep():
                return self._join(step)
        raise KsqlException(f"unknown step: {step.name}")

    def _source(self, step: SourceStep) -> Holder:
        """A topic is read once, also if both sides of a UNION are made from it."""
        for before, holder in self._read:
            if before == step:
                return holder
        holder = self._sources.build(step)
        self._read.append((step, holder))
        return holder

    def _union(self, step: UnionStep) -> Holder:
        first, *others = [self._stream(each) for each in step.branches]
        handle = first.handle
        for each in others:
            handle = stream_steps.merge(handle, each.handle, None)
        return StreamHolder(handle=handle, schema=step.schema)

    def _stream(self, step: Step) -> StreamHolder:
        holder = self.build(step)
        if not isinstance(holder, StreamHolder):
            raise KsqlException(f"{step.name} is not a stream")
        return holder

    def _filter(self, step: FilterStep) -> Holder:
        holder = self.build(step.input)
        predicate = self._compiler(step, holder.schema).predicate(step.expression)

        def keep(key: Any, row: Any) -> bool:
            return row is not None and predicate(row)

        if isinstance(holder, StreamHolder):
            handle = stream_steps.step(holder.handle, "KSTREAM-FILTER-", None, lambda: Filter(keep))
            return replace(holder, handle=handle)
        # ksqlDB has three steps here, and each takes a number.
        builder = holder.table.handle.builder
        builder.new_name("KTABLE-TRANSFORMVALUES-")
        builder.new_name("KTABLE-MAPVALUES-")
        table = table_steps.derive(
            holder.table,
            "KTABLE-FILTER-",
            lambda key, row: row if predicate(row) else None,
            name=None,
            store=None,
            keeps_values=True,
        )
        found = holder.materialization
        if found is not None:
            found = found.then(
                lambda key, row, timestamp: row if predicate(row) else None, holder.schema
            )
        return TableHolder(table=table, schema=holder.schema, materialization=found)

    def _select(self, step: SelectStep) -> Holder:
        holder = self.build(step.input)
        _, compute = self._compiler(step, holder.schema).projection(step.selects)
        is_same = _is_same(step, holder.schema)
        if isinstance(holder, StreamHolder) and is_same:
            handle = _process(holder, step, PassThrough)
            return StreamHolder(handle=handle, schema=step.schema)
        if isinstance(holder, StreamHolder):

            def project(row: Any) -> Any:
                return None if row is None else compute(row)

            handle = _process(holder, step, lambda: MapValues(project))
            return StreamHolder(handle=handle, schema=step.schema)
        store, found = None, holder.materialization
        if found is None:
            store = Materialized(
                name=f"{step.name}-Last",
                key_serde=self._internal.key(step.key_format, step.schema),
                value_serde=self._internal.value(step.value_format, step.schema),
            )
            found = Materialization(
                store_name=store.name or "",
                store_schema=step.schema,
                schema=step.schema,
                key_format=step.key_format,
                window=step.key_format.window,
            )
        else:
            found = found.then(lambda key, row, timestamp: compute(row), step.schema)
        table = table_steps.derive(
            holder.table,
            "KTABLE-TRANSFORMVALUES-",
            lambda key, row: compute(row),
            name=None,
            store=store,
            keeps_values=False,
            is_same=is_same,
        )
        return TableHolder(table=table, schema=step.schema, materialization=found)

    def _select_key(self, step: SelectKeyStep) -> Holder:
        holder = self.build(step.input)
        mapper = self._key_mapper(step, holder.schema)
        if isinstance(holder, StreamHolder):
            handle = stream_steps.step(
                holder.handle, "KSTREAM-MAP-", None, lambda: Map(mapper), **KEY, **VALUE
            )
            return StreamHolder(handle=handle, schema=step.schema)
        stream = table_steps.to_stream(holder.table, None)
        handle = stream_steps.step(
            stream, "KSTREAM-MAP-", None, lambda: Map(mapper), **KEY, **VALUE
        )
        store = Materialized(
            name=f"{step.name}-Materialize",
            key_serde=self._internal.key(step.key_format, step.schema),
            value_serde=self._internal.value(step.value_format, step.schema),
        )
        table = stream_steps.to_table(handle, store, f"{step.name}-SelectKey")
        found = Materialization(
            store_name=store.name or "",
            store_schema=step.schema,
            schema=step.schema,
            key_format=step.key_format,
        )
        return TableHolder(table=table, schema=step.schema, materialization=found)

    def _key_mapper(
        self, step: SelectKeyStep, schema: LogicalSchema
    ) -> Callable[[Any, Any], tuple[Any, Any]]:
        if is_null_key(step.expressions):
            return lambda key, row: (None, row)
        by_key = LogicalSchema(schema.key_as_value().columns)
        parts: list[tuple[bool, Callable[[Any], Any]]] = []
        appended: list[int] = []
        for index, expression in enumerate(step.expressions):
            key_only = all(schema.is_key(each.name) for each in columns(expression))
            compiler = self._compiler(step, by_key if key_only else schema)
            message = f"Error computing new key from expression {text(expression)}"
            parts.append((key_only, compiler.value(expression, "SelectKey", message).evaluate))
            if (
                index < len(step.schema.key)
                and schema.find_value(step.schema.key[index].name) is None
            ):
                appended.append(index)

        def mapper(key: Any, row: Any) -> tuple[Any, Any]:
            plain = key.key if isinstance(key, Windowed) else key
            new = tuple(evaluate(plain if key_only else row) for key_only, evaluate in parts)
            if row is not None and appended:
                row = row + tuple(new[index] for index in appended)
            if isinstance(key, Windowed):
                return Windowed(new, key.window), row
            return new, row

        return mapper

    def _flat_map(self, step: FlatMapStep) -> Holder:
        holder = self._stream(step.input)
        appliers = [self._applier(step, each, holder.schema) for each in step.functions]
        handle = _process(holder, step, lambda: FlatMapRows(appliers))
        return StreamHolder(handle=handle, schema=step.schema)

    def _applier(
        self, step: FlatMapStep, call: FunctionCall, schema: LogicalSchema
    ) -> Callable[[Any], list[Any]]:
        compiler, on_error = self._compiler(step, schema), self._on_error(step)
        arguments = [
            compiler.value(
                each, "Table function", f"Failed to evaluate table function parameter {index}"
            ).evaluate
            for index, each in enumerate(call.arguments)
        ]
        evaluate = ExpressionTypes(schema, self._functions).table(call).evaluate

        def apply(row: Any) -> list[Any]:
            try:
                found = evaluate(*[each(row) for each in arguments])
            except Exception as error:
                on_error(f"Table function {call.name} threw an exception", error, row)
                return []
            return [] if found is None else list(found)

        return apply

    def _aggregate(self, step: AggregateStep) -> Holder:
        if not isinstance(step.input, GroupStep):
            raise KsqlException("an aggregation needs a grouping")
        group = step.input
        holder = self.build(group.input)
        compiler = self._compiler(group, holder.schema)
        groupers = [
            compiler.value(
                each,
                "Group By",
                f"Error calculating group-by column with index {index}. The source row will be "
                "excluded from the table.",
            ).evaluate
            for index, each in enumerate(group.expressions or ())
        ]
        return build_aggregate(step, group, holder, groupers, self._internal, self._functions)

    def _join(self, step: JoinStep | ForeignKeyJoinStep) -> Holder:
        if isinstance(step, JoinStep) and step.right.kind == "TABLE" and step.left.kind == "STREAM":
            right = self.build(step.right)
            left = self.build(step.left)
        else:
            left = self.build(step.left)
            right = self.build(step.right)
        if isinstance(step, ForeignKeyJoinStep):
            compiler = self._compiler(step, left.schema)
            key = compiler.value(step.expression, "Left Join Expression", "Error joining").evaluate
            return joining.foreign_key(step, left, right, key, self._internal)
        return joining.by_key(step, left, right, self._internal)

    # The end.

    def sink(self, step: SinkStep) -> Holder:
        holder = self.build(step.input)
        handle = (
            holder.handle
            if isinstance(holder, StreamHolder)
            else table_steps.to_stream(holder.table, None)
        )
        if step.timestamp is not None:
            read = time_reader(holder.schema, step.timestamp)
            on_error = self._on_error(step)
            handle = stream_steps.process(
                handle,
                "KSTREAM-PROCESSOR-",
                lambda: SetTime(read, on_error),
                (),
                f"ApplyTimestampTransform-{step.name}",
            )
        stream_steps.to(
            handle,
            step.topic,
            key_serde=self._serdes.key(step.key_format, step.schema),
            value_serde=SinkSerde(
                self._serdes.value(
                    step.value_format.format, step.schema, step.value_format.features
                )
            ),
            partitioner=None,
            name=None,
        )
        return holder

    def output(self, holder: Holder, on_row: OnRow) -> None:
        handle = (
            holder.handle
            if isinstance(holder, StreamHolder)
            else table_steps.to_stream(holder.table, None)
        )
        joining.add_output(handle, on_row)
