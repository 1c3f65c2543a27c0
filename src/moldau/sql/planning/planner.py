"""The logical plan of a query, from its analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moldau.sql.analysis.aggregates import analyze_aggregates
from moldau.sql.analysis.analysis import JOIN_TEXTS, Analysis, JoinInfo
from moldau.sql.analysis.magic import with_timestamps
from moldau.sql.analysis.names import join_alias
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.expressions.types_of import ExpressionTypes
from moldau.sql.planning import building
from moldau.sql.planning.joins import (
    Branch,
    JoinNode,
    Leaf,
    PrependAliasNode,
    RekeyNode,
    join_tree,
)
from moldau.sql.planning.node import Node, PartitionCount, PlanContext
from moldau.sql.planning.nodes import (
    AggregateNode,
    DataSourceNode,
    FilterNode,
    FinalProjectNode,
    FlatMapNode,
    PartitionByNode,
)
from moldau.sql.planning.projection import Projection, select_expressions
from moldau.sql.planning.steps import SinkStep, Step, source_steps
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import (
    DataSource,
    FormatInfo,
    KeyFormat,
    TimestampColumn,
    ValueFormat,
    WindowInfo,
)
from moldau.sql.sources.properties import SourceProperties
from moldau.sql.sources.schema import ROWTIME, LogicalSchema
from moldau.sql.sources.timestamps import check_timestamp_column
from moldau.sql.syntax.expressions import ColumnRef, Expression, rewrite
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import SelectItem, SingleColumn, SourceKind, StructAll
from moldau.sql.types import BOOLEAN, SqlType, StructType

_REGISTRY_FORMATS = ("AVRO", "PROTOBUF", "JSON_SR")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Settings of the server and the session that plans depend on."""

    topic_prefix: str = ""
    wrap_single_values: bool | None = None
    suppress_enabled: bool = True
    #: Partitions of the topics that exist.
    partitions: PartitionCount


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The steps of a query, and the source that it creates, if it does."""

    step: Step
    kind: SourceKind
    schema: LogicalSchema
    sink: DataSource | None
    window: WindowInfo | None
    limit: int | None = None

    @property
    def sources(self) -> list[DataSource]:
        """What it reads, from left to right."""
        found = [each.source for each in source_steps(self.step)]
        return list({each.name: each for each in found}.values())


class QueryPlanner:
    """Plans one query."""

    def __init__(self, analysis: Analysis, context: PlanContext, settings: PlanSettings) -> None:
        self._analysis = analysis
        self._context = context
        self._settings = settings
        self._functions: Functions = context.functions
        self._select = tuple(self._plain_item(each) for each in analysis.select)

    # Columns lose their sources once those are joined.

    def _plain(self, expression: Expression) -> Expression:
        def plain(node: Expression) -> Expression | None:
            if not isinstance(node, ColumnRef) or node.source is None:
                return None
            name = node.name
            if self._analysis.is_join:
                name = join_alias(node.source, node.name)
            return ColumnRef(name, position=node.position)

        return rewrite(expression, plain)

    def _plain_item(self, item: SelectItem) -> SelectItem:
        if isinstance(item, SingleColumn):
            return replace(item, expression=self._plain(item.expression))
        if isinstance(item, StructAll):
            return replace(item, base=self._plain(item.base))
        return item

    # The plan.

    def plan(self) -> QueryPlan:
        """The plan of a persistent or a push query."""
        analysis, query = self._analysis, self._analysis.query
        node = self._source_node()
        if query.where is not None:
            where = self._plain(query.where)
            check_condition("WHERE", where, node.schema, self._functions)
            node = FilterNode(node, where)
        if query.partition_by is not None:
            plain = [self._plain(each) for each in query.partition_by]
            node = PartitionByNode(node, query.partition_by, plain, self._functions)
        if analysis.table_functions:
            calls = [self._plain(each) for each in analysis.table_functions]
            node = FlatMapNode(node, calls, self._select, self._functions)  # type: ignore[arg-type]
        last: AggregateNode | FinalProjectNode
        if analysis.group_by is not None:
            last = self._aggregate(node)
        else:
            if query.window is not None:
                prefix = query.window.position.prefix if query.window.position else ""
                raise KsqlException(f"{prefix}WINDOW clause requires a GROUP BY clause.")
            last = FinalProjectNode(
                node,
                self._select,
                self._functions,
                persistent=analysis.into is not None,
                target=self._target_schema(),
            )
        if query.emit == "FINAL":
            self._check_final()
        return self._output(last)

    def _check_final(self) -> None:
        if not self._settings.suppress_enabled:
            raise KsqlException(
                "Suppression is currently disabled. You can enable it by setting "
                "ksql.suppress.enabled to true"
            )
        if self._analysis.group_by is None or self._analysis.window is None:
            raise KsqlException("EMIT FINAL is only supported for windowed aggregations.")

    def _target_schema(self) -> LogicalSchema | None:
        into = self._analysis.into
        return None if into is None or into.existing is None else into.existing.schema

    def _aggregate(self, parent: Node) -> AggregateNode:
        analysis, query = self._analysis, self._analysis.query
        selects = select_expressions(parent, self._select, self._target_schema())
        group_by = tuple(self._plain(each) for each in analysis.group_by or ())
        having = None if query.having is None else self._plain(query.having)
        default = self._plain(ColumnRef(ROWTIME, analysis.first.alias))
        found = analyze_aggregates(
            functions=self._functions,
            selects=[each.expression for each in selects],
            where=None if query.where is None else self._plain(query.where),
            group_by=group_by,
            having=having,
            windowed=query.window is not None,
            default_argument=default,  # type: ignore[arg-type]
        )
        if having is not None:
            check_condition("HAVING", having, parent.schema, self._functions)
        return AggregateNode(parent, analysis, selects, group_by, having, found, self._functions)

    # Sources and joins.

    def _source_node(self) -> Node:
        analysis = self._analysis
        if not analysis.is_join:
            return DataSourceNode("KsqlTopic", analysis.first.source, analysis.first.alias)
        node = self._join(join_tree(analysis.joins), "")
        node.resolve_key_formats(self._context)
        return node

    def _join(self, tree: Branch, prefix: str) -> JoinNode:
        left = self._side(tree.left, prefix, "Left", "L_")
        right = self._side(tree.right, prefix, "Right", "R_")
        foreign_key = _JoinRules(tree.info, left, right, self._functions).check()
        info = tree.info
        key_name = None
        viable = tree.viable_keys()
        if foreign_key is not None:
            viable = [ColumnRef(each.name, info.left.alias) for each in info.left.source.schema.key]
        elif viable:
            projection = Projection(self._analysis.select)
            chosen = next((each for each in viable if projection.contains(each)), viable[0])
            key_name = join_alias(chosen.source or "", chosen.name)
        is_foreign = foreign_key is not None
        left_ready = self._prepared(
            tree.left, left, f"{prefix}Left", info.left_expression, is_foreign=is_foreign
        )
        right_ready = self._prepared(
            tree.right, right, f"{prefix}Right", info.right_expression, is_foreign=is_foreign
        )
        return JoinNode(
            name=f"{prefix}Join",
            join=info.kind,
            left=left_ready,
            right=right_ready,
            within=info.within,
            viable_keys=viable,
            key_name=key_name,
            foreign_key=None if foreign_key is None else _aliased(foreign_key),
            is_last=not prefix,
            partitions=self._settings.partitions,
        )

    def _side(self, tree: Leaf | Branch, prefix: str, side: str, letter: str) -> Node:
        if isinstance(tree, Branch):
            return self._join(tree, f"{prefix}{letter}")
        return DataSourceNode(f"KafkaTopic_{prefix}{side}", tree.source.source, tree.source.alias)

    def _prepared(
        self,
        tree: Leaf | Branch,
        node: Node,
        name: str,
        expression: Expression,
        *,
        is_foreign: bool,
    ) -> Node:
        """One side of a join under the key that it is joined by."""
        if isinstance(tree, Branch):
            if is_foreign or expression in tree.equivalent:
                return node
            plain = self._plain(expression)
            return RekeyNode(node, f"{name}SourceKeyed", plain, self._functions)
        if not is_foreign or (name.endswith("Right") and _needs_new_key(tree.source.source)):
            unqualified = _unqualified(expression)
            node = RekeyNode(node, f"{name}SourceKeyed", unqualified, self._functions)
        return PrependAliasNode(node, f"PrependAlias{name}", tree.source.alias)

    # Output.

    def _output(self, node: AggregateNode | FinalProjectNode) -> QueryPlan:
        analysis = self._analysis
        into = analysis.into
        schema = node.schema
        if into is None:
            built = node.build(self._context)
            return QueryPlan(
                step=built.step,
                kind=node.kind,
                schema=schema,
                sink=None,
                window=self._window(),
                limit=analysis.query.limit,
            )
        timestamp = into.properties.timestamp
        check_timestamp_column(schema, timestamp)
        sink = into.existing
        if sink is None:
            sink = self._new_sink(node.kind, schema, timestamp)
        node.check_sink(into.name)
        _check_duplicates(schema)
        built = node.build(self._context)
        key_format = replace(sink.key_format, window=built.key_format.window)
        step = SinkStep(
            context=(into.name,),
            schema=built.schema,
            kind=node.kind,
            input=built.step,
            topic=sink.topic,
            key_format=key_format,
            value_format=sink.value_format,
            timestamp=timestamp,
        )
        return QueryPlan(
            step=step,
            kind=node.kind,
            schema=schema,
            sink=sink,
            window=self._window(),
        )

    def _window(self) -> WindowInfo | None:
        window = self._analysis.window
        if window is None:
            return self._analysis.first.source.key_format.window
        return replace(building.window_info(window), emit=self._analysis.query.emit)

    def _new_sink(
        self, kind: SourceKind, schema: LogicalSchema, timestamp: TimestampColumn | None
    ) -> DataSource:
        into = self._analysis.into
        if into is None:
            raise KsqlException("a transient query has no sink")
        properties, source = into.properties, self._analysis.first.source
        formats = self._context.formats
        partition_by = self._analysis.query.partition_by
        key = self._sink_format(properties, source.key_format.format, into.name, is_key=True)
        if partition_by is not None and building.is_null_key(partition_by):
            if properties.format_name(is_key=True) not in (None, "NONE"):
                raise KsqlException("Key format specified for stream without key columns.")
            key = FormatInfo.of("NONE")
        elif key.name == "NONE" and schema.key and properties.format_name(is_key=True) is None:
            key = FormatInfo.of(self._context.default_key_format)
        value = self._sink_format(properties, source.value_format.format, into.name, is_key=False)
        value_features = formats.value_features(
            value,
            is_single=len(schema.value) == 1,
            explicit=properties.value_features,
            wrap_default=self._settings.wrap_single_values,
        )
        key_features = formats.key_features(key, is_single=len(schema.key) == 1)
        topic = properties.get("KAFKA_TOPIC") or self._settings.topic_prefix + into.name
        return DataSource(
            name=into.name,
            kind=kind,
            schema=schema,
            topic=topic,
            key_format=KeyFormat(key, key_features, self._window()),
            value_format=ValueFormat(value, value_features),
            timestamp=timestamp,
            is_cas_target=True,
        )

    def _sink_format(
        self, properties: SourceProperties, source: FormatInfo, name: str, *, is_key: bool
    ) -> FormatInfo:
        """The format that was asked for, else that of the source."""
        chosen = properties.format_name(is_key=is_key) or source.name
        inherited: dict[str, str] = {}
        found = self._context.formats.of(FormatInfo.of(chosen))
        if chosen == source.name:
            allowed = found.inheritable_properties()
            inherited = {key: value for key, value in source.properties if key in allowed}
        own = properties.format_properties(chosen, is_key=is_key, source=name)
        return FormatInfo.of(chosen, inherited | own)


def _check_duplicates(schema: LogicalSchema) -> None:
    names = [each.name for each in schema.columns]
    twice = [f"`{name}`" for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise KsqlException(f"Value columns clash with key columns: {', '.join(twice)}")


def check_condition(
    clause: str, expression: Expression, schema: LogicalSchema, functions: Functions
) -> None:
    """WHERE and HAVING are boolean."""
    shown = text(expression)
    try:
        kind = ExpressionTypes(schema, functions).of(with_timestamps(expression))
    except KsqlException as error:
        detail = error.raw_unlogged if isinstance(error, KsqlStatementException) else str(error)
        raise KsqlStatementException(
            f"Error in {clause} expression", shown, f"Error in {clause} expression: {detail}"
        ) from error
    if kind is not BOOLEAN:
        start = f"Type error in {clause} expression: Should evaluate to boolean but is"
        raise KsqlStatementException(
            f"{start} ({kind}) instead.", shown, f"{start} {shown} ({kind}) instead."
        )


def _unqualified(expression: Expression) -> Expression:
    def plain(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.source is not None:
            return ColumnRef(node.name, position=node.position)
        return None

    return rewrite(expression, plain)


def _aliased(expression: Expression) -> Expression:
    def aliased(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.source is not None:
            return ColumnRef(join_alias(node.source, node.name), position=node.position)
        return None

    return rewrite(expression, aliased)


def _needs_new_key(source: DataSource) -> bool:
    """Struct keys in a registry's formats carry a schema id: their bytes must be made equal."""
    return source.key_format.format.name in _REGISTRY_FORMATS and any(
        isinstance(each.type, StructType) for each in source.schema.key
    )


class _JoinRules:
    """Which joins are allowed, and which are by foreign key."""

    def __init__(self, info: JoinInfo, left: Node, right: Node, functions: Functions) -> None:
        self._info = info
        self._left = left
        self._right = right
        self._functions = functions

    @property
    def _shown(self) -> str:
        info = self._info
        return f"{info.left.source.name} {JOIN_TEXTS[info.kind]} {info.right.source.name}"

    def check(self) -> Expression | None:
        """The foreign key, if the join is by one."""
        info, left, right = self._info, self._left, self._right
        if left.kind == "STREAM":
            if right.kind == "TABLE":
                self._check_stream_table()
            return None
        if right.kind == "STREAM":
            raise KsqlException(
                "Invalid join order: table-stream joins are not supported; only stream-table "
                f"joins. Got {self._shown}."
            )
        if not _is_key(info.right_expression, right):
            raise KsqlException(
                "Invalid join condition: table-table joins require to join on the primary key of "
                f"the right input table. Got {info.condition}."
            )
        if not _is_key(info.left_expression, left):
            return self._foreign_key()
        self._check_types(left.schema.key[0].type)
        return None

    def _check_stream_table(self) -> None:
        if self._info.kind == "OUTER":
            raise KsqlException(
                "Invalid join type: full-outer join not supported for stream-table join. Got "
                f"{self._shown}."
            )
        if not _is_key(self._info.right_expression, self._right):
            raise KsqlException(
                "Invalid join condition: stream-table joins require to join on the table's "
                f"primary key. Got {self._info.condition}."
            )

    def _foreign_key(self) -> Expression:
        info = self._info
        if info.kind == "OUTER":
            raise KsqlException(
                "Invalid join type: full-outer join not supported for foreign-key table-table "
                f"join. Got {self._shown}."
            )
        sides: Sequence[Node] = (self._left, self._right)
        if not all(isinstance(each, DataSourceNode) for each in sides):
            raise KsqlException(
                "Invalid join condition: foreign-key table-table joins are not supported as part "
                f"of n-way joins. Got {info.condition}."
            )
        compiled = building.compiler(self._left.schema, self._functions)
        kind = compiled.type_of(_unqualified(info.left_expression), "Left Join Expression")
        self._check_types(kind)
        if self._right.data_source.is_windowed:
            raise KsqlException(
                "Foreign-key table-table joins are not supported on windowed tables."
            )
        return info.left_expression

    def _check_types(self, left: SqlType) -> None:
        right = self._right.schema.key[0].type
        if left == right:
            return
        info = self._info
        sides = [
            f"{text(info.left_expression)}{{{left}}}",
            f"{text(info.right_expression)}{{{right}}}",
        ]
        shown = " = ".join(reversed(sides) if info.flipped else sides)
        raise KsqlException(f"Invalid join condition: types don't match. Got {shown}.")


def _is_key(expression: Expression, node: Node) -> bool:
    """Whether an expression is the only key column of a source of the node."""
    if not isinstance(expression, ColumnRef):
        return False
    for each in node.source_nodes():
        if expression.source in (None, each.alias):
            keys = each.schema.key
            return len(keys) == 1 and keys[0].name == expression.name
    return False
