"""Runs one of ksqlDB's query cases, as its own test tool does."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from moldau.data.schema_language import ResolvedReference
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.engine.results import Inserted, PersistentQuery, Started
from moldau.sql.errors import KsqlException, KsqlStatementException, ParseFailedException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import FunctionRegistry, built_in
from moldau.sql.ports import SchemaText
from moldau.sql.sources.data_source import DataSource
from moldau.sql.syntax.parser import parse, prepare
from moldau.sql.syntax.statements import CreateSource
from moldau.sql.testing.records import RecordCodec
from moldau.sql.testing.registry import MemoryRegistry
from moldau.sql.testing.values import json_text, read_json
from moldau.sql.types import Namespace
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.driver import TopologyTestDriver
from moldau.streams.machine.error_handlers import Handlers, skip_on_error
from moldau.streams.records import Produced
from support.ksql.cases import Case, Number
from support.ksql.functions import test_functions

_SERVICE_ID = "some.ksql.service.id"
_REGISTRY_TYPES = {"AVRO": "AVRO", "JSON_SR": "JSON", "JSON": "JSON", "PROTOBUF": "PROTOBUF"}


class CaseFailed(AssertionError):
    """The case did not come out as expected."""


@dataclass
class _World:
    """Topics with their records, and what runs over them."""

    case: Case
    engine: KsqlEngine
    registry: MemoryRegistry
    topics: MemoryTopics
    records: dict[str, list[Produced]] = field(default_factory=dict)
    inputs: list[Produced] = field(default_factory=list)
    queries: list[PersistentQuery] = field(default_factory=list)
    sources: dict[str, DataSource] = field(default_factory=dict)

    @property
    def codec(self) -> RecordCodec:
        return RecordCodec(self.engine.serdes, format_for, self.registry, self.sources)


def run_case(case: Case) -> None:
    """Raises `CaseFailed`, or whatever went wrong."""
    if case.error is None:
        _check(_run(case))
        return
    try:
        _run(case)
    except (KsqlException, StreamsError) as error:
        _check_error(case.error, error)
        return
    raise CaseFailed(f"expected the error {case.error}, but nothing failed")


def _run(case: Case) -> _World:
    world = new_world(case)
    execute(world)
    for each in case.inputs:
        record = world.codec.encode(each)
        world.inputs.append(record)
        _add(world, record.topic, record)
    for query in world.queries:
        _process(world, query)
    return world


@lru_cache(maxsize=1)
def _all_functions() -> FunctionRegistry:
    functions = built_in()
    for each in test_functions():
        functions.add(each)
    return functions


def new_world(case: Case) -> _World:
    registry, topics = MemoryRegistry(), MemoryTopics(default_partitions=4)
    config = {"ksql.service.id": _SERVICE_ID, **case.properties}
    functions = _all_functions().with_settings(config)
    engine = KsqlEngine(
        functions=functions, formats=format_for, topics=topics, registry=registry, config=config
    )
    _register_sources(case, engine, functions, registry)
    for topic in case.topics:
        topics.create(topic["name"], int(topic.get("partitions", 1)), 1, {})
        for side in ("key", "value"):
            schema = topic.get(f"{side}Schema")
            if schema is None:
                continue
            kind = topic.get(f"{side}Format") or (
                "PROTOBUF" if isinstance(schema, str) and "syntax" in schema else "AVRO"
            )
            is_text = isinstance(schema, str) and kind.startswith("PROTOBUF")
            text = schema if is_text else json_text(schema)
            references = topic.get(f"{side}SchemaReferences")
            if references:
                text = SchemaText(
                    text, [ResolvedReference(each["name"], each["schema"]) for each in references]
                )
            schema_id = topic.get(f"{side}SchemaId")
            registry.register(
                f"{topic['name']}-{side}",
                _REGISTRY_TYPES.get(kind, kind),
                text,
                None if schema_id is None else int(schema_id),
            )
    return _World(case, engine, registry, topics)


def _register_sources(
    case: Case, engine: KsqlEngine, functions: Any, registry: MemoryRegistry
) -> None:
    """Schemas of CREATE statements with columns are registered before everything else."""
    given = {
        topic["name"] for topic in case.topics if "keySchema" in topic or "valueSchema" in topic
    }
    scratch = KsqlEngine(
        functions=functions,
        formats=format_for,
        topics=MemoryTopics(),
        registry=registry,
        config=case.properties,
    )
    with contextlib.suppress(KsqlException):
        for each in engine.parse(case.script):
            statement = scratch.prepare(each)
            if not isinstance(statement, CreateSource) or not statement.elements:
                continue
            topic = statement.properties.get("KAFKA_TOPIC") or statement.properties.get(
                "kafka_topic"
            )
            if topic is not None and topic.value not in given:  # type: ignore[attr-defined]
                with contextlib.suppress(KsqlException):
                    scratch.execute(statement, each.text)


def execute(world: _World, *, needs_query: bool = True) -> None:
    engine, session = world.engine, Session()
    parsed = engine.parse(world.case.script)
    for index, each in enumerate(parsed):
        try:
            statement = engine.prepare(each)
            result = engine.execute(statement, each.text, session)
        except ParseFailedException:
            raise
        except KsqlStatementException as error:
            if index < len(parsed) - 1 and world.case.error is not None:
                raise CaseFailed(f"a statement before the last failed: {error.unlogged}") from error
            raise
        if isinstance(result, Started):
            if result.replaced is not None:
                world.queries.remove(result.replaced)
            world.queries.append(result.query)
        elif isinstance(result, Inserted):
            timestamp = 0 if result.timestamp is None else result.timestamp
            _add(world, result.topic, Produced(result.topic, result.key, result.value, timestamp))
        for source in engine.metastore.sources.values():
            world.sources.setdefault(source.topic, source)
    if needs_query and not world.queries and world.case.error is None:
        raise CaseFailed("no persistent query")
    if world.case.error is not None and not world.case.inputs:
        raise CaseFailed(f"expected the error {world.case.error}, but no statement failed")


def _add(world: _World, topic: str, record: Produced) -> None:
    world.records.setdefault(topic, []).append(record)


def new_driver(world: _World, query: PersistentQuery) -> TopologyTestDriver:
    return TopologyTestDriver(
        query.built.topology,
        application_id=query.application_id,
        handlers=Handlers(deserialization=skip_on_error),
        config=_streams_config(world.case),
    )


def _process(world: _World, query: PersistentQuery) -> None:
    read = {each.topic for each in query.sources}
    driver = new_driver(world, query)
    given = {each.topic for each in world.inputs}
    for record in world.inputs:
        if record.topic in read:
            driver.pipe(record)
            collect(world, driver)
    for topic in [each.topic for each in query.sources]:
        if topic not in given:
            for record in list(world.records.get(topic, ())):
                driver.pipe(record)
                collect(world, driver)
    collect(world, driver)
    driver.close()


def _streams_config(case: Case) -> dict[str, Any]:
    prefix = "ksql.streams."
    return {
        "statestore.cache.max.bytes": 0,
        **{
            name.removeprefix(prefix): value
            for name, value in case.properties.items()
            if name.startswith(prefix)
        },
    }


def collect(world: _World, driver: TopologyTestDriver) -> None:
    for topic in driver.output_topics:
        while (record := driver.take(topic)) is not None:
            _add(world, topic, record)


# What came out.


def _check(world: _World) -> None:
    case = world.case
    exact = case.properties.get("use.exact.numeric.comparison", True) is not False
    for topic in dict.fromkeys(each["topic"] for each in case.outputs):
        expected = [each for each in case.outputs if each["topic"] == topic]
        actual = world.records.get(topic, [])
        if len(expected) != len(actual):
            raise CaseFailed(
                f"{topic}: expected {len(expected)} records, got {len(actual)}: "
                f"{[world.codec.shown(each) for each in actual]} instead of "
                f"{[(each.get('key'), each.get('value')) for each in expected]}"
            )
        for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
            problem = world.codec.difference(wanted, found, exact=exact, any_time=not case.inputs)
            if problem is not None:
                raise CaseFailed(f"{topic}, record {index}: {problem}")
    _check_post(world)


# Sources and topics afterwards.


def _check_post(world: _World) -> None:
    post = world.case.post
    for wanted in post.get("sources", ()):
        source = world.engine.metastore.source(wanted["name"])
        if source is None:
            raise CaseFailed(f"no source {wanted['name']}")
        _check_source(world, wanted, source)
    topics = post.get("topics", {})
    if "blacklist" in topics:
        pattern = re.compile(topics["blacklist"])
        bad = [name for name in _topic_names(world) if pattern.search(name)]
        if bad:
            raise CaseFailed(f"topics that must not be there: {bad}")
    for wanted in topics.get("topics", ()):
        if wanted["name"] not in _topic_names(world):
            raise CaseFailed(f"no topic {wanted['name']}")
        partitions = world.topics.partitions(wanted["name"])
        if "partitions" in wanted and partitions != int(wanted["partitions"]):
            raise CaseFailed(f"{wanted['name']} has {partitions} partitions")
        _check_topic(world, wanted)


def _check_topic(world: _World, wanted: dict[str, Any]) -> None:
    name = wanted["name"]
    source = world.sources.get(name)
    for side in ("key", "value"):
        expected = wanted.get(f"{side}Format")
        if expected is not None and source is not None:
            info = source.key_format if side == "key" else source.value_format
            if info.format.name != expected.get("format", info.format.name):
                raise CaseFailed(f"the {side} format of {name} is {info}, not {expected}")
            features = expected.get("features")
            if features is not None and set(features) != set(info.features):
                raise CaseFailed(f"the {side} features of {name} are {info}, not {expected}")
        schema = wanted.get(f"{side}Schema")
        if schema is not None:
            _check_registered(world, f"{name}-{side}", schema)


def _check_registered(world: _World, subject: str, wanted: Any) -> None:
    _, kind, text = world.registry.latest(subject)
    found = text if kind == "PROTOBUF" else read_json(text.encode())
    if found != wanted:
        raise CaseFailed(f"the schema of {subject} is {found!r}, not {wanted!r}")


def _topic_names(world: _World) -> set[str]:
    names = set(world.topics.counts()) | set(world.records)
    for query in world.queries:
        assembly = query.built.topology.assembly
        names |= {f"{query.application_id}-{each}" for each in assembly.internal_topics}
        names |= {f"{query.application_id}-{each}-changelog" for each in assembly.stores}
    return names


def _check_source(world: _World, wanted: dict[str, Any], source: DataSource) -> None:
    checks: list[tuple[str, Callable[[], bool]]] = [
        ("type", lambda: source.kind == wanted["type"].upper()),
        ("schema", lambda: _same_schema(world, wanted["schema"], source)),
        ("keyFormat", lambda: _same_key_format(wanted["keyFormat"], source)),
        ("valueFormat", lambda: source.value_format.format.name == wanted["valueFormat"]),
        ("keyFeatures", lambda: set(source.key_format.features) == set(wanted["keyFeatures"])),
        (
            "valueFeatures",
            lambda: set(source.value_format.features) == set(wanted["valueFeatures"]),
        ),
        ("isSource", lambda: source.is_source is wanted["isSource"]),
    ]
    for name, check in checks:
        if wanted.get(name) is not None and not check():
            raise CaseFailed(f"{name} of {source} is not {wanted[name]}")


def _same_key_format(wanted: Any, source: DataSource) -> bool:
    if isinstance(wanted, str):
        wanted = {"format": wanted}
    window = source.key_format.window
    kind = wanted.get("windowType")
    size = wanted.get("windowSize")
    return (
        wanted.get("format", source.key_format.format.name) == source.key_format.format.name
        and kind == (None if window is None else window.kind)
        and (None if size is None else int(size)) == (None if window is None else window.size_ms)
    )


def _same_schema(world: _World, wanted: str, source: DataSource) -> bool:
    if not wanted.strip():
        return not source.schema.columns
    kind = "TABLE" if "PRIMARY KEY" in wanted else "STREAM"
    parsed = parse(f"CREATE {kind} x ({wanted});")[0]
    statement = prepare(parsed, world.engine.metastore.resolve_type)
    if not isinstance(statement, CreateSource):
        return False
    expected = [(each.name, each.type, each.is_key) for each in statement.elements]
    actual = [
        (each.name, each.type, each.namespace is Namespace.KEY) for each in source.schema.columns
    ]
    return expected == actual


# Errors.


def _check_error(expected: dict[str, str], error: Exception) -> None:
    kind = expected.get("type", "").split(".")[-1]
    kinds = {
        "KsqlStatementException": KsqlStatementException,
        "KsqlException": KsqlException,
        "ParseFailedException": ParseFailedException,
        "StreamsException": (StreamsError, KsqlException),
    }
    wanted = kinds.get(kind, Exception)
    if not isinstance(error, wanted):
        raise CaseFailed(f"{type(error).__name__} instead of {kind}: {error}") from error
    texts = [str(error)]
    if isinstance(error, KsqlStatementException):
        texts.append(error.unlogged)
    message = expected.get("message", "")
    if not any(message in each for each in texts):
        raise CaseFailed(f"the message is {texts[-1]!r} instead of {message!r}") from error
    cause = expected.get("causeMessage")
    if cause is not None:
        found: BaseException | None = error
        while found is not None and cause not in str(found):
            found = found.__cause__
        if found is None:
            raise CaseFailed(f"no cause of {error!r} says {cause!r}") from error


__all__ = ["CaseFailed", "Number", "run_case"]
