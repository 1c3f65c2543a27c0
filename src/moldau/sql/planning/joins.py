"""Joins: the tree that several of them make, their keys, and the nodes that build them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moldau.sql.analysis.analysis import AliasedSource, JoinInfo, JoinKind
from moldau.sql.analysis.names import AliasGenerator, join_alias
from moldau.sql.errors import KsqlException
from moldau.sql.expressions.compiled import Select
from moldau.sql.planning import building
from moldau.sql.planning.node import (
    Built,
    Contains,
    Node,
    PartitionCount,
    PlanContext,
    keys_missing,
)
from moldau.sql.planning.steps import ForeignKeyJoinStep, JoinStep
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import FormatInfo, KeyFormat
from moldau.sql.sources.schema import LogicalSchema, key_column
from moldau.sql.syntax.expressions import ColumnRef, Expression
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import Within
from moldau.sql.types import Column, Namespace


@dataclass(frozen=True, slots=True)
class Leaf:
    source: AliasedSource

    def contains(self, source: AliasedSource) -> bool:
        return self.source == source

    @property
    def equivalent(self) -> frozenset[Expression]:
        return frozenset()

    def viable_keys(self) -> list[ColumnRef]:
        return []


@dataclass(frozen=True, slots=True)
class Branch:
    left: Leaf | Branch
    right: Leaf | Branch
    info: JoinInfo

    def contains(self, source: AliasedSource) -> bool:
        return self.left.contains(source) or self.right.contains(source)

    @property
    def equivalent(self) -> frozenset[Expression]:
        """Expressions that have the same value in every row."""
        if self.info.kind == "OUTER":
            return frozenset()
        keys = frozenset({self.info.left_expression, self.info.right_expression})
        found = keys
        for side in (self.left.equivalent, self.right.equivalent):
            if side & keys:
                found |= side
        return found

    def viable_keys(self) -> list[ColumnRef]:
        """The columns that may be the key of the result."""
        if self.info.kind == "OUTER":
            return []
        same = self.equivalent
        candidates = [
            *self.left.viable_keys(),
            self.info.left_expression,
            *self.right.viable_keys(),
            self.info.right_expression,
        ]
        return [
            each
            for each in dict.fromkeys(candidates)
            if isinstance(each, ColumnRef) and each.source is not None and each in same
        ]


def join_tree(joins: Sequence[JoinInfo]) -> Branch:
    """Joins in the order they are written, each with what was joined before."""
    root: Leaf | Branch | None = None
    for join in joins:
        if root is None:
            root = Leaf(join.left)
        has_left, has_right = root.contains(join.left), root.contains(join.right)
        if has_left and has_right:
            raise KsqlException(
                f"Cannot perform circular join - both {join.right.alias} and "
                f"{text(join.left_expression)} are already included in the current join tree."
            )
        if has_left:
            root = Branch(root, Leaf(join.right), join)
        elif has_right:
            root = Branch(root, Leaf(join.left), join.flip())
        else:
            raise KsqlException(
                "Cannot build JOIN tree; neither source in the join is the FROM source or included "
                f"in a previous JOIN: {join.condition}."
            )
    if not isinstance(root, Branch):
        raise KsqlException("Expected more than one source")
    return root


class JoiningNode(Node):
    """A node before a join, which agrees with the other side on the format of the key."""

    def preferred_key_format(self) -> KeyFormat | None:
        raise NotImplementedError

    def set_key_format(self, key_format: KeyFormat, context: PlanContext) -> None:
        raise NotImplementedError


def value_format_of(node: Node) -> FormatInfo:
    """The format of the leftmost source."""
    return node.data_source.value_format.format


class RekeyNode(JoiningNode):
    """Gives one side of a join the key that it is joined by."""

    def __init__(
        self, parent: Node, name: str, expression: Expression, functions: Functions
    ) -> None:
        schema = building.rekeyed_schema(parent.schema, [expression], functions)
        super().__init__(kind=parent.kind, schema=schema, alias=parent.alias, parents=[parent])
        self._name = name
        self._expression = expression
        self._joining = parent if isinstance(parent, JoinNode) else None
        self._key_format: KeyFormat | None = None
        self._force = False

    @property
    def _needed(self) -> bool:
        return building.repartition_needed(self.parents[0].schema, [self._expression])

    def preferred_key_format(self) -> KeyFormat | None:
        if self._needed:
            return None
        if self._joining is not None:
            return self._joining.preferred_key_format()
        return self.data_source.key_format

    def set_key_format(self, key_format: KeyFormat, context: PlanContext) -> None:
        for_parent = self._choose(key_format, context)
        if self._joining is None:
            return
        if for_parent is None:
            self._joining.resolve_key_formats(context)
        else:
            self._joining.set_key_format(for_parent, context)

    def _choose(self, key_format: KeyFormat, context: PlanContext) -> KeyFormat | None:
        """Which format the join before this one must have, if it matters."""
        if context.formats.of(key_format.format).supports("SCHEMA_INFERENCE"):
            self._force = True
        if self._needed or self._force:
            self._key_format = key_format
            return None
        if self._joining is not None:
            preferred = self._joining.preferred_key_format()
            if preferred is None or preferred == key_format:
                return key_format
            self._key_format = key_format
            return None
        if key_format != self.data_source.key_format:
            self._key_format = key_format
        return None

    def build(self, context: PlanContext) -> Built:
        return building.rekeyed(
            self.parents[0].build(context),
            (self._expression,),
            value_format_of(self),
            context,
            (self._name,),
            key_format=self._key_format,
            force=self._force,
        )


class PrependAliasNode(JoiningNode):
    """Puts the source's alias before the names of its columns."""

    def __init__(self, parent: Node, name: str, alias: str) -> None:
        columns = [
            replace_name(each, join_alias(alias, each.name))
            for each in parent.schema.columns
            if each.namespace is not Namespace.HEADERS
        ]
        super().__init__(
            kind=parent.kind, schema=LogicalSchema(columns), alias=parent.alias, parents=[parent]
        )
        self._name = name
        self._selects = [
            Select(join_alias(alias, each.name), ColumnRef(each.name))
            for each in parent.schema.value
        ]
        self._originals = {join_alias(alias, each.name): each.name for each in parent.schema.value}
        self._aliases = {name: alias_of for alias_of, name in self._originals.items()}

    @property
    def _joining(self) -> JoiningNode | None:
        parent = self.parents[0]
        return parent if isinstance(parent, JoiningNode) else None

    def preferred_key_format(self) -> KeyFormat | None:
        if self._joining is not None:
            return self._joining.preferred_key_format()
        return self.data_source.key_format

    def set_key_format(self, key_format: KeyFormat, context: PlanContext) -> None:
        if self._joining is not None:
            self._joining.set_key_format(key_format, context)

    def resolve_star(self, source: str | None) -> list[str]:
        return [self._aliases.get(each, each) for each in self.parents[0].resolve_star(source)]

    def unknown_columns(self, required: set[ColumnRef]) -> set[ColumnRef]:
        plain = {
            replace(each, name=self._originals[each.name])
            if each.source is None and each.name in self._originals
            else each
            for each in required
        }
        return self.parents[0].unknown_columns(plain)

    def build(self, context: PlanContext) -> Built:
        return building.selected(
            self.parents[0].build(context),
            [each.name for each in self.schema.key],
            self._selects,
            value_format_of(self),
            context,
            (self._name,),
        )


def replace_name(column: Column, name: str) -> Column:
    return Column(name, column.type, column.namespace)


class JoinNode(JoiningNode):
    """A join. `foreign_key` is set where a table is joined by a value of the left one."""

    def __init__(
        self,
        *,
        name: str,
        join: JoinKind,
        left: Node,
        right: Node,
        within: Within | None,
        viable_keys: Sequence[ColumnRef],
        key_name: str | None,
        foreign_key: Expression | None,
        is_last: bool,
        partitions: PartitionCount,
    ) -> None:
        self._synthetic = key_name is None and foreign_key is None
        if self._synthetic:
            sources = [*left.source_nodes(), *right.source_nodes()]
            schemas = [each.data_source.schema for each in sources]
            key_name = AliasGenerator(schemas).synthetic_key()
        if foreign_key is not None:
            schema = LogicalSchema([*left.schema.key, *left.schema.value, *right.schema.value])
        else:
            schema = _join_schema(key_name or "", left.schema, right.schema)
        is_table = left.kind == "TABLE" and right.kind == "TABLE"
        super().__init__(
            kind="TABLE" if is_table else "STREAM", schema=schema, parents=[left, right]
        )
        self._name = name
        self._join: JoinKind = join
        self._within = within
        self._viable = list(viable_keys)
        self._foreign_key = foreign_key
        self._is_last = is_last
        self._partitions = partitions

    @property
    def _sides(self) -> list[JoiningNode]:
        return [each for each in self.parents if isinstance(each, JoiningNode)]

    # Formats of the key.

    def preferred_key_format(self) -> KeyFormat | None:
        for side in self._sides:
            found = side.preferred_key_format()
            if found is not None:
                return found
        return None

    def resolve_key_formats(self, context: PlanContext) -> None:
        """Agree on one key format for both sides."""
        found = self.preferred_key_format()
        if found is None:
            formats = (each.data_source.key_format for each in self.source_nodes())
            default = KeyFormat(FormatInfo.of(context.default_key_format))
            found = next((each for each in formats if each.format.name != "NONE"), default)
        self.set_key_format(found, context)

    def set_key_format(self, key_format: KeyFormat, context: PlanContext) -> None:
        for side in self._sides:
            side.set_key_format(key_format, context)

    # Columns.

    def partitions(self, count: PartitionCount) -> int:
        return self.parents[1].partitions(count)

    def _leaves(self) -> list[Node]:
        found: list[Node] = []
        for parent in self.parents:
            inner: Node = parent
            while isinstance(inner, RekeyNode):
                inner = inner.parents[0]
            found += inner._leaves() if isinstance(inner, JoinNode) else [parent]
        return found

    def resolve_star(self, source: str | None) -> list[str]:
        names: list[str] = []
        for leaf in self._leaves():
            if source is None or leaf.alias == source:
                names += leaf.resolve_star(source)
        if source is None and self._synthetic and self._is_last:
            return [self.schema.key[0].name, *names]
        return names

    def unknown_columns(self, required: set[ColumnRef]) -> set[ColumnRef]:
        if self._is_last and self._synthetic:
            required = required - {ColumnRef(self.schema.key[0].name)}
        left, right = self.parents
        # A column that each side knows under another name is unknown to both under its own.
        return {
            each
            for each in required
            if left.unknown_columns({each}) and right.unknown_columns({each})
        }

    def check_key(self, sink: str, projection: Contains) -> None:
        if self._foreign_key is not None:
            self._check_primary_key(projection)
            return
        viable: list[Expression] = list(self._viable)
        if self._synthetic:
            viable = [ColumnRef(self.schema.key[0].name)]
        joined = [
            ColumnRef(join_alias(each.source, each.name))
            for each in self._viable
            if each.source is not None
        ]
        if not any(projection.contains(each) for each in [*joined, *viable]):
            keys_missing(
                sink, "join expression", viable, all_needed=False, synthetic=self._synthetic
            )

    def _check_primary_key(self, projection: Contains) -> None:
        leaf = next(iter(self.source_nodes()))
        alias = leaf.alias or ""
        missing = [
            each.name
            for each in leaf.data_source.schema.key
            if not projection.contains(ColumnRef(each.name, alias))
            and not projection.contains(ColumnRef(join_alias(alias, each.name)))
        ]
        if missing:
            word = "column" if len(missing) == 1 else "columns"
            shown = ", ".join(f"`{each}`" for each in missing)
            raise KsqlException(
                f"Primary key {word} missing in projection. For foreign-key table-table joins, "
                "the projection must include all primary key columns from the left input table "
                f"(`{alias}`). Missing {word}: {shown}."
            )

    # Steps.

    def build(self, context: PlanContext) -> Built:
        left_node, right_node = self.parents
        if self._foreign_key is None:
            self._check_partitions()
        kinds = f"{left_node.kind}-{right_node.kind}"
        _check_within(kinds, self._within)
        if kinds == "STREAM-TABLE":
            # The table comes first, as in ksqlDB, so that numbers of nodes agree.
            right = right_node.build(context)
            left = left_node.build(context)
        else:
            left = left_node.build(context)
            right = right_node.build(context)
        if self._foreign_key is not None:
            return self._foreign_key_join(left, right, context)
        if len(self.schema.key) > 1:
            raise KsqlException("JOINs are not supported with multiple key columns")
        if kinds == "STREAM-TABLE" and self._join not in ("LEFT", "INNER"):
            raise KsqlException(f"Invalid join type encountered: {self._join}")
        within = self._within
        step = JoinStep(
            context=(self._name,),
            schema=self._step_schema(left, right),
            kind=self.kind,
            left=left.step,
            right=right.step,
            join=self._join,
            key_format=building.internal_key(left.key_format),
            left_format=building.internal(value_format_of(left_node)),
            right_format=building.internal(value_format_of(right_node)),
            before_ms=0 if within is None else within.before.ms,
            after_ms=0 if within is None else within.after.ms,
            grace_ms=None if within is None or within.grace is None else within.grace.ms,
        )
        return Built(step, left.key_format)

    def _step_schema(self, left: Built, right: Built) -> LogicalSchema:
        """A right join is built as a left join the other way round."""
        sides = (
            (right.schema, left.schema) if self._join == "RIGHT" else (left.schema, right.schema)
        )
        return _join_schema(self.schema.key[0].name, *sides)

    def _foreign_key_join(self, left: Built, right: Built, context: PlanContext) -> Built:
        if self._join == "RIGHT":
            raise KsqlException("RIGHT OUTER JOIN on a foreign key is not supported")
        if self._foreign_key is None:
            raise KsqlException("no foreign key")
        step = ForeignKeyJoinStep(
            context=(self._name,),
            schema=LogicalSchema([*left.schema.key, *left.schema.value, *right.schema.value]),
            kind="TABLE",
            left=left.step,
            right=right.step,
            join=self._join,
            expression=self._foreign_key,
            key_format=building.internal_key(left.key_format),
            value_format=building.internal(value_format_of(self.parents[0])),
        )
        return Built(step, left.key_format)

    def _check_partitions(self) -> None:
        left, right = self.parents
        counts = left.partitions(self._partitions), right.partitions(self._partitions)
        if counts[0] == counts[1]:
            return
        names = [f"`{next(iter(each.source_nodes())).alias}`" for each in (left, right)]
        raise KsqlException(
            f"Can't join {names[0]} with {names[1]} since the number of partitions don't match. "
            f"{names[0]} partitions = {counts[0]}; {names[1]} partitions = {counts[1]}. Please "
            "repartition either one so that the number of partitions match."
        )


def _check_within(kinds: str, within: Within | None) -> None:
    if kinds == "STREAM-STREAM" and within is None:
        raise KsqlException(
            "Stream-Stream joins must have a WITHIN clause specified. None was provided. To learn "
            "about how to specify a WITHIN clause with a stream-stream join, please visit: "
            "https://docs.confluent.io/current/ksql/docs/syntax-reference.html"
            "#create-stream-as-select"
        )
    if within is None or kinds == "STREAM-STREAM":
        return
    if kinds == "STREAM-TABLE":
        raise KsqlException(
            "A window definition was provided for a Stream-Table join. These joins are not "
            "windowed. Please drop the window definition (ie. the WITHIN clause) and try to "
            "execute your join again."
        )
    raise KsqlException(
        "A window definition was provided for a Table-Table join. These joins are not windowed. "
        "Please drop the window definition (i.e. the WITHIN clause) and try to execute your "
        "Table-Table join again."
    )


def _join_schema(key: str, left: LogicalSchema, right: LogicalSchema) -> LogicalSchema:
    if len(left.key) != 1 or len(right.key) != 1:
        raise KsqlException("Multi-key joins not supported")
    kind, other = left.key[0].type, right.key[0].type
    if kind != other:
        raise KsqlException(f"Invalid join. Key types differ: {kind} vs {other}")
    columns = [key_column(key, kind), *left.value, *right.value]
    if not any(each.name == key for each in (*left.value, *right.value)):
        columns.append(Column(key, kind))
    return LogicalSchema(columns)
