"""The checks of a definition that need no Spark.

`mistakes` looks at a whole pipeline and finds every mistake; it does not stop at the first. The
same checks hold for YAML, for Python and for what the registry keeps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Protocol

from moldau.pipelines.definition.mistakes import (
    VIEW,
    Mistake,
    Path,
    delay,
    mistake,
    suggestion,
    topic_name,
)
from moldau.pipelines.definition.model import (
    APPEND,
    COMPLETE,
    FAIL,
    IGNORE,
    INPUT,
    UPDATE,
    Sink,
    Source,
    Step,
    Table,
    Topic,
)
from moldau.pipelines.definition.outputs import Output
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.secrets import is_put_in_later
from moldau.pipelines.definition.step_checks import step_mistakes
from moldau.pipelines.definition.topic_options import sink_options, source_options
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
    def sinks(self) -> Mapping[str, Output]: ...
    def ends(self) -> Mapping[str, Sink]: ...
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


def _mistakes(pipeline: Checkable) -> Iterable[Mistake]:
    yield from _name(pipeline)
    if not pipeline.sources:
        yield mistake(pipeline.place, "source: missing", "e.g. source: {topic: orders}")
    for name, source in pipeline.sources.items():
        where = "source" if name == INPUT else f"sources.{name}"
        if not VIEW.fullmatch(name):
            yield mistake(source.place, f"{where}: {name!r} cannot be the name of a view in SQL")
        found = list(_source(source, where))
        yield from found
        if isinstance(source, Topic) and not found:
            yield from _values(source, pipeline, where)
    if pipeline.sources and not any(source.streaming for source in pipeline.sources.values()):
        yield mistake(pipeline.place, "source: none is streaming, so there is nothing to wait for")
    yield from step_mistakes(pipeline)
    yield from _sink(pipeline)
    yield from _errors(pipeline)


def _name(pipeline: Checkable) -> Iterable[Mistake]:
    name = pipeline.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        yield mistake(
            pipeline.place, f"name: {name!r} may only have letters, digits, '.', '_' and '-'"
        )
    elif name.endswith(_DEAD_LETTER_QUERY):
        yield mistake(
            pipeline.place, f"name: must not end with {_DEAD_LETTER_QUERY!r}, which names queries"
        )


def _source(source: Source, where: str) -> Iterable[Mistake]:
    if source.watermark:
        yield from delay(source.watermark, where)
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
        yield mistake(
            source.place, f"{where}: exactly one of topic, topics, pattern and assign, not {listed}"
        )
    for topic in (source.topic, *source.topics):
        if topic is not None:
            yield from topic_name(topic, source.place, where)
    for name in ("route", "key", "headers", "partition", "timestamp"):
        if getattr(source, name) is not None:
            yield mistake(source.place, f"{where}: {name!r} is an option of sinks only", at=name)
    yield from _settings(source, where)
    yield from _format(source, SOURCE_FORMATS, where)
    needs_schema = source.format in ("json", "csv", "avro", "protobuf")
    if needs_schema and not source.schema and not _has_registry(source):
        kind = {"avro": "the Avro schema", "protobuf": "the message's name"}.get(
            source.format, 'columns as DDL, e.g. schema: "id STRING, amount DOUBLE"'
        )
        yield mistake(
            source.place,
            f"{where}: format {source.format!r} needs a schema: {kind}",
            "format: string gives the value as it is",
        )
    if source.format in ("string", "binary") and source.schema:
        yield mistake(source.place, f"{where}: format {source.format!r} has no schema", at="schema")


def _format(topic: Topic, known: Iterable[str], where: str) -> Iterable[Mistake]:
    if topic.format not in known:
        yield mistake(
            topic.place,
            f"{where}: unknown format {topic.format!r}",
            suggestion(topic.format, known) or f"known are {', '.join(known)}",
            at="format",
        )
    if topic.format == "json-schema" and not _has_registry(topic):
        yield mistake(
            topic.place,
            f"{where}: format 'json-schema' needs a registry",
            "options: {schema.registry.url: http://127.0.0.1:8081}",
        )
    if topic.options and topic.format in ("string", "binary"):
        yield mistake(topic.place, f"{where}: format {topic.format!r} has no options", at="options")


def _has_registry(topic: Topic) -> bool:
    """Its schemas are those of a registry then."""
    return topic.format in ("avro", "protobuf", "json-schema") and bool(
        topic.options.get("schema.registry.url")
    )


def unknown_settings(names: Iterable[str], *, sink: bool) -> Iterable[tuple[str, str | None]]:
    """The options of a topic that there are not, each with what was probably meant."""
    known = SINK_SETTINGS if sink else SOURCE_SETTINGS
    lower = {name.lower() for name in known}
    own: tuple[str, ...] = ("topic", "format", "schema", "options")
    own += (
        ("topics", "route", "key", "headers", "partition", "timestamp")
        if sink
        else ("topics", "pattern", "assign")
    )
    for name in names:
        if name.lower() not in lower and not name.lower().startswith("kafka."):
            yield name, suggestion(name, (*own, "watermark", *known))


def _settings(topic: Topic, where: str) -> Iterable[Mistake]:
    for name, hint in unknown_settings(topic.settings, sink=where.startswith("sink")):
        yield mistake(topic.place, f"{where}: unknown option {name!r}", hint, at=name)
    for name in topic.settings:
        if name.lower() == "kafka.bootstrap.servers":
            yield mistake(
                topic.place,
                f"{where}: the cluster is the deployment's, not the definition's",
                "leave out kafka.bootstrap.servers",
                at=name,
            )


def _values(topic: Topic, pipeline: Checkable, where: str) -> Iterable[Mistake]:
    """What the source and the sink themselves have to say about their options' values."""
    if is_put_in_later(f"{topic.settings} {pipeline.kafka}"):
        # It is checked then.
        return
    try:
        if where.startswith("sink"):
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
        yield mistake(topic.place, f"{where}: {error}", at=at)


def _table(table: Table, role: str, where: str) -> Iterable[Mistake]:
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
        yield mistake(table.place, f"{where}: {message}", _as_hint(error.hint), at=at)


def _as_hint(text: str) -> str | None:
    return text[:1].lower() + text[1:] if text else None


def _sink(pipeline: Checkable) -> Iterable[Mistake]:
    sink = pipeline.sink
    if pipeline.output_mode not in (APPEND, UPDATE, COMPLETE):
        yield mistake(
            pipeline.place,
            f"outputMode: unknown mode {pipeline.output_mode!r}",
            suggestion(pipeline.output_mode, (APPEND, UPDATE, COMPLETE))
            or "known are append, update and complete",
        )
    if sink is not None:
        yield from _end(pipeline, sink, "sink")
    if sink is None and not pipeline.sinks:
        yield mistake(pipeline.place, "sink: missing", "e.g. sink: {topic: orders}")
    if sink is not None and pipeline.sinks:
        yield mistake(pipeline.place, "sinks: give either 'sink' or 'sinks'")
    for name, output in pipeline.sinks.items():
        where = f"sinks.{name}"
        if not VIEW.fullmatch(name):
            yield mistake(output.sink.place, f"{where}: a name has letters, digits and '_'")
        if output.sql is not None and not output.sql.strip():
            yield mistake(output.sink.place, f"{where}: sql: empty", at="sql")
        elif output.sql is not None and not output.is_plain:
            yield mistake(
                output.sink.place,
                f"{where}: sql: must be a plain SELECT ... FROM input [WHERE ...], because each "
                "batch is asked by itself",
                "group, join and order in a step",
                at="sql",
            )
        yield from _end(pipeline, output.sink, where)
    if pipeline.sinks and pipeline.connector == "kafka":
        yield mistake(
            pipeline.place,
            "connector: 'kafka' is at least once and cannot write several sinks",
            "connector: auto or moldau",
        )


def _end(pipeline: Checkable, sink: Sink, where: str) -> Iterable[Mistake]:
    if isinstance(sink, Table):
        yield from _table_sink(pipeline, sink, where)
        return
    found = [
        *_topic_sink(sink, where),
        *_not_for_kafka(pipeline, sink, where),
        *_loop(pipeline, sink, where),
    ]
    yield from found
    if not found:
        yield from _values(sink, pipeline, where)


def _loop(pipeline: Checkable, sink: Topic, where: str) -> Iterable[Mistake]:
    """A pipeline that reads what it writes never comes to an end."""
    allowed = next(
        (value for name, value in sink.settings.items() if name.lower() == "allowloop"), False
    )
    if str(allowed).lower() not in ("true", "false"):
        yield mistake(
            sink.place,
            f"{where}: allowLoop: expected true or false, got {allowed!r}",
            at="allowLoop",
        )
    if str(allowed).lower() == "true":
        return
    for (name, source), topic in product(pipeline.sources.items(), sink.written):
        if _reads(source, topic):
            read_by = "source" if name == INPUT else f"sources.{name}"
            yield mistake(
                sink.place,
                f"{where}: topic {topic!r} is also read by {read_by}, so the pipeline would read "
                "its own results again and again",
                "write to another topic, or set allowLoop: true if a step ends the loop",
                at="topic" if topic == sink.topic else "topics",
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


def _not_for_kafka(pipeline: Checkable, sink: Topic, where: str) -> Iterable[Mistake]:
    """What Spark's own connector would leave out without a word."""
    if pipeline.connector != "kafka":
        return
    asked = {name.lower(): str(value).lower() for name, value in sink.settings.items()}
    if sink.timestamp is not None:
        yield mistake(
            sink.place,
            f"{where}: connector 'kafka' writes no timestamps of your own",
            at="timestamp",
        )
    if asked.get("exactlyonce") == "true":
        yield mistake(
            sink.place,
            f"{where}: connector 'kafka' is at least once",
            "connector: auto or moldau",
            at=next(name for name in sink.settings if name.lower() == "exactlyonce"),
        )


def _topic_sink(sink: Topic, where: str) -> Iterable[Mistake]:
    if sink.pattern or sink.assign or (sink.topics and sink.route is None):
        yield mistake(sink.place, f"{where}: exactly one topic", "or route: an expression")
    elif sink.topic is None and sink.route is None:
        yield mistake(sink.place, f"{where}: exactly one topic")
    for topic in sink.written:
        yield from topic_name(topic, sink.place, where)
    if sink.watermark:
        yield mistake(
            sink.place, f"{where}: 'watermark' is an option of sources and a step", at="watermark"
        )
    yield from _settings(sink, where)
    yield from _format(sink, SINK_FORMATS, where)
    if sink.format == "protobuf" and not sink.schema and not _has_registry(sink):
        yield mistake(sink.place, f"{where}: format 'protobuf' needs a schema: the message's name")
    if sink.format in ("json", "csv", "string", "binary") and sink.schema:
        yield mistake(
            sink.place, f"{where}: the schema is that of the last step; leave it out", at="schema"
        )
    if sink.route is not None and _has_registry(sink) and not sink.options.get("subject"):
        yield mistake(
            sink.place,
            f"{where}: with a route the subject in the registry must be named",
            "options: {subject: orders-value}",
            at="options",
        )


def _table_sink(pipeline: Checkable, sink: Table, where: str) -> Iterable[Mistake]:
    if sink.watermark or not sink.streaming:
        yield mistake(sink.place, f"{where}: 'watermark' and 'streaming' are options of sources")
    found = list(_table(sink, "sink", where))
    yield from found
    to_dead_letter = str(sink.options.get("onError", "")).lower() == "dead_letter"
    if to_dead_letter and pipeline.dead_letter is None:
        yield mistake(
            sink.place,
            f"{where}: 'onError: dead_letter' needs the pipeline's 'dead_letter'",
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
        yield mistake(sink.place, f"outputMode: {error.message}", _as_hint(error.hint))


def _errors(pipeline: Checkable) -> Iterable[Mistake]:
    if pipeline.errors not in (FAIL, IGNORE):
        yield mistake(
            pipeline.place,
            f"errors: unknown value {pipeline.errors!r}",
            "fail or ignore; for a dead-letter topic write dead_letter: name",
        )
    if pipeline.dead_letter is not None:
        if pipeline.errors == IGNORE:
            yield mistake(pipeline.place, "errors: ignore contradicts dead_letter; leave one out")
        yield from topic_name(pipeline.dead_letter, pipeline.place, "dead_letter")
        if any(_reads(source, pipeline.dead_letter) for source in pipeline.sources.values()):
            yield mistake(
                pipeline.place,
                "dead_letter: is also the source, so bad records would be read again and again",
            )
    if pipeline.connector not in CONNECTORS:
        yield mistake(
            pipeline.place,
            f"connector: unknown connector {pipeline.connector!r}",
            suggestion(pipeline.connector, CONNECTORS) or f"known are {', '.join(CONNECTORS)}",
        )
    if pipeline.engine not in ENGINES:
        yield mistake(
            pipeline.place,
            f"engine: unknown engine {pipeline.engine!r}",
            suggestion(pipeline.engine, ENGINES) or f"known are {', '.join(ENGINES)}",
        )
