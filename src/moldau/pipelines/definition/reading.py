"""From plain data (a YAML document, a JSON value of the registry) to the parts of a pipeline.

Data may carry places in two ways: the registry's JSON has them in `place`, a YAML document has
them beside the data, by path. Unknown names, wrong types and contradictions are all collected
before anything is raised, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from moldau.pipelines.definition.code import Code
from moldau.pipelines.definition.mistakes import suggestion
from moldau.pipelines.definition.model import (
    APPEND,
    FAIL,
    Cast,
    Drop,
    Python,
    Rename,
    RowStep,
    Sink,
    Source,
    Sql,
    Step,
    Table,
    Topic,
    Watermark,
)
from moldau.pipelines.definition.outputs import Output
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.transform_reading import TRANSFORM_OPTIONS, read_transform
from moldau.pipelines.definition.triggers import Trigger, trigger_of
from moldau.pipelines.errors import DefinitionError, PipelineError
from moldau.spark import tables

PipelinePath = tuple[str | int, ...]
Places = Callable[[PipelinePath], Place | None]
T = TypeVar("T")

_FIELDS = (
    "name",
    "source",
    "sources",
    "steps",
    "sink",
    "sinks",
    "trigger",
    "outputMode",
    "dead_letter",
    "errors",
    "connector",
    "engine",
    "kafka",
    "checkpoint",
)
_STEPS = ("watermark", "sql", "python", "row", "cast", "drop", "rename", *TRANSFORM_OPTIONS)
_STEP_OPTIONS: dict[str, tuple[str, ...]] = {
    "watermark": ("name", "from"),
    "sql": ("name",),
    "python": ("name", "from", "args"),
    "row": ("name", "from", "args", "schema"),
    "cast": ("name", "from"),
    "drop": ("name", "from"),
    "rename": ("name", "from"),
    **TRANSFORM_OPTIONS,
}
_TOPIC_KEYS = ("topic", "topics", "pattern", "assign", "route")
_TOPIC_TEXTS = ("topic", "route", "pattern", "format", "schema", "key", "partition", "timestamp")


class PipelineArguments(TypedDict):
    """The arguments of a pipeline's constructor."""

    name: str
    source: Source | None
    sources: Mapping[str, Source]
    steps: list[Step]
    sink: Sink | None
    sinks: Mapping[str, Output]
    trigger: Trigger | None
    output_mode: str
    dead_letter: str | None
    errors: str
    connector: str
    engine: str
    kafka: Mapping[str, str]
    checkpoint: str | None
    base: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Reading:
    """As much of a pipeline as could be read, and every mistake in how it is written."""

    arguments: PipelineArguments
    #: In their places, None where one could not be read.
    steps: tuple[Step | None, ...]
    mistakes: tuple[PipelineError, ...]

    def checked(self) -> PipelineArguments:
        if self.mistakes:
            raise DefinitionError(self.mistakes)
        return self.arguments


def parts_of(
    data: object,
    *,
    places: Places | None = None,
    resolve: Callable[[str], Code] | None = None,
    base: str | None = None,
) -> Reading:
    """The arguments for the pipeline that `data` describes.

    `resolve` turns `file.py:function` into code; data without YAML behind it has the code already.
    """
    return _Reader(places or (lambda path: None), resolve, base).pipeline(data)


def in_order(mistakes: Iterable[PipelineError]) -> DefinitionError:
    """What is raised for all mistakes together, in the order of the document."""
    unique = {str(mistake): mistake for mistake in mistakes}
    return DefinitionError(sorted(unique.values(), key=_position))


class _Reader:
    def __init__(
        self, places: Places, resolve: Callable[[str], Code] | None, base: str | None
    ) -> None:
        self._places = places
        self._resolve = resolve
        self._base = base
        self._mistakes: list[PipelineError] = []

    def pipeline(self, data: object) -> Reading:
        fields = self._mapping(data, (), "a pipeline")
        self.known(fields, (*_FIELDS, "base", "place"), (), "")
        for name in ("name", "sink"):
            if name not in fields and not (name == "sink" and "sinks" in fields):
                self.wrong((), f"{name}: missing")
        if "sink" in fields and "sinks" in fields:
            self.wrong(("sinks",), "sinks: give either 'sink' or 'sinks'")
        if "source" in fields and "sources" in fields:
            self.wrong(("sources",), "sources: give either 'source' or 'sources'")
        source = self._source(fields["source"], ("source",)) if "source" in fields else None
        sources = {
            str(name): self._source(one, ("sources", name))
            for name, one in self._mapping(
                fields.get("sources", {}), ("sources",), "sources"
            ).items()
        }
        steps = self._steps(fields.get("steps") or [])
        sink = self._end(fields.get("sink", {}), ("sink",)) if "sink" in fields else None
        sinks = self._sinks(fields.get("sinks", {}))
        trigger = self._trigger(fields.get("trigger"))
        kafka = self._mapping(fields.get("kafka") or {}, ("kafka",), "kafka")
        arguments = PipelineArguments(
            name=str(fields.get("name", "")),
            source=source,
            sources={name: one for name, one in sources.items() if one is not None},
            steps=[step for step in steps if step is not None],
            sink=sink,
            sinks=sinks,
            trigger=trigger,
            output_mode=str(fields.get("outputMode", APPEND)).lower(),
            dead_letter=_text_or_none(fields.get("dead_letter")),
            errors=str(fields.get("errors", FAIL)).lower(),
            connector=str(fields.get("connector", "auto")).lower(),
            engine=str(fields.get("engine", "auto")).lower(),
            kafka={str(key): _text(value) for key, value in kafka.items()},
            checkpoint=_text_or_none(fields.get("checkpoint")),
            base=str(fields.get("base") or self._base or Path.cwd()),
            place=self._place(fields, ()),
        )
        return Reading(arguments, tuple(steps), tuple(sorted(self._mistakes, key=_position)))

    # Sources and sinks

    def _sinks(self, data: object) -> dict[str, Output]:
        found: dict[str, Output] = {}
        for name, one in self._mapping(data, ("sinks",), "sinks").items():
            path = ("sinks", name)
            fields = dict(self._mapping(one, path, _dotted(path)))
            query = fields.pop("sql", None)
            if query is not None and not isinstance(query, str):
                self.wrong((*path, "sql"), f"sinks.{name}: sql: expected a SELECT")
                query = None
            if (sink := self._end(fields, path)) is not None:
                found[str(name)] = Output(sink, query)
        return found

    def _source(self, data: object, path: PipelinePath) -> Source | None:
        return self._end(data, path)

    def _end(self, data: object, path: PipelinePath) -> Source | Sink | None:
        where = _dotted(path)
        fields = dict(self._mapping(data, path, where))
        place = self._place(fields, path)
        fields.pop("place", None)
        if not fields:
            self.wrong(path, f"{where}: empty; e.g. {{topic: orders}}")
            return None
        watermark = fields.pop("watermark", None)
        mark = None
        if watermark is not None:
            mark = self.watermark(watermark, (*path, "watermark"))
        if any(name in fields for name in _TOPIC_KEYS):
            return self._topic(fields, path, place, mark)
        kind = next((name for name in fields if name in tables.KINDS), None)
        if kind is None:
            self._neither(fields, path, where)
            return None
        streaming = fields.pop("streaming", True)
        if not isinstance(streaming, bool):
            self.wrong((*path, "streaming"), f"{where}: streaming: expected true or false")
        return Table(kind, fields, watermark=mark, streaming=streaming is True, place=place)

    def _neither(self, fields: Mapping[str, Any], path: PipelinePath, where: str) -> None:
        """Neither a topic nor a table: perhaps its name is only mistyped."""
        known = (*_TOPIC_KEYS, *tables.KINDS)
        for name in fields:
            if name not in _TOPIC_TEXTS and (hint := suggestion(str(name), known)):
                self.wrong((*path, name), f"{where}: unknown option {name!r}", hint)
                return
        self.wrong(
            path,
            f"{where}: names neither a topic nor a kind of table",
            f"one of {', '.join(known)}",
        )

    def _topic(
        self,
        fields: dict[str, Any],
        path: PipelinePath,
        place: Place | None,
        watermark: Watermark | None,
    ) -> Topic:
        where = _dotted(path)
        texts: dict[str, Any] = {}
        for name in _TOPIC_TEXTS:
            if (value := fields.pop(name, None)) is None:
                continue
            if isinstance(value, Mapping | list):
                self.wrong((*path, name), f"{where}: {name}: expected a text")
            else:
                texts[name] = _text(value)
        if (headers := fields.pop("headers", None)) is not None:
            texts["headers"] = (
                {str(name): _text(value) for name, value in headers.items()}
                if isinstance(headers, Mapping)
                else _text(headers)
            )
        topics = fields.pop("topics", ())
        if isinstance(topics, str):
            topics = [one.strip() for one in topics.split(",")]
        options = self._mapping(fields.pop("options", {}), (*path, "options"), f"{where}: options")
        settings: dict[str, Any] = {
            str(name): value if isinstance(value, Mapping | list) else _text(value)
            for name, value in fields.items()
            if name != "assign"
        }
        self._settings(settings, path, where)
        return Topic(
            **texts,
            topics=[str(one) for one in topics],
            assign=fields.get("assign"),
            options={str(name): _text(value) for name, value in options.items()},
            watermark=watermark,
            place=place,
            **settings,
        )

    def _settings(self, settings: Mapping[str, Any], path: PipelinePath, where: str) -> None:
        """Unknown names are reported here, where the option's own line is known."""
        from moldau.pipelines.definition.checks import unknown_settings

        for name, hint in unknown_settings(settings, sink=path[0] in ("sink", "sinks")):
            self.wrong((*path, name), f"{where}: unknown option {name!r}", hint)

    def watermark(self, data: object, path: PipelinePath, **step: Any) -> Watermark | None:
        fields = self._mapping(data, path, "watermark")
        self.known(fields, ("column", "delay"), path, "watermark: ")
        if "column" not in fields or "delay" not in fields:
            self.wrong(path, "watermark: needs column and delay", "{column: at, delay: 10 minutes}")
            return None
        place = step.pop("place", None) or self._places(path)
        return Watermark(_text(fields["column"]), _text(fields["delay"]), place=place, **step)

    # Steps

    def _steps(self, data: object) -> list[Step | None]:
        if not isinstance(data, list):
            self.wrong(("steps",), "steps: expected a list, each item beginning with '-'")
            return []
        return [self._step(one, ("steps", index)) for index, one in enumerate(data)]

    def _step(self, data: object, path: PipelinePath) -> Step | None:
        where = _dotted(path)
        fields = dict(self._mapping(data, path, where))
        place = self._place(fields, path)
        fields.pop("place", None)
        kinds = [name for name in _STEPS if name in fields]
        if len(kinds) != 1:
            first = str(next(iter(fields), ""))
            hint = suggestion(first, _STEPS) if not kinds else None
            self.wrong(
                path,
                f"{where}: unknown step {first!r}"
                if not kinds
                else f"{where}: {' and '.join(kinds)} are two steps",
                hint or f"a step is one of {', '.join(_STEPS)}",
            )
            return None
        kind = kinds[0]
        self.known(fields, (kind, *_STEP_OPTIONS[kind]), path, f"{where}: ")
        body = fields[kind]
        at = (*path, kind)
        step: dict[str, Any] = {
            "name": _text_or_none(fields.get("name")),
            "source": _text_or_none(fields.get("from")),
            "place": self._places(at) or place,
        }
        match kind:
            case "watermark":
                return self.watermark(body, at, **step)
            case "sql":
                return Sql(body, **step) if self._is(str, body, at, "a SELECT") else None
            case "python" | "row":
                return self._function(kind, body, fields, at, step)
            case "drop":
                columns = [body] if isinstance(body, str) else body
                return (
                    Drop(tuple(columns), **step) if self._is(list, columns, at, "a list") else None
                )
            case _ if kind in TRANSFORM_OPTIONS:
                return read_transform(self, kind, fields, path, step)
            case _:
                if not self._is(Mapping, body, at, "a mapping of columns"):
                    return None
                columns = {str(name): _text(value) for name, value in body.items()}
                return Cast(columns, **step) if kind == "cast" else Rename(columns, **step)

    def _function(
        self,
        kind: str,
        body: object,
        fields: Mapping[str, Any],
        path: PipelinePath,
        step: dict[str, Any],
    ) -> Step | None:
        args = {
            str(name): value
            for name, value in self._mapping(
                fields.get("args", {}), (*path[:-1], "args"), "args"
            ).items()
        }
        if isinstance(body, Mapping):
            code = Code.from_json(body)
        elif isinstance(body, str) and self._resolve is not None:
            try:
                code = self._resolve(body)
            except (ValueError, OSError) as error:
                self.wrong(path, f"{kind}: {error}")
                return None
        else:
            self.wrong(path, f"{kind}: expected 'file.py:function' or 'module:function'")
            return None
        if kind == "python":
            return Python(code, args=args, **step)
        return RowStep(code, schema=_text_or_none(fields.get("schema")), args=args, **step)

    def _trigger(self, data: object) -> Trigger:
        try:
            if data is None or isinstance(data, Mapping):
                return trigger_of(data)
            return trigger_of(str(data))
        except ValueError as error:
            self.wrong(("trigger",), f"trigger: {error}")
            return Trigger()

    # Messages

    def _mapping(self, data: object, path: PipelinePath, what: str) -> Mapping[Any, Any]:
        if isinstance(data, Mapping):
            return data
        self._is(Mapping, data, path, "a mapping", what)
        return {}

    def _is(
        self, kind: type, data: object, path: PipelinePath, expected: str, what: str = ""
    ) -> bool:
        if isinstance(data, kind):
            return True
        label = what or _dotted(path)
        self.wrong(path, f"{label}: expected {expected}, got {_shown(data)}")
        return False

    def known(
        self, fields: Mapping[Any, Any], known: tuple[str, ...], path: PipelinePath, label: str
    ) -> None:
        for name in fields:
            if name not in known and name != "place":
                self.wrong(
                    (*path, name), f"{label}unknown option {name!r}", suggestion(str(name), known)
                )

    def _place(self, fields: Mapping[str, Any], path: PipelinePath) -> Place | None:
        written = fields.get("place")
        if isinstance(written, str):
            return Place.from_json(written)
        return self._places(path)

    def wrong(self, path: PipelinePath, message: str, hint: str | None = None) -> None:
        place = None
        while place is None:
            place = self._places(path)
            if not path:
                break
            path = path[:-1]
        self._mistakes.append(
            PipelineError(message, where=place.exact if place else None, hint=hint)
        )


def _dotted(path: PipelinePath) -> str:
    label = ""
    for part in path:
        label += f"[{part}]" if isinstance(part, int) else f".{part}" if label else str(part)
    return label or "pipeline"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _shown(data: object) -> str:
    shown = repr(data)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _position(mistake: PipelineError) -> tuple[int, int]:
    found = re.fullmatch(r".*?:(\d+)(?::(\d+))?", mistake.where or "")
    return (0, 0) if found is None else (int(found[1]), int(found[2] or 0))
