"""The checks of a definition that need no Spark.

`mistakes` looks at a whole pipeline and finds every mistake; it does not stop at the first. The
same checks hold for YAML, for Python and for what the registry keeps.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from moldau.pipelines.definition.model import (
    APPEND,
    COMPLETE,
    FAIL,
    IGNORE,
    INPUT,
    UPDATE,
    Cast,
    Drop,
    Rename,
    Sink,
    Source,
    Sql,
    Step,
    Table,
    Topic,
    Transforms,
    Watermark,
)
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.secrets import is_put_in_later
from moldau.pipelines.definition.topic_options import sink_options, source_options
from moldau.pipelines.definition.transform_checks import transform_mistakes
from moldau.pipelines.definition.triggers import is_interval
from moldau.pipelines.errors import DefinitionError, PipelineError
from moldau.spark import tables
from moldau.spark.sink.machine.options import parse as sink_parser
from moldau.spark.source.machine.options import parse_options as source_parser
from moldau.spark.topic_options import OptionError

SOURCE_FORMATS = ("json", "csv", "string", "binary", "avro", "protobuf", "json-schema")
SINK_FORMATS = SOURCE_FORMATS
SOURCE_SETTINGS = (
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "targetBatchDuration",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupId",
    "groupIdPrefix",
    "mirrorOffsets",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
SINK_SETTINGS = ("exactlyOnce", "allowLoop")
CONNECTORS = ("auto", "moldau", "kafka")
ENGINES = ("auto", "spark", "task")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_DEAD_LETTER_QUERY = ".dead-letter"
_ANY_CLUSTER = "127.0.0.1:9092"


class Checkable(Protocol):
    """What the checks read of a pipeline."""

    @property
    def name(self) -> str: ...
    @property
    def sources(self) -> Mapping[str, Source]: ...
    @property
    def steps(self) -> Sequence[Step | None]: ...
    @property
    def sink(self) -> Sink | None: ...
    @property
    def output_mode(self) -> str: ...
    @property
    def dead_letter(self) -> str | None: ...
    @property
    def errors(self) -> str: ...
    @property
    def connector(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def kafka(self) -> Mapping[str, str]: ...
    @property
    def place(self) -> Place | None: ...


Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Mistake:
    """`path` leads to the option that it is about; `place` is used where no document is known."""

    place: Place | None
    path: Path
    message: str
    hint: str | None


def check(pipeline: Checkable) -> None:
    """Raises `DefinitionError` if there is a mistake."""
    if found := list(mistakes(pipeline)):
        raise DefinitionError(found)


def mistakes(
    pipeline: Checkable, places: Callable[[Path], Place | None] | None = None
) -> Iterable[PipelineError]:
    """Every mistake; with `places` of a document, each with the line and column of its option."""
    for found in _mistakes(pipeline):
        place, path = None, found.path
        while places is not None and place is None and path:
            place, path = places(path), path[:-1]
        where = place.exact if place is not None else str(found.place) if found.place else None
        yield PipelineError(found.message, where=where, hint=found.hint)


def path_of(where: str) -> Path:
    """`sources.orders` and `steps[2]` as paths."""
    if where.startswith("steps["):
        return ("steps", int(where[6:-1]))
    return tuple(where.split(".", 1))


def _mistakes(pipeline: Checkable) -> Iterable[_Mistake]:
    yield from _name(pipeline)
    if not pipeline.sources:
        yield _mistake(pipeline.place, "source: missing", "e.g. source: {topic: orders}")
    for name, source in pipeline.sources.items():
        where = "source" if name == INPUT else f"sources.{name}"
        if not _VIEW.fullmatch(name):
            yield _mistake(source.place, f"{where}: {name!r} cannot be the name of a view in SQL")
        found = list(_source(source, where))
        yield from found
        if isinstance(source, Topic) and not found:
            yield from _values(source, pipeline, where)
    if pipeline.sources and not any(source.streaming for source in pipeline.sources.values()):
        yield _mistake(pipeline.place, "source: none is streaming, so there is nothing to wait for")
    yield from _steps(pipeline)
    yield from _sink(pipeline)
    yield from _errors(pipeline)


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def _mistake(
    place: Place | None, message: str, hint: str | None = None, *, at: str | None = None
) -> _Mistake:
    """`at` is the option, if it is not the one that the message begins with."""
    where = message.partition(": ")[0]
    return _Mistake(place, path_of(where) + (() if at is None else (at,)), message, hint)


def _name(pipeline: Checkable) -> Iterable[_Mistake]:
    name = pipeline.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        yield _mistake(
            pipeline.place, f"name: {name!r} may only have letters, digits, '.', '_' and '-'"
        )
    elif name.endswith(_DEAD_LETTER_QUERY):
        yield _mistake(
            pipeline.place, f"name: must not end with {_DEAD_LETTER_QUERY!r}, which names queries"
        )


def _source(source: Source, where: str) -> Iterable[_Mistake]:
    if source.watermark:
        yield from _delay(source.watermark, where)
    if isinstance(source, Table):
        yield from _table(source, "source", where)
        return
    given = [
        name
        for name in ("topic", "topics", "pattern", "assign")
        if getattr(source, name) not in (None, ())
    ]
    if len(given) != 1:
        listed = " and ".join(given) or "none"
        yield _mistake(
            source.place, f"{where}: exactly one of topic, topics, pattern and assign, not {listed}"
        )
    for topic in (source.topic, *source.topics):
        if topic is not None:
            yield from _topic_name(topic, source.place, where)
    for name in ("key", "headers", "partition", "timestamp"):
        if getattr(source, name) is not None:
            yield _mistake(source.place, f"{where}: {name!r} is an option of sinks only", at=name)
    yield from _settings(source, where)
    yield from _format(source, SOURCE_FORMATS, where)
    needs_schema = source.format in ("json", "csv", "avro", "protobuf")
    if needs_schema and not source.schema and not _has_registry(source):
        kind = {"avro": "the Avro schema", "protobuf": "the message's name"}.get(
            source.format, 'columns as DDL, e.g. schema: "id STRING, amount DOUBLE"'
        )
        yield _mistake(
            source.place,
            f"{where}: format {source.format!r} needs a schema: {kind}",
            "format: string gives the value as it is",
        )
    if source.format in ("string", "binary") and source.schema:
        yield _mistake(
            source.place, f"{where}: format {source.format!r} has no schema", at="schema"
        )


def _format(topic: Topic, known: Iterable[str], where: str) -> Iterable[_Mistake]:
    if topic.format not in known:
        yield _mistake(
            topic.place,
            f"{where}: unknown format {topic.format!r}",
            suggestion(topic.format, known) or f"known are {', '.join(known)}",
            at="format",
        )
    if topic.format == "json-schema" and not _has_registry(topic):
        yield _mistake(
            topic.place,
            f"{where}: format 'json-schema' needs a registry",
            "options: {schema.registry.url: http://127.0.0.1:8081}",
        )
    if topic.options and topic.format in ("string", "binary"):
        yield _mistake(
            topic.place, f"{where}: format {topic.format!r} has no options", at="options"
        )


def _has_registry(topic: Topic) -> bool:
    """Its schemas are those of a registry then."""
    return topic.format in ("avro", "protobuf", "json-schema") and bool(
        topic.options.get("schema.registry.url")
    )


def _topic_name(topic: str, place: Place | None, where: str) -> Iterable[_Mistake]:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield _mistake(place, f"{where}: {topic!r} cannot be the name of a topic", at="topic")


def unknown_settings(names: Iterable[str], *, sink: bool) -> Iterable[tuple[str, str | None]]:
    """The options of a topic that there are not, each with what was probably meant."""
    known = SINK_SETTINGS if sink else SOURCE_SETTINGS
    lower = {name.lower() for name in known}
    own: tuple[str, ...] = ("topic", "format", "schema", "options")
    own += ("key", "headers", "partition", "timestamp") if sink else ("topics", "pattern", "assign")
    for name in names:
        if name.lower() not in lower and not name.lower().startswith("kafka."):
            yield name, suggestion(name, (*own, "watermark", *known))


def _settings(topic: Topic, where: str) -> Iterable[_Mistake]:
    for name, hint in unknown_settings(topic.settings, sink=where == "sink"):
        yield _mistake(topic.place, f"{where}: unknown option {name!r}", hint, at=name)
    for name in topic.settings:
        if name.lower() == "kafka.bootstrap.servers":
            yield _mistake(
                topic.place,
                f"{where}: the cluster is the deployment's, not the definition's",
                "leave out kafka.bootstrap.servers",
                at=name,
            )


def _values(topic: Topic, pipeline: Checkable, where: str) -> Iterable[_Mistake]:
    """What the source and the sink themselves have to say about their options' values."""
    if is_put_in_later(f"{topic.settings} {pipeline.kafka}"):
        # It is checked then.
        return
    try:
        if where == "sink":
            given = sink_options(topic, pipeline.kafka, bootstrap=_ANY_CLUSTER)
            sink_parser(given | {"checkpointLocation": "-"}, is_stream=True)
        else:
            given = source_options(
                topic, pipeline.kafka, bootstrap=_ANY_CLUSTER, group=pipeline.name
            )
            source_parser(given, streaming=True)
    except OptionError as error:
        named = re.match(r"Option '([^']+)'", str(error))
        given_as = {name.lower(): name for name in topic.settings}
        at = given_as.get(named[1].lower()) if named else None
        yield _mistake(topic.place, f"{where}: {error}", at=at)


def _table(table: Table, role: str, where: str) -> Iterable[_Mistake]:
    options = dict(table.options)
    if is_put_in_later(options):
        return
    if str(options.get("onError", "")).lower() == "dead_letter":
        # Where they go is declared once, in the pipeline's own dead_letter.
        options.setdefault("deadLetterTopic", "-")
        options.setdefault("kafka.bootstrap.servers", "-")
    try:
        tables.check_options(table.kind, role, options)
    except tables.TableError as error:
        message = error.message.removeprefix(f"{table.kind} {role}: ")
        named = re.search(r"'([^']+)'", message)
        at = named[1] if named and named[1] in table.options else None
        yield _mistake(table.place, f"{where}: {message}", _as_hint(error.hint), at=at)


def _as_hint(text: str) -> str | None:
    return text[:1].lower() + text[1:] if text else None


def _steps(pipeline: Checkable) -> Iterable[_Mistake]:
    known = set(pipeline.sources)
    several = len(pipeline.sources) > 1 and INPUT not in pipeline.sources
    for index, step in enumerate(pipeline.steps):
        if step is None:
            continue
        where = f"steps[{index}]"
        if step.name is not None and not _VIEW.fullmatch(step.name):
            yield _mistake(
                step.place, f"{where}: name {step.name!r} cannot be a view's in SQL", at="name"
            )
        elif step.name is not None and (step.name in known or step.name == INPUT):
            yield _mistake(
                step.place, f"{where}: there is already something named {step.name!r}", at="name"
            )
        if step.source is not None and step.source not in known | {INPUT}:
            yield _mistake(
                step.place,
                f"{where}: from: there is no source or earlier step {step.source!r}",
                suggestion(step.source, known),
                at="from",
            )
        if several and index == 0 and step.source is None and not isinstance(step, Sql):
            yield _mistake(
                step.place,
                f"{where}: with several sources the first step must name its source",
                f"from: {next(iter(pipeline.sources))}",
            )
        yield from _step(step, where)
        if isinstance(step, Transforms):
            yield from _transform(step, where, pipeline, pipeline.steps[:index])
        if step.name is not None:
            known.add(step.name)
    if several and not pipeline.steps:
        yield _mistake(pipeline.place, "steps: several sources need a step that joins them")


def _step(step: Step, where: str) -> Iterable[_Mistake]:
    if isinstance(step, Watermark):
        yield from _delay(step, where)
    if isinstance(step, Sql) and not step.query.strip():
        yield _mistake(step.place, f"{where}: sql: empty")
    if isinstance(step, Sql) and step.source is not None:
        yield _mistake(
            step.place, f"{where}: from: a SQL step names its view in the query", at="from"
        )
    if isinstance(step, Cast | Drop | Rename) and not step.columns:
        yield _mistake(step.place, f"{where}: no column is named")


def _transform(
    step: Transforms, where: str, pipeline: Checkable, earlier: Sequence[Step | None]
) -> Iterable[_Mistake]:
    for wrong in transform_mistakes(step, pipeline, earlier):
        path = (*path_of(where), step.KIND, *wrong.at)
        yield _Mistake(step.place, path, f"{where}: {step.KIND}: {wrong.message}", wrong.hint)


def _delay(watermark: Watermark, where: str) -> Iterable[_Mistake]:
    if not is_interval(watermark.delay):
        yield _mistake(
            watermark.place,
            f"{where}: watermark: delay {watermark.delay!r} is no time",
            "e.g. 10 minutes",
            at="watermark",
        )


def _sink(pipeline: Checkable) -> Iterable[_Mistake]:
    sink = pipeline.sink
    if pipeline.output_mode not in (APPEND, UPDATE, COMPLETE):
        yield _mistake(
            pipeline.place,
            f"outputMode: unknown mode {pipeline.output_mode!r}",
            suggestion(pipeline.output_mode, (APPEND, UPDATE, COMPLETE))
            or "known are append, update and complete",
        )
    if sink is None:
        return
    if isinstance(sink, Table):
        yield from _table_sink(pipeline, sink)
        return
    found = [*_topic_sink(sink), *_not_for_kafka(pipeline, sink), *_loop(pipeline, sink)]
    yield from found
    if not found:
        yield from _values(sink, pipeline, "sink")


def _loop(pipeline: Checkable, sink: Topic) -> Iterable[_Mistake]:
    """A pipeline that reads what it writes never comes to an end."""
    allowed = next(
        (value for name, value in sink.settings.items() if name.lower() == "allowloop"), False
    )
    if str(allowed).lower() not in ("true", "false"):
        yield _mistake(
            sink.place, f"sink: allowLoop: expected true or false, got {allowed!r}", at="allowLoop"
        )
    if sink.topic is None or str(allowed).lower() == "true":
        return
    for name, source in pipeline.sources.items():
        if _reads(source, sink.topic):
            where = "source" if name == INPUT else f"sources.{name}"
            yield _mistake(
                sink.place,
                f"sink: topic {sink.topic!r} is also read by {where}, so the pipeline would read "
                "its own results again and again",
                "write to another topic, or set allowLoop: true if a step ends the loop",
                at="topic",
            )


def _reads(source: Source, topic: str) -> bool:
    """Whether records of the topic reach the source."""
    if not isinstance(source, Topic):
        return False
    if topic == source.topic or topic in source.topics:
        return True
    try:
        if source.pattern is not None:
            return re.fullmatch(source.pattern, topic) is not None
        return source.assign is not None and topic in json.loads(source.assign)
    except (re.error, ValueError, TypeError):
        # A pattern of Java's that Python does not know, or a mistake that is reported elsewhere.
        return False


def _not_for_kafka(pipeline: Checkable, sink: Topic) -> Iterable[_Mistake]:
    """What Spark's own connector would leave out without a word."""
    if pipeline.connector != "kafka":
        return
    asked = {name.lower(): str(value).lower() for name, value in sink.settings.items()}
    if sink.timestamp is not None:
        yield _mistake(
            sink.place, "sink: connector 'kafka' writes no timestamps of your own", at="timestamp"
        )
    if asked.get("exactlyonce") == "true":
        yield _mistake(
            sink.place,
            "sink: connector 'kafka' is at least once",
            "connector: auto or moldau",
            at=next(name for name in sink.settings if name.lower() == "exactlyonce"),
        )


def _topic_sink(sink: Topic) -> Iterable[_Mistake]:
    if sink.topics or sink.pattern or sink.assign or sink.topic is None:
        yield _mistake(sink.place, "sink: exactly one topic")
    else:
        yield from _topic_name(sink.topic, sink.place, "sink")
    if sink.watermark:
        yield _mistake(
            sink.place, "sink: 'watermark' is an option of sources and a step", at="watermark"
        )
    yield from _settings(sink, "sink")
    yield from _format(sink, SINK_FORMATS, "sink")
    if sink.format == "protobuf" and not sink.schema and not _has_registry(sink):
        yield _mistake(sink.place, "sink: format 'protobuf' needs a schema: the message's name")
    if sink.format in ("json", "csv", "string", "binary") and sink.schema:
        yield _mistake(
            sink.place, "sink: the schema is that of the last step; leave it out", at="schema"
        )


def _table_sink(pipeline: Checkable, sink: Table) -> Iterable[_Mistake]:
    if sink.watermark or not sink.streaming:
        yield _mistake(sink.place, "sink: 'watermark' and 'streaming' are options of sources")
    found = list(_table(sink, "sink", "sink"))
    yield from found
    to_dead_letter = str(sink.options.get("onError", "")).lower() == "dead_letter"
    if to_dead_letter and pipeline.dead_letter is None:
        yield _mistake(
            sink.place,
            "sink: 'onError: dead_letter' needs the pipeline's 'dead_letter'",
            "dead_letter: name of a topic",
            at="onError",
        )
    known_mode = pipeline.output_mode in (APPEND, UPDATE, COMPLETE)
    if found or not known_mode or is_put_in_later(sink.options):
        return
    filled = {"deadLetterTopic": "-", "kafka.bootstrap.servers": "-"} if to_dead_letter else {}
    try:
        checked = tables.check_options(sink.kind, "sink", filled | dict(sink.options))
        tables.check_output_mode(checked, pipeline.output_mode)
    except tables.TableError as error:
        yield _mistake(sink.place, f"outputMode: {error.message}", _as_hint(error.hint))


def _errors(pipeline: Checkable) -> Iterable[_Mistake]:
    if pipeline.errors not in (FAIL, IGNORE):
        yield _mistake(
            pipeline.place,
            f"errors: unknown value {pipeline.errors!r}",
            "fail or ignore; for a dead-letter topic write dead_letter: name",
        )
    if pipeline.dead_letter is not None:
        if pipeline.errors == IGNORE:
            yield _mistake(pipeline.place, "errors: ignore contradicts dead_letter; leave one out")
        yield from _topic_name(pipeline.dead_letter, pipeline.place, "dead_letter")
        if any(_reads(source, pipeline.dead_letter) for source in pipeline.sources.values()):
            yield _mistake(
                pipeline.place,
                "dead_letter: is also the source, so bad records would be read again and again",
            )
    if pipeline.connector not in CONNECTORS:
        yield _mistake(
            pipeline.place,
            f"connector: unknown connector {pipeline.connector!r}",
            suggestion(pipeline.connector, CONNECTORS) or f"known are {', '.join(CONNECTORS)}",
        )
    if pipeline.engine not in ENGINES:
        yield _mistake(
            pipeline.place,
            f"engine: unknown engine {pipeline.engine!r}",
            suggestion(pipeline.engine, ENGINES) or f"known are {', '.join(ENGINES)}",
        )
