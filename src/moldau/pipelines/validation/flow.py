"""Follows the columns of a definition from its sources through its steps to its sink.

Every text on the way (schemas, queries, types, expressions, names of columns) is read. What could
not be checked, because only Spark understands it or because columns are not known, is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.pipelines.build.machine.names import METADATA
from moldau.pipelines.definition.model import (
    INPUT,
    Cast,
    Drop,
    Python,
    Rename,
    RowStep,
    Sink,
    Source,
    Sql,
    Step,
    Topic,
    Watermark,
)
from moldau.pipelines.definition.outputs import Output
from moldau.pipelines.definition.relations import Join, Lookup, Window
from moldau.pipelines.validation.machine.cursor import Cursor
from moldau.pipelines.validation.machine.problems import (
    NotUnderstood,
    Problem,
    SyntaxProblem,
    near,
)
from moldau.pipelines.validation.machine.resolving import Columns, Resolver
from moldau.pipelines.validation.machine.sql_parser import parse_expression, parse_query
from moldau.pipelines.validation.machine.types import Doubtful, certain, columns_of, take_type
from moldau.pipelines.validation.relations import columns_after_relation
from moldau.pipelines.validation.transforms import columns_after

__all__ = ["Checked", "Found", "follow"]

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A mistake in the text at `path`."""

    path: Path
    label: str
    text: str
    problem: Problem


@dataclass(slots=True)
class Checked:
    mistakes: list[Found] = field(default_factory=list)
    #: What only Spark can check, in words.
    skipped: list[str] = field(default_factory=list)


def follow(
    sources: Mapping[str, Source],
    steps: Sequence[Step | None],
    sink: Sink | None,
    sinks: Mapping[str, Output] | None = None,
    *,
    unread: Iterable[str] = (),
) -> Checked:
    """`unread` are the names of sources that are there, but of which nothing could be read."""
    return _Flow().run(sources, steps, sink, sinks or {}, unread)


class _Flow:
    def __init__(self) -> None:
        self._checked = Checked()
        self._always: tuple[str, ...] = ()

    def run(
        self,
        sources: Mapping[str, Source],
        steps: Sequence[Step | None],
        sink: Sink | None,
        sinks: Mapping[str, Output],
        unread: Iterable[str],
    ) -> Checked:
        if any(isinstance(source, Topic) for source in sources.values()):
            self._always = METADATA
        views: dict[str, Columns] = {}
        for name, source in sources.items():
            path: Path = ("source",) if name == INPUT else ("sources", name)
            views[name] = self._source(source, path)
        for name in unread:
            views[name] = None
        current = views.get(INPUT)
        if len(views) == 1:
            current = views[INPUT] = next(iter(views.values()))
        for index, step in enumerate(steps):
            if step is None:
                current = views[INPUT] = None
                continue
            before = views.get(step.source) if step.source not in (None, INPUT) else current
            current = views[INPUT] = self._step(step, index, before, views)
            if step.name is not None:
                views[step.name] = current
        if sink is not None:
            self._end(sink, current, ("sink",))
        for name, output in sinks.items():
            at: Path = ("sinks", name)
            columns = current
            if (step := output.step()) is not None:
                # Each reads what the last step gives, and nothing else.
                columns = self._sql(step, at, f"sinks.{name}", {INPUT: current})
            self._end(output.sink, columns, at)
        return self._checked

    # Sources

    def _source(self, source: Source, path: Path) -> Columns:
        label = _dotted(path)
        columns: Columns
        if not isinstance(source, Topic):
            schema = source.options.get("schema")
            columns = self.schema(schema, (*path, "schema"), f"{label}: schema", own=False)
            if columns is None:
                self.skip(f"the columns of {label}")
        elif source.format in ("string", "binary"):
            columns = ("value",)
        elif source.format in ("json", "csv"):
            columns = self.schema(source.schema, (*path, "schema"), f"{label}: schema")
        else:
            columns = _avro_columns(source.schema) if source.format == "avro" else None
            if columns is None:
                self.skip(f"the schema of {label}")
        if source.watermark is not None:
            self.have(
                [source.watermark.column],
                columns,
                (*path, "watermark", "column"),
                f"{label}: watermark",
            )
        return columns

    def schema(self, schema: object, path: Path, label: str, *, own: bool = True) -> Columns:
        if not isinstance(schema, str):
            return None
        names, problems = columns_of(schema)
        self.add(path, label, schema, problems)
        if names is None:
            return None
        if own:
            taken = [name for name in names if name in METADATA]
            for name in taken:
                message = f"{name!r} is the name of a column that every record has"
                self.add(path, label, schema, [Problem(message, schema.find(name), name)])
        return tuple(names)

    # Steps

    def _step(
        self, step: Step, index: int, before: Columns, views: Mapping[str, Columns]
    ) -> Columns:
        path: Path = ("steps", index)
        label = f"steps[{index}]"
        match step:
            case Sql():
                return self._sql(step, path, label, views)
            case Python():
                self.skip(f"the columns after {label} (a Python function)")
                return None
            case RowStep():
                if step.schema is None:
                    return before
                return self.schema(step.schema, (*path, "schema"), f"{label}: schema")
            case Watermark():
                at = (*path, "watermark", "column")
                self.have([step.column], before, at, f"{label}: watermark")
                return before
            case Cast():
                for name, kind in step.columns.items():
                    self._type(kind, (*path, "cast", name), f"{label}: cast: {name}")
                self.have(step.columns, before, (*path, "cast"), f"{label}: cast")
                return before
            case Drop():
                self.have(step.columns, before, (*path, "drop"), f"{label}: drop")
                dropped = {name.lower() for name in step.columns}
                return _without(before, dropped)
            case Rename():
                self.have(step.columns, before, (*path, "rename"), f"{label}: rename")
                if before is None:
                    return None
                renamed = {old.lower(): new for old, new in step.columns.items()}
                there = {name.lower() for name in before}
                return tuple(renamed.get(name.lower(), name) for name in before) + tuple(
                    new if old in METADATA else Doubtful(new)
                    for old, new in step.columns.items()
                    if old.lower() not in there
                )
            case Window() | Join() | Lookup():
                return columns_after_relation(step, before, views, path, self)
            case _:
                return columns_after(step, before, path, self)

    def _sql(self, step: Sql, path: Path, label: str, views: Mapping[str, Columns]) -> Columns:
        at = (*path, "sql")
        try:
            query = parse_query(step.query)
        except SyntaxProblem as error:
            self.add(at, f"{label}: sql", step.query, [error.problem])
            return None
        except NotUnderstood:
            self.skip(f"the SQL of {label}")
            return None
        resolver = Resolver(views, always=self._always)
        columns = resolver.result(query)
        self.add(at, f"{label}: sql", step.query, resolver.problems)
        if columns is None and not resolver.problems:
            self.skip(f"the columns after {label}")
        return columns

    def _type(self, kind: str, path: Path, label: str) -> None:
        try:
            cursor = Cursor(kind)
            take_type(cursor)
            if cursor.next.kind != "end":
                cursor.fail_expecting("the end of the type")
        except SyntaxProblem as error:
            self.add(path, label, kind, [error.problem])
        except NotUnderstood:
            self.skip(f"the type {kind}")

    # Sinks

    def _end(self, sink: Sink, columns: Columns, at: Path) -> None:
        """`at` is where the sink is in the definition."""
        if isinstance(sink, Topic):
            self._topic_sink(sink, columns, at)
            return
        for option in ("partitionBy", "upsert"):
            named = sink.options.get(option) or ()
            names = named.split(",") if isinstance(named, str) else map(str, named)
            # Others are expressions: `days(at)`.
            names = [name.strip() for name in names if name.strip().isidentifier()]
            self.have(names, columns, (*at, option), f"{_dotted(at)}: {option}")

    def _topic_sink(self, sink: Topic, columns: Columns, at: Path) -> None:
        headers = sink.headers if isinstance(sink.headers, Mapping) else {}
        expressions: list[tuple[Path, str]] = [
            ((*at, "headers", name), text) for name, text in headers.items()
        ]
        for name in ("route", "key", "partition", "timestamp", "headers"):
            if isinstance(text := getattr(sink, name), str):
                expressions.append(((*at, name), text))
        for path, text in expressions:
            self.expression(text, columns, path, f"{_dotted(at)}: {path[len(at)]}")
        if columns is not None and sink.format in ("string", "binary"):
            own = [name for name in certain(columns) if name not in METADATA]
            if len(own) > 1 and "value" not in {name.lower() for name in own}:
                message = (
                    f"format {sink.format!r} writes the column 'value', or the only column; there "
                    f"is {', '.join(name or '?' for name in own)}"
                )
                self.add((*at, "format"), _dotted(at), "", [Problem(message, 0, "")])

    def expression(self, text: str, columns: Columns, path: Path, label: str) -> None:
        try:
            expression = parse_expression(text)
        except SyntaxProblem as error:
            self.add(path, label, text, [error.problem])
            return
        except NotUnderstood:
            self.skip(f"{label} {text}")
            return
        resolver = Resolver({}, always=self._always)
        resolver.expression(expression, columns)
        self.add(path, label, text, resolver.problems)

    # Messages

    def have(
        self, names: Sequence[str] | Mapping[str, str], columns: Columns, path: Path, label: str
    ) -> bool:
        """Whether columns that are named outside of SQL are there, as far as that is known."""
        if columns is None:
            return True
        are_there = True
        known = {name.lower() for name in (*columns, *self._always)}
        for index, name in enumerate(names):
            # A path into a column: `address.city`.
            if name.lower() in known or name.partition(".")[0].lower() in known:
                continue
            there = certain(columns)
            meant = near(name, there)
            listed = f"there is {', '.join(there)}" if there else None
            hint = f"did you mean {meant}?" if meant else listed
            problem = Problem(f"there is no column {name!r}", 0, name, hint)
            # Of a list the item, of a mapping the key, else the value itself.
            at = (*path, name if isinstance(names, Mapping) else index)
            self.add(at, label, name, [problem])
            are_there = False
        return are_there

    def add(self, path: Path, label: str, text: str, problems: Sequence[Problem]) -> None:
        self._checked.mistakes += [Found(path, label, text, problem) for problem in problems]

    def skip(self, what: str) -> None:
        self._checked.skipped.append(what)


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)


def _without(columns: Columns, dropped: set[str]) -> Columns:
    if columns is None:
        return None
    return tuple(name for name in columns if name.lower() not in dropped)


def _avro_columns(schema: str | None) -> Columns:
    try:
        fields = json.loads(schema or "")["fields"]
        return tuple(str(one["name"]) for one in fields)
    except (ValueError, TypeError, KeyError):
        # A file, or not what it should be: Spark says what is wrong with it.
        return None
