"""Tests in files: scripts with ASSERTs, and ksql-test-runner's statements, inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.engine.results import Inserted, PersistentQuery, Started
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.ports import FormatFactory, Functions
from moldau.sql.sources.data_source import DataSource
from moldau.sql.testing.records import RecordCodec
from moldau.sql.testing.registry import MemoryRegistry
from moldau.sql.testing.script import AssertionFailed, ScriptTester
from moldau.sql.testing.values import read_json
from moldau.streams.hosts.driver import TopologyTestDriver
from moldau.streams.machine.error_handlers import Handlers, skip_on_error
from moldau.streams.records import Produced

__all__ = ["ScriptTest", "run_records", "run_script_test", "script_tests"]

_MARK = "--@test:"
_ERROR, _MESSAGE = "--@expected.error:", "--@expected.message:"


@dataclass(frozen=True, slots=True)
class ScriptTest:
    """Statements and ASSERTs. With `error` or `message`, one of them must fail."""

    name: str
    text: str
    error: str | None = None
    message: str | None = None


def script_tests(text: str, name: str) -> list[ScriptTest]:
    """The tests of a file: one per `--@test: NAME` line, or the whole of it."""
    if _MARK not in text:
        return [_test(name, text)]
    found = []
    for part in text.split(_MARK)[1:]:
        title, _, body = part.partition("\n")
        found.append(_test(title.strip(), body))
    return found


def _test(name: str, body: str) -> ScriptTest:
    marks = {
        mark: line.strip().removeprefix(mark).strip()
        for line in body.splitlines()
        for mark in (_ERROR, _MESSAGE)
        if line.strip().startswith(mark)
    }
    return ScriptTest(name, body, marks.get(_ERROR), marks.get(_MESSAGE))


def run_script_test(
    test: ScriptTest,
    *,
    functions: Functions,
    formats: FormatFactory,
    read_script: Callable[[str], str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Raises KsqlException if something failed, or did not fail as expected."""
    tester = ScriptTester(
        functions=functions,
        formats=formats,
        registry=MemoryRegistry(),
        read_script=read_script,
        config=config,
    )
    try:
        tester.run(test.text)
    except KsqlException as error:
        if test.error is None and test.message is None:
            raise
        texts = [str(error)]
        if isinstance(error, KsqlStatementException):
            texts.append(error.unlogged)
        if not any((test.message or "") in each for each in texts):
            raise AssertionFailed(f"{texts[-1]} instead of: {test.message}") from error
        return
    finally:
        tester.close()
    if test.error is not None or test.message is not None:
        raise AssertionFailed(
            f"Expected {test.error or 'an error'}: {test.message or ''}, but nothing failed"
        )


def run_records(
    sql: str,
    inputs: str,
    outputs: str,
    *,
    functions: Functions,
    formats: FormatFactory,
    config: Mapping[str, Any] | None = None,
) -> int:
    """Run statements over the records of one JSON document and compare with those of another.

    How many records were compared; raises KsqlException at the first difference.
    """
    wanted = _records(outputs, "outputs")
    runner = _Runner(functions, formats, config)
    runner.execute(sql)
    runner.feed(_records(inputs, "inputs"))
    runner.compare(wanted)
    return len(wanted)


def _records(text: str, key: str) -> list[dict[str, Any]]:
    try:
        found = read_json(text)
    except ValueError as error:
        raise KsqlException(f"The file of {key} is not JSON: {error}") from None
    rows = found.get(key) if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        raise KsqlException(f'The file must be an object with a list of records under "{key}"')
    for index, each in enumerate(rows):
        if not isinstance(each.get("topic"), str):
            raise KsqlException(f'{key}, record {index}: "topic" is missing')
    return rows


class _Runner:
    """The records go through the queries in the order these were created."""

    def __init__(
        self, functions: Functions, formats: FormatFactory, config: Mapping[str, Any] | None
    ) -> None:
        self._registry = MemoryRegistry()
        self._engine = KsqlEngine(
            functions=functions,
            formats=formats,
            topics=MemoryTopics(),
            registry=self._registry,
            config=config,
        )
        self._queries: list[PersistentQuery] = []
        self._sources: dict[str, DataSource] = {}
        self._records: dict[str, list[Produced]] = {}
        self._codec = RecordCodec(self._engine.serdes, formats, self._registry, self._sources)

    def execute(self, sql: str) -> None:
        engine, session = self._engine, Session()
        for parsed in engine.parse(sql):
            result = engine.execute(engine.prepare(parsed), parsed.text, session)
            if isinstance(result, Started):
                if result.replaced is not None:
                    self._queries.remove(result.replaced)
                self._queries.append(result.query)
            elif isinstance(result, Inserted):
                time = 0 if result.timestamp is None else result.timestamp
                self._add(Produced(result.topic, result.key, result.value, time))
            for source in engine.metastore.sources.values():
                self._sources.setdefault(source.topic, source)
        if not self._queries:
            raise KsqlException("The statements do not create a query")

    def _add(self, record: Produced) -> None:
        self._records.setdefault(record.topic, []).append(record)

    def feed(self, raw: Sequence[Mapping[str, Any]]) -> None:
        unknown = sorted({each["topic"] for each in raw} - set(self._sources))
        if unknown:
            raise KsqlException(f"No source reads the topic {unknown[0]} of the inputs")
        inputs = [self._codec.encode(each) for each in raw]
        for record in inputs:
            self._add(record)
        for query in self._queries:
            self._process(query, inputs)

    def _process(self, query: PersistentQuery, inputs: Sequence[Produced]) -> None:
        topics = [each.topic for each in query.sources]
        given = {each.topic for each in inputs}
        later = [each for topic in topics if topic not in given for each in self._of(topic)]
        driver = TopologyTestDriver(
            query.built.topology,
            application_id=query.application_id,
            handlers=Handlers(deserialization=skip_on_error),
            config={"statestore.cache.max.bytes": 0},
        )
        try:
            for record in [*(each for each in inputs if each.topic in topics), *later]:
                driver.pipe(record)
                self._collect(driver)
            self._collect(driver)
        finally:
            driver.close()

    def _of(self, topic: str) -> list[Produced]:
        return list(self._records.get(topic, ()))

    def _collect(self, driver: TopologyTestDriver) -> None:
        for topic in driver.output_topics:
            while (record := driver.take(topic)) is not None:
                self._add(record)

    def compare(self, wanted: Sequence[Mapping[str, Any]]) -> None:
        for topic in dict.fromkeys(str(each["topic"]) for each in wanted):
            expected = [each for each in wanted if each["topic"] == topic]
            actual = self._of(topic)
            if len(expected) != len(actual):
                raise AssertionFailed(
                    f"Topic '{topic}'. Expected <{len(expected)}> records but it was "
                    f"<{len(actual)}>: {[self._codec.shown(each) for each in actual]}"
                )
            for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
                problem = self._codec.difference(one, other, exact=True)
                if problem is not None:
                    raise AssertionFailed(f"Topic '{topic}', message {index}: {problem}")
