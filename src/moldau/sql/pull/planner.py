"""Plans a pull query: which rows to read, which of them to keep, and what to show of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from moldau.sql.analysis.analysis import Analysis
from moldau.sql.analysis.magic import parse_partial, with_timestamps
from moldau.sql.errors import KsqlException
from moldau.sql.expressions.compiled import Compiler, Select, ignore_errors
from moldau.sql.expressions.constants import constant
from moldau.sql.planning.planner import check_condition
from moldau.sql.ports import Functions
from moldau.sql.pull.conditions import Bounds, alternatives, conjuncts
from moldau.sql.pull.ordering import Ordering, ordering_of
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.schema import (
    ROWOFFSET,
    ROWPARTITION,
    WINDOW_BOUNDS,
    WINDOWEND,
    WINDOWSTART,
    LogicalSchema,
    key_column,
)
from moldau.sql.syntax.expressions import (
    COMPARISONS,
    ColumnRef,
    Comparison,
    Dereference,
    Expression,
    Like,
    NullLiteral,
    StringLiteral,
    columns,
    rewrite,
)
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import AllColumns, SingleColumn, StructAll
from moldau.sql.types import BIGINT, BYTES, STRING, Column, StructType

HELP = (
    " See https://cnfl.io/queries for more info.\n"
    "Add EMIT CHANGES if you intended to issue a push query."
)
_INVERTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BOUND_OPERATORS = ("=", ">", ">=", "<", "<=")
_DISALLOWED = (ROWPARTITION, ROWOFFSET)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSettings:
    table_scans: bool = True
    range_scans: bool = True
    limits: bool = True


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """The rows of one key, within bounds of their windows."""

    key: tuple[Any, ...]
    start: Bounds = field(default_factory=Bounds)
    end: Bounds = field(default_factory=Bounds)


class _WindowBound(NamedTuple):
    """A comparison with WINDOWSTART or WINDOWEND, which stands at the left of the operator."""

    name: str
    operator: str
    other: Expression
    node: Comparison


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows whose only key column is within a range."""

    operator: str
    key: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPlan:
    """`lookups` are read where `kind` is KEY_LOOKUP, `key_range` where it is RANGE_SCAN."""

    source: DataSource
    schema: LogicalSchema
    kind: Literal["KEY_LOOKUP", "RANGE_SCAN", "TABLE_SCAN"]
    lookups: tuple[KeyLookup, ...]
    key_range: KeyRange | None
    row_schema: LogicalSchema
    keep: Callable[[tuple[Any, ...]], bool] | None
    project: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    ordering: Ordering

    @property
    def limit(self) -> int | None:
        return self.ordering.limit


def plan_pull(analysis: Analysis, functions: Functions, settings: PullSettings) -> PullPlan:
    """The plan of an analysed query, or ksqlDB's error."""
    _validate(analysis, settings)
    return _Planner(analysis, functions, settings).plan()


def _validate(analysis: Analysis, settings: PullSettings) -> None:
    query = analysis.query
    unsupported = [
        (analysis.is_join, "JOIN"),
        (query.window is not None, "WINDOW"),
        (analysis.group_by is not None, "GROUP BY"),
        (query.partition_by is not None, "PARTITION BY"),
        (query.having is not None, "HAVING"),
        (bool(query.unions), "UNION"),
    ]
    for found, clause in unsupported:
        if found:
            raise KsqlException(f"Pull queries don't support {clause} clauses.{HELP}")
    if query.limit is not None and not settings.limits:
        raise KsqlException(
            "LIMIT clause in pull queries is currently disabled. You can enable them by setting "
            f"ksql.query.pull.limit.clause.enabled=true.{HELP}"
        )
    if query.limit is not None and query.limit < 0:
        raise KsqlException(
            f"Pull queries don't support negative integers in the LIMIT clause.{HELP}"
        )
    selected = [each.expression for each in query.select if isinstance(each, SingleColumn)]
    for clause, expressions in (
        ("SELECT", selected),
        ("WHERE", [] if query.where is None else [query.where]),
    ):
        bad = [
            f"`{column.name}`"
            for expression in expressions
            for column in columns(expression)
            if column.name in _DISALLOWED
        ]
        if bad:
            raise KsqlException(
                f"Pull queries don't support the following columns in {clause} clauses: "
                f"{', '.join(bad)}\n{HELP}"
            )


def invalid_where(message: str, *, windowed: bool) -> KsqlException:
    more = ""
    if windowed:
        more = (
            "\n - (optionally) limits the time bounds of the windowed table."
            "\n\t Bounds on [`WINDOWSTART`, `WINDOWEND`] are supported"
            "\n\t Supported operators are [EQUAL, GREATER_THAN, GREATER_THAN_OR_EQUAL, LESS_THAN, "
            "LESS_THAN_OR_EQUAL]"
        )
    return KsqlException(
        f"{message}. {HELP}\nPull queries require a WHERE clause that:\n"
        " - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column> = Y;`.\n"
        " - in the case of a multi-column key, is a conjunction of equality expressions that "
        "cover all key columns.\n"
        " - to support range expressions, e.g.,  SELECT * FROM X WHERE <key-column> < Y;`, range "
        "scans need to be enabled by setting ksql.query.pull.range.scan.enabled=true"
        f"{more}\nIf more flexible queries are needed, , table scans can be enabled by setting "
        "ksql.query.pull.table.scan.enabled=true."
    )


class _Planner:
    def __init__(self, analysis: Analysis, functions: Functions, settings: PullSettings) -> None:
        self._analysis = analysis
        self._functions = functions
        self._settings = settings
        self._source = analysis.first.source
        self._windowed = self._source.is_windowed
        self._schema = self._source.schema
        self._rows = self._schema.with_pseudo_and_key_in_value(
            windowed=self._windowed, for_pull=True
        )

    def plan(self) -> PullPlan:
        query = self._analysis.query
        where = None if query.where is None else _plain(query.where)
        lookups: list[KeyLookup | KeyRange] | None = None
        keep = None
        compiler = Compiler(self._rows, self._functions, ignore_errors)
        if where is not None:
            check_condition("WHERE", where, self._rows, self._functions)
            lookups = self._lookups(with_timestamps(where))
            keep = compiler.predicate(with_timestamps(where))
        elif not self._settings.table_scans:
            raise invalid_where("Missing WHERE clause", windowed=self._windowed)
        schema, selects = self._projection()
        _, project = compiler.projection(selects)
        kind: Literal["KEY_LOOKUP", "RANGE_SCAN", "TABLE_SCAN"] = "TABLE_SCAN"
        keys: tuple[KeyLookup, ...] = ()
        key_range = None
        if lookups and all(isinstance(each, KeyLookup) for each in lookups):
            kind = "KEY_LOOKUP"
            keys = _distinct([each for each in lookups if isinstance(each, KeyLookup)])
        elif (
            lookups
            and len(lookups) == 1
            and isinstance(lookups[0], KeyRange)
            and self._settings.range_scans
            and not self._windowed
        ):
            kind, key_range = "RANGE_SCAN", lookups[0]
        if kind == "TABLE_SCAN" and not self._settings.table_scans:
            raise KsqlException(
                "Query requires table scan to be enabled. Table scans can be enabled by setting "
                "ksql.query.pull.table.scan.enabled=true"
            )
        return PullPlan(
            source=self._source,
            schema=schema,
            kind=kind,
            lookups=keys,
            key_range=key_range,
            row_schema=self._rows,
            keep=keep,
            project=project,
            ordering=ordering_of(query, schema.columns, self._functions),
        )

    # SELECT.

    def _projection(self) -> tuple[LogicalSchema, list[Select]]:
        items = self._analysis.query.select
        if any(isinstance(each, AllColumns) for each in items):
            if len(items) != 1:
                raise KsqlException(
                    "Pull queries only support wildcards in the projects if they are the only "
                    "expression"
                )
            return self._star()
        selects: list[Select] = []
        for item in items:
            if isinstance(item, SingleColumn):
                selects.append(Select(item.alias or "", _plain(item.expression)))
            elif isinstance(item, StructAll):
                base = _plain(item.base)
                kind = Compiler(self._rows, self._functions, ignore_errors).type_of(base)
                if not isinstance(kind, StructType):
                    raise KsqlException(f"{text(base)} is not a STRUCT type.")
                selects += [Select(name, Dereference(base, name)) for name, _ in kind.fields]
        compiler = Compiler(self._rows, self._functions, ignore_errors)
        found = []
        for alias, expression in selects:
            kind = compiler.type_of(expression)
            is_key = self._schema.is_key(alias) or alias in WINDOW_BOUNDS
            found.append(key_column(alias, kind) if is_key else Column(alias, kind))
        return LogicalSchema(found), selects

    def _star(self) -> tuple[LogicalSchema, list[Select]]:
        keys = list(self._schema.key)
        if self._windowed:
            keys += [key_column(WINDOWSTART, BIGINT), key_column(WINDOWEND, BIGINT)]
        schema = LogicalSchema([*keys, *self._schema.headers, *self._schema.value])
        return schema, [Select(each.name, ColumnRef(each.name)) for each in schema.columns]

    # WHERE.

    def _lookups(self, where: Expression) -> list[KeyLookup | KeyRange] | None:
        """What to look up; None where all rows must be looked at."""
        found: list[KeyLookup | KeyRange] = []
        windows: list[list[_WindowBound]] = []
        for alternative in alternatives(where):
            bounds: list[_WindowBound] = []
            one = self._alternative(alternative, bounds)
            if one is None:
                return None
            found.append(one)
            windows.append(bounds)
        return [
            self._bounded(one, bounds) if isinstance(one, KeyLookup) else one
            for one, bounds in zip(found, windows, strict=True)
        ]

    def _scan(self, message: str) -> None:
        if not self._settings.table_scans:
            raise invalid_where(message, windowed=self._windowed)

    def _alternative(
        self, node: Expression, bounds: list[_WindowBound]
    ) -> KeyLookup | KeyRange | None:
        """What one alternative looks up; its bounds of windows are added to the list."""
        equal: dict[str, Any] = {}
        ranges: dict[str, tuple[str, Any]] = {}
        scan = False
        for each in conjuncts(node):
            if isinstance(each, Like):
                self._check_like(each)
                continue
            if not isinstance(each, Comparison):
                if not self._settings.table_scans:
                    raise invalid_where(
                        f"Unsupported expression in WHERE clause: {text(each)}", windowed=False
                    )
                scan = True
                continue
            scan = self._comparison(each, equal, ranges, bounds) or scan
        if scan:
            return None
        keys = [each.name for each in self._schema.key]
        seen = equal.keys() | ranges.keys()
        if not seen:
            self._scan(f"WHERE clause missing key column for disjunct: {text(node)}")
            return None
        if len(seen) != len(keys):
            shown = ", ".join(f"`{name}`" for name in keys if name in seen)
            self._scan(
                "Multi-column sources must specify every key in the WHERE clause. Specified: "
                f"[{shown}] Expected: [{', '.join(str(each) for each in self._schema.key)}]"
            )
            return None
        if all(name in equal for name in keys):
            return KeyLookup(tuple(equal[name] for name in keys))
        if len(keys) == 1 and self._schema.key[0].type in (STRING, BYTES):
            operator, value = ranges[keys[0]]
            return KeyRange(operator, (value,))
        return None

    def _comparison(
        self,
        node: Comparison,
        equal: dict[str, Any],
        ranges: dict[str, tuple[str, Any]],
        bounds: list[_WindowBound],
    ) -> bool:
        """Note what a comparison says; whether it needs a scan."""
        right_is_column = isinstance(node.right, ColumnRef)
        column = node.right if right_is_column else node.left
        other = node.left if right_is_column else node.right
        if not isinstance(column, ColumnRef):
            self._scan("A comparison must directly reference a key column")
            return True
        if columns(other):
            self._scan("A comparison must be between a key column and a resolvable expression")
            return True
        operator = node.operator
        if right_is_column:
            operator = _INVERTED.get(operator, operator)
        if column.name in WINDOW_BOUNDS:
            if node.operator not in _BOUND_OPERATORS:
                kind = COMPARISONS.get(node.operator, node.operator)
                raise invalid_where(f"Unsupported `{column.name}` bounds: {kind}", windowed=True)
            if not self._windowed:
                raise invalid_where(
                    "Cannot use WINDOWSTART/WINDOWEND on non-windowed source", windowed=False
                )
            bounds.append(_WindowBound(column.name, operator, other, node))
            return False
        if not self._schema.is_key(column.name):
            return False
        if operator not in _BOUND_OPERATORS:
            keys = ", ".join(str(each) for each in self._schema.key)
            self._scan(f"Bound on key columns '[{keys}]' must currently be '='")
            return True
        if column.name in equal.keys() | ranges.keys():
            self._scan(
                "A comparison condition on the key column cannot be combined with other "
                "comparisons such as an IN predicate"
            )
        value = self._key_value(column.name, other, node)
        if operator == "=":
            equal.setdefault(column.name, value)
        else:
            ranges.setdefault(column.name, (operator, value))
        return False

    def _key_value(self, name: str, other: Expression, node: Expression) -> Any:
        column = self._schema.find(name)
        if column is None or isinstance(other, NullLiteral):
            raise KsqlException(f"Primary key columns can not be NULL: {text(node)}")
        try:
            value = constant(other, column.type, name, self._functions, "pull query")
        except KsqlException as error:
            if "Expected type" not in str(error):
                raise
            shown = other.value if isinstance(other, StringLiteral) else text(other)
            raise KsqlException(
                f"'{shown}' can not be converted to the type of the key column: {column.name} "
                f"{column.type} KEY"
            ) from error
        if value is None:
            raise KsqlException(f"Primary key columns can not be NULL: {text(node)}")
        return value

    def _bounded(self, lookup: KeyLookup, found: list[_WindowBound]) -> KeyLookup:
        """With bounds of WINDOWSTART and WINDOWEND: one equality, or one bound on each side."""
        times: dict[str, dict[str, int]] = {WINDOWSTART: {}, WINDOWEND: {}}
        for name, operator, other, node in found:
            time = self._time(other, name)
            if operator in ("<", ">"):
                time += 1 if operator == ">" else -1
            kind, seen = operator[0], times[name]
            is_first = kind not in seen
            seen.setdefault(kind, time)
            if "=" in seen and len(seen) > 1:
                raise invalid_where(
                    f"`{text(node)}` cannot be combined with other `{name}` bounds", windowed=True
                )
            if not is_first:
                raise invalid_where(
                    f"Duplicate `{name}` bounds on: {COMPARISONS[kind]}", windowed=True
                )
        start, end = (
            Bounds(seen.get("=", seen.get(">")), seen.get("=", seen.get("<")))
            for seen in times.values()
        )
        return replace(lookup, start=start, end=end)

    def _time(self, other: Expression, name: str) -> int:
        if isinstance(other, StringLiteral):
            try:
                return parse_partial(other.value)
            except KsqlException as error:
                raise invalid_where(
                    f"Failed to parse datetime: {other.value}", windowed=True
                ) from error
        try:
            value = constant(other, BIGINT, name, self._functions, "pull query window bounds")
        except KsqlException:
            value = None
        if value is None:
            raise invalid_where(
                "Window bounds must resolve to an INT, BIGINT, or STRING containing a datetime",
                windowed=True,
            )
        return int(value)

    def _check_like(self, node: Like) -> None:
        if not isinstance(node.value, ColumnRef):
            self._scan("Like condition must be between strings")
            return
        column = self._rows.find_value(node.value.name)
        if column is not None and column.type is not STRING:
            raise invalid_where(
                "The column type for Like condition must be VARCHAR. The column type is "
                f"{column.type}",
                windowed=self._windowed,
            )


def _distinct(lookups: list[KeyLookup]) -> tuple[KeyLookup, ...]:
    """Each lookup once. Keys may hold arrays, which have no hash."""
    found: list[KeyLookup] = []
    for each in lookups:
        if each not in found:
            found.append(each)
    return tuple(found)


def _plain(expression: Expression) -> Expression:
    """Columns without the alias of their only source."""

    def plain(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.source is not None:
            return ColumnRef(node.name, position=node.position)
        return None

    return rewrite(expression, plain)
