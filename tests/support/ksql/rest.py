"""ksqlDB's REST cases: each runs on a server of its own, over HTTP, against one broker."""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from google.protobuf import text_format

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.topics import TopicPartition
from moldau.data.protobuf.schema import ProtobufLanguage
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.core import SqlCore
from moldau.services.sql.service import SqlService
from moldau.sql.testing.values import read_json, same
from moldau.streams.records import Produced
from support.http_service import running
from support.ksql import runner
from support.ksql.cases import Case, Number, load
from support.shared_vectors import FOLDER as VECTORS
from support.waiting import eventually

FOLDER = VECTORS / "ksql" / "rest-query-validation-tests"
_numbers = itertools.count(1)
_TIMEOUT_S = 30
#: Of topics for which a case names no number.
_PARTITIONS = 4
_SERVER = {
    "ksql.query.pull.table.scan.enabled": "true",
    "ksql.headers.columns.enabled": "true",
    "ksql.query.push.v2.enabled": "true",
    "ksql.streams.commit.interval.ms": "20",
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.streams.statestore.cache.max.bytes": "0",
    "listeners": "http://127.0.0.1:0",
}


@dataclass(frozen=True, slots=True)
class RestCase:
    setup: Case
    queries: tuple[str, ...]
    responses: tuple[dict[str, Any], ...]
    error: dict[str, Any] | None
    waits_for_query: bool
    in_order: bool

    @property
    def id(self) -> str:
        return self.setup.id


def rest_cases() -> Iterator[RestCase]:
    for path in sorted(FOLDER.glob("*.json")):
        for index, raw in enumerate(load(path)["tests"]):
            for chosen in raw.get("format") or [None]:
                yield _case(f"{path.stem}/{index}/{raw['name']}", raw, chosen)


def _case(name: str, raw: dict[str, Any], chosen: str | None) -> RestCase:
    topic = f"test_topic_{next(_numbers)}"
    raw = _renamed(raw, topic)
    statements = [
        each if chosen is None else each.replace("{FORMAT}", chosen) for each in raw["statements"]
    ]
    queries = [each for each in statements if each.upper().startswith("SELECT ")]
    setup = Case(
        id=name if chosen is None else f"{name} - {chosen}",
        statements=tuple(each for each in statements if each not in queries),
        properties={
            key: str(value) if isinstance(value, Number) else value
            for key, value in raw.get("properties", {}).items()
        },
        topics=tuple(raw.get("topics", ())),
        inputs=tuple(raw.get("inputs", ())),
        outputs=tuple(raw.get("outputs", ())),
        post={},
        error=None,
    )
    return RestCase(
        setup,
        tuple(queries),
        tuple(raw.get("responses", ())),
        raw.get("expectedError"),
        bool(raw.get("inputConditions", {}).get("waitForActivePushQuery")),
        bool(raw.get("outputConditions", {}).get("verifyOrder")),
    )


def _renamed(value: Any, topic: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(each, topic) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, topic) for each in value]
    if isinstance(value, str) and not isinstance(value, Number):
        return value.replace("test_topic", topic)
    return value


@dataclass
class _Answers:
    """The answer of one query, read in a thread."""

    lines: list[Any] = field(default_factory=list)
    status: int = 0
    started: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


class RestRunner:
    """Runs cases against a broker."""

    def __init__(self, bootstrap: str, state: Path) -> None:
        self._bootstrap = bootstrap
        self._state = state
        self._admin = Admin(bootstrap_servers=bootstrap)
        self._producer = Producer(bootstrap_servers=bootstrap, linger_ms=0)

    def close(self) -> None:
        self._producer.close()
        self._admin.close()

    def run(self, case: RestCase) -> None:
        """Raises whatever is not as expected."""
        number = next(_numbers)
        settings = {
            **_SERVER,
            "bootstrap.servers": self._bootstrap,
            "ksql.service.id": f"rest_{number}_",
            "ksql.streams.state.dir": str(self._state / str(number)),
        }
        world = runner.new_world(case.setup)
        config = SqlConfig.of(settings)
        core = SqlCore(config, registry=world.registry)
        try:
            with (
                running(lambda: SqlService(config, core)) as service,
                httpx.Client(base_url=service.url, timeout=_TIMEOUT_S) as client,
            ):
                _Run(case, world, core, client, self._admin, self._producer).run()
        finally:
            own = [name for name in self._admin.list_topics() if not name.startswith("__")]
            self._admin.delete_topics(own, check=False)


class _Run:
    def __init__(
        self,
        case: RestCase,
        world: Any,
        core: SqlCore,
        client: httpx.Client,
        admin: Admin,
        producer: Producer[Any, Any],
    ) -> None:
        self._case = case
        self._world = world
        self._core = core
        self._client = client
        self._admin = admin
        self._producer = producer

    def run(self) -> None:
        case = self._case
        self._create_topics()
        if case.setup.statements:
            answer = self._client.post(
                "/ksql",
                json={
                    "ksql": "\n".join(case.setup.statements),
                    "streamsProperties": case.setup.properties,
                },
            )
            if answer.status_code != 200:
                self._check_error(answer.status_code, answer.json())
                return
            self._check_admin(answer.json())
        self._world.sources.update(
            {each.topic: each for each in self._core.engine.metastore.sources.values()}
        )
        if case.waits_for_query and case.queries:
            answers = self._ask(case.queries[0])
            assert answers.started.wait(_TIMEOUT_S), "the query does not start"
            self._produce()
            self._finished([answers])
            return
        self._produce()
        self._wait_for_queries()
        self._finished([self._ask(each) for each in case.queries])
        expected = [each["queryProto"] for each in case.responses if "queryProto" in each]
        for sql, wanted in zip(case.queries, expected, strict=False):
            answers = self._ask(sql, accept="application/vnd.ksql.v1+protobuf")
            assert answers.done.wait(_TIMEOUT_S), "the query does not end"
            _check_messages(wanted, answers.lines)

    def _create_topics(self) -> None:
        names = {each["topic"]: _PARTITIONS for each in self._case.setup.inputs}
        names.update(
            {
                each["name"]: int(each.get("partitions", _PARTITIONS))
                for each in self._case.setup.topics
            }
        )
        for statement in self._case.setup.statements:
            lowered = statement.lower()
            if "kafka_topic" in lowered and " as select" not in lowered:
                topic = statement[lowered.index("kafka_topic") :].split("'")[1]
                if "partitions" not in lowered:
                    names.setdefault(topic, _PARTITIONS)
                else:
                    names.pop(topic, None)
        self._admin.create_topics(
            [NewTopic(name, count) for name, count in names.items()], check=False
        )

    def _produce(self) -> None:
        for raw in self._case.setup.inputs:
            record = self._world.codec.encode(raw)
            self._producer.send(
                record.topic,
                record.value,
                key=record.key,
                timestamp=record.timestamp,
                headers=list(record.headers),
            ).result(timeout=_TIMEOUT_S)

    def _wait_for_queries(self) -> None:
        reads = self._core.reads
        for query in list(self._core.engine.queries.values()):
            for source in query.sources:
                reads.wait_until_read(query, reads.ends_of(source.topic))

    def _ask(self, sql: str, accept: str = "*/*") -> _Answers:
        answers = _Answers()
        body = {"ksql": sql, "streamsProperties": self._case.setup.properties}
        if "auto.offset.reset" not in self._case.setup.properties:
            body["streamsProperties"] = {
                **body["streamsProperties"],
                "auto.offset.reset": "earliest",
            }

        def read() -> None:
            headers = {"Accept": accept}
            with self._client.stream("POST", "/query", json=body, headers=headers) as answer:
                answers.status = answer.status_code
                answers.started.set()
                text = b"".join(answer.iter_bytes()) if answer.status_code != 200 else b""
                if text:
                    answers.lines.append(json.loads(text))
                else:
                    for line in answer.iter_lines():
                        stripped = line.strip().lstrip("[").rstrip("]").rstrip(",")
                        if stripped:
                            answers.lines.append(read_json(stripped.encode()))
            answers.done.set()

        threading.Thread(target=read, daemon=True).start()
        return answers

    def _finished(self, asked: list[_Answers]) -> None:
        case = self._case
        expected = [each["query"] for each in case.responses if "query" in each]
        for index, answers in enumerate(asked):
            assert answers.done.wait(_TIMEOUT_S), f"the query does not end: {answers.lines}"
            if answers.status != 200:
                self._check_error(answers.status, answers.lines[0])
                return
            if index < len(expected):
                self._check_rows(expected[index], answers.lines)
        self._check_outputs()
        assert case.error is None, f"expected the error {case.error}"

    def _check_admin(self, entities: list[Any]) -> None:
        wanted = [each["admin"] for each in self._case.responses if "admin" in each]
        for expected, actual in zip(wanted, entities, strict=False):
            assert _matches(expected, read_json(json.dumps(actual).encode())), actual

    def _check_rows(self, expected: list[Any], actual: list[Any]) -> None:
        assert len(expected) == len(actual), f"{actual} instead of {expected}"
        left = [each["row"]["columns"] for each in actual if "row" in each]
        for wanted, found in zip(expected, actual, strict=True):
            if "row" not in wanted:
                assert _matches(wanted, found), f"{found} instead of {wanted}"
                continue
            row = wanted["row"]["columns"]
            if self._case.in_order:
                assert same(row, found["row"]["columns"]), f"{found} instead of {wanted}"
                continue
            match = next((each for each in left if same(row, each)), None)
            assert match is not None, f"no row {row} in {left}"
            left.remove(match)

    def _check_error(self, status: int, body: dict[str, Any]) -> None:
        wanted = self._case.error
        assert wanted is not None, body
        if "status" in wanted:
            assert status == int(wanted["status"]), body
        assert wanted.get("message", "") in body["message"], body["message"]
        if "Statement" in wanted.get("type", ""):
            assert body["@type"] == "statement_error", body

    def _check_outputs(self) -> None:
        outputs = self._case.setup.outputs
        for topic in dict.fromkeys(each["topic"] for each in outputs):
            expected = [each for each in outputs if each["topic"] == topic]
            found = self._records(topic, len(expected))
            for wanted, record in zip(expected, found, strict=True):
                problem = self._world.codec.difference(
                    wanted, record, exact=True, any_time=not self._world.case.inputs
                )
                assert problem is None, problem

    def _records(self, topic: str, count: int) -> list[Produced]:
        found: list[Produced] = []
        with Consumer(
            bootstrap_servers=self._core.config["bootstrap.servers"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            partitions = len(self._admin.describe_topics([topic])[topic].partitions)
            consumer.assign([TopicPartition(topic, index) for index in range(partitions)])

            def enough() -> bool:
                for record in consumer.poll(0.2):
                    headers = tuple((name, value) for name, value in record.headers)
                    found.append(
                        Produced(topic, record.key, record.value, record.timestamp, headers)
                    )
                return len(found) >= count

            eventually(enough, what=f"{count} records in {topic}", seconds_max=10)
        return found


def _check_messages(expected: list[Any], actual: list[Any]) -> None:
    """Rows as Protobuf, in any order; so are the entries of maps."""
    text = actual[0]["header"]["protoSchema"]
    assert text == str(expected[0]["header"]["protoSchema"])
    message = ProtobufLanguage().parse(text, ()).message_class()
    wanted = [text_format.Parse(str(each["row"]), message()) for each in expected if "row" in each]
    found = [
        message.FromString(base64.b64decode(each["row"]["protobufBytes"]))
        for each in actual
        if "row" in each
    ]
    assert sorted(map(_in_order, wanted)) == sorted(map(_in_order, found))


def _in_order(message: Any) -> str:
    for field_, values in message.ListFields():
        if isinstance(values, Sequence) and not isinstance(values, str | bytes):
            ordered = sorted(values, key=str)
            del getattr(message, field_.name)[:]
            getattr(message, field_.name).extend(ordered)
    return str(message)


def _matches(expected: Any, actual: Any) -> bool:
    """Only what is expected is compared, in objects at any depth."""
    if not isinstance(expected, dict):
        return isinstance(actual, list) if expected == [] else same(expected, actual)
    if not isinstance(actual, dict):
        return False
    for key, value in expected.items():
        name, _, how = key.partition("|")
        if how == "starts_with":
            if not str(actual.get(name, "")).startswith(str(value)):
                return False
        elif not _matches(value, actual.get(name)):
            return False
    return True
