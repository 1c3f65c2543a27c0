"""Runs one of ksqlDB's query cases, as its own test tool does."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.engine.results import Inserted, PersistentQuery, Started
from moldau.sql.errors import KsqlException, KsqlStatementException, ParseFailedException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import FunctionRegistry, built_in
from moldau.sql.sources.data_source import UNWRAP, DataSource, KeyFormat
from moldau.sql.syntax.parser import parse, prepare
from moldau.sql.syntax.statements import CreateSource
from moldau.sql.types import Column, Namespace, SqlType, StructType
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.driver import TopologyTestDriver
from moldau.streams.machine.task import Handlers, skip_on_error
from moldau.streams.records import MAX_TIMESTAMP, Produced, Window, Windowed
from moldau.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from support.ksql.cases import Case, Number
from support.ksql.functions import test_functions
from support.ksql.registry import MemoryRegistry
from support.ksql.values import json_text, read_json, row, same, shown

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
        record = encoded(world, each)
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


# Records.


def _source(world: _World, topic: str) -> DataSource:
    source = world.sources.get(topic)
    if source is None:
        raise CaseFailed(f"no source has the topic {topic}")
    return source


def encoded(world: _World, raw: dict[str, Any]) -> Produced:
    topic = raw["topic"]
    source = world.sources.get(topic)
    headers = tuple(
        (each["KEY"], None if each["VALUE"] is None else base64.b64decode(each["VALUE"]))
        for each in raw.get("headers", ())
    )
    timestamp = int(raw.get("timestamp", 0))
    if source is None:
        value = raw.get("value")
        data = None if value is None else json_text(value).encode()
        return Produced(topic, None, data, timestamp, headers)
    key = _key_bytes(world, source, raw)
    value = _value_bytes(world, source, raw.get("value"))
    return Produced(topic, key, value, timestamp, headers)


def _is_unwrapped(columns: tuple[Column, ...], features: frozenset[str], name: str) -> bool:
    return len(columns) == 1 and (UNWRAP in features or name in ("KAFKA", "DELIMITED"))


def _raw(value: Any, name: str) -> bytes | None:
    if value is None:
        return None
    if name == "JSON":
        return json_text(value).encode()
    if name == "DELIMITED":
        return (value if isinstance(value, str) else json_text(value)).encode()
    return None


def _key_bytes(world: _World, source: DataSource, raw: dict[str, Any]) -> bytes | None:
    key, window = raw.get("key"), raw.get("window")
    info = source.key_format
    if key is None or not source.schema.key:
        return None
    data = _raw(key, info.format.name)
    serdes = world.engine.serdes
    if data is None:
        unwrapped = _is_unwrapped(source.schema.key, info.features, info.format.name)
        found = row(key, source.schema.key, unwrapped=unwrapped or not isinstance(key, dict))
        plain = serdes.plain_key(info, source.schema)
        data = plain.serialize(source.topic, found)
    if window is None:
        return data
    bounds = Window(int(window["start"]), int(window["end"]))
    return _windowed(info, _Fixed(data)).serialize(source.topic, Windowed(None, bounds))


def _windowed(info: KeyFormat, inner: Any) -> Any:
    """The serde of windowed keys around one that only passes bytes on."""
    window = info.window
    assert window is not None
    if window.kind == "SESSION":
        return SessionWindowedSerde(inner)
    assert window.size_ms is not None
    return TimeWindowedSerde(inner, min(window.size_ms, MAX_TIMESTAMP))


@dataclass
class _Fixed:
    data: bytes | None

    def serialize(self, topic: str, value: Any) -> bytes | None:
        return self.data

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return data


def _value_bytes(world: _World, source: DataSource, value: Any) -> bytes | None:
    info = source.value_format
    if value is None:
        return None
    data = _raw(value, info.format.name)
    if data is not None:
        return data
    columns = source.schema.value
    unwrapped = _is_unwrapped(columns, info.features, info.format.name)
    found = row(value, columns, unwrapped=unwrapped)
    return world.engine.serdes.value(info.format, source.schema, info.features).serialize(
        source.topic, found
    )


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
                f"{[_text(world, each) for each in actual]} instead of "
                f"{[(each.get('key'), each.get('value')) for each in expected]}"
            )
        for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
            problem = _difference(world, wanted, found, exact=exact)
            if problem is not None:
                raise CaseFailed(f"{topic}, record {index}: {problem}")
    _check_post(world)


def _text(world: _World, record: Produced) -> tuple[Any, Any, int]:
    try:
        key, _ = _read_key(world, record)
        return key, _read_value(world, record), record.timestamp
    except Exception:
        return record.key, record.value, record.timestamp


def _difference(
    world: _World, wanted: dict[str, Any], found: Produced, *, exact: bool
) -> str | None:
    key, window = _read_key(world, found)
    if not same(wanted.get("key"), key, exact=exact):
        return f"key {key!r} instead of {wanted.get('key')!r}"
    value = _read_value(world, found)
    if not same(wanted.get("value"), value, exact=exact):
        return f"value {value!r} instead of {wanted.get('value')!r}"
    expected_window = wanted.get("window")
    if expected_window is not None:
        bounds = Window(int(expected_window["start"]), int(expected_window["end"]))
        if window != bounds:
            return f"window {window} instead of {bounds}"
    if "timestamp" in wanted:
        time = int(wanted["timestamp"])
        free = time == 0 and not world.case.inputs
        if time != found.timestamp and not free:
            return f"timestamp {found.timestamp} instead of {time}"
    headers = [
        (each["KEY"], None if each["VALUE"] is None else base64.b64decode(each["VALUE"]))
        for each in wanted.get("headers", ())
    ]
    if list(found.headers) != headers:
        return f"headers {found.headers} instead of {headers}"
    return None


def _read_key(world: _World, record: Produced) -> tuple[Any, Window | None]:
    source = world.sources.get(record.topic)
    data = record.key
    if source is None or data is None:
        return (None if data is None else read_json(data)), None
    info = source.key_format
    window = None
    if info.window is not None:
        seen: list[bytes] = []
        found = _windowed(info, _Seen(seen)).deserialize(record.topic, data)
        window = None if found is None else found.window
        data = seen[0]
    if info.format.name == "JSON":
        return read_json(data), window
    if info.format.name == "DELIMITED":
        return data.decode(), window
    plain = world.engine.serdes.plain_key(info, source.schema)
    return _shown_row(
        plain.deserialize(record.topic, data), source.schema.key, info.features, info.format.name
    ), window


@dataclass
class _Seen:
    seen: list[bytes]

    def serialize(self, topic: str, value: Any) -> bytes | None:
        raise NotImplementedError

    def deserialize(self, topic: str, data: bytes) -> Any:
        self.seen.append(data)


def _shown_row(
    found: tuple[Any, ...] | None,
    columns: tuple[Column, ...],
    features: frozenset[str],
    name: str,
) -> Any:
    if found is None:
        return None
    if _is_unwrapped(columns, features, name):
        only = shown(found[0], columns[0].type)
        return only.decode() if name == "KAFKA" and isinstance(only, bytes) else only
    kind: SqlType = StructType(tuple((each.name, each.type) for each in columns))
    return shown(found, kind)


def _read_value(world: _World, record: Produced) -> Any:
    data = record.value
    if data is None:
        return None
    source = world.sources.get(record.topic)
    if source is None:
        return read_json(data)
    info = source.value_format
    if info.format.name == "JSON":
        return read_json(data)
    if info.format.name == "DELIMITED":
        return data.decode().rstrip("\r\n")
    columns = source.schema.value
    if info.format.name in ("AVRO", "JSON_SR", "PROTOBUF") and UNWRAP not in info.features:
        # By the schema that the value was written with: it may have more fields than the source.
        schema_id = int.from_bytes(data[1:5], "big")
        kind, text = world.registry.by_id(schema_id)
        properties = {**dict(info.format.properties), "schemaId": str(schema_id)}
        by_id = format_for(info.format.name, properties)
        found = by_id.columns_of(kind, text, info.features, is_key=False)
        columns = tuple(Column(name, each) for name, each in found)
        serde = by_id.serde(columns, info.features, world.registry, is_key=False)
        return _shown_row(serde.deserialize(record.topic, data), columns, info.features, "")
    serde = world.engine.serdes.value(info.format, source.schema, info.features)
    return _shown_row(
        serde.deserialize(record.topic, data), columns, info.features, info.format.name
    )


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
