"""The Elasticsearch sink. Works with Elasticsearch 6 to 8 and OpenSearch, by their REST interface.

`put` sends a bulk request per `batch.size` records and waits for it, so everything before a commit
is in the index. Documents that the server is too busy for are sent again; those that it refuses
are reported, logged or fail the task, by `behavior.on.malformed.documents`.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    DataError,
    Importance,
    Kind,
    OneOf,
    Range,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.elasticsearch.machine import documents as rules
from moldau.connect.connectors.elasticsearch.machine.documents import Action, Rules
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import WebClient, basic, define_connection, plain
from moldau.data.schema import Schema, Type

logger = logging.getLogger(__name__)

_JSON: Final = {"Content-Type": "application/json"}
_BULK: Final = {"Content-Type": "application/x-ndjson"}

CONFIG: Final = (
    define_connection(ConfigDef())
    .define("connection.url", Kind.LIST, importance=Importance.HIGH, group="Connector",
            doc="Addresses of the cluster: http://HOST:9200,...")
    .define("connection.username", Kind.STRING, None, group="Connector", doc="User")
    .define("connection.password", Kind.PASSWORD, None, group="Connector", doc="Its password")
    .define("batch.size", Kind.INT, 2000, validator=Range(1), group="Connector",
            doc="How many records one request has")
    .define("max.retries", Kind.INT, 5, validator=Range(0), group="Connector",
            doc="How often documents that the server was too busy for are sent again")
    .define("retry.backoff.ms", Kind.LONG, 100, validator=Range(0), group="Connector",
            doc="How long to wait before the first of these; doubles each time")
    .define("type.name", Kind.STRING, "_doc", importance=Importance.LOW, group="Data Conversion",
            doc="Type of documents, for Elasticsearch before 8")
    .define("key.ignore", Kind.BOOLEAN, False, group="Data Conversion",
            doc="Take topic+partition+offset as the document id instead of the key")
    .define("topic.key.ignore", Kind.LIST, (), group="Data Conversion",
            doc="Topics for which key.ignore holds")
    .define("schema.ignore", Kind.BOOLEAN, False, group="Data Conversion",
            doc="Leave the mapping to Elasticsearch instead of making it from the schema")
    .define("topic.schema.ignore", Kind.LIST, (), group="Data Conversion",
            doc="Topics for which schema.ignore holds")
    .define("behavior.on.null.values", Kind.STRING, "fail", group="Data Conversion",
            validator=OneOf(("ignore", "delete", "fail"), ignore_case=True),
            doc="What a record without a value does: ignore, delete, fail")
    .define("behavior.on.malformed.documents", Kind.STRING, "fail", group="Data Conversion",
            validator=OneOf(("ignore", "warn", "fail"), ignore_case=True),
            doc="What a document that the index refuses does: ignore, warn, fail")
    .define("drop.invalid.message", Kind.BOOLEAN, False, group="Data Conversion",
            doc="Drop records that cannot be documents instead of failing")
    .define("write.method", Kind.STRING, "insert", group="Data Conversion",
            validator=OneOf(("insert", "upsert"), ignore_case=True),
            doc="insert: a document is replaced; upsert: its fields are merged")
    .define("compact.map.entries", Kind.BOOLEAN, True, group="Data Conversion",
            doc="Whether a map is an object; otherwise it is a list of entries with key and value")
    .define("external.version.header", Kind.STRING, "", group="Data Conversion",
            doc="Header with the version of a document, instead of the offset")
)  # fmt: skip


class ElasticsearchSinkConnector(PlainSink):
    DESCRIPTION = "Records to documents of Elasticsearch or OpenSearch"
    SETTINGS = CONFIG

    def task_class(self) -> type[SinkTask]:
        return ElasticsearchSinkTask


class ElasticsearchSinkTask(SinkTask):
    def __init__(self) -> None:
        super().__init__()
        self._config: dict[str, Any] = {}
        self._clients: list[WebClient] = []
        self._rules: Rules | None = None
        self._prepared: set[tuple[str, Schema | None]] = set()
        self._stopped = threading.Event()

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        authorization = None
        if config["connection.username"]:
            password = plain(config["connection.password"]) or ""
            authorization = basic(config["connection.username"], password)
        self._clients = [
            WebClient(
                url,
                key="connection.url",
                timeout_s=config["read.timeout.ms"] / 1000,
                authorization=authorization,
                trusted=config["ssl.truststore.location"],
                verify_hostname=config["ssl.verify.hostname"],
            )
            for url in config["connection.url"]
        ]

    def _make_rules(self) -> Rules:
        """The type of documents depends on the server's version."""
        config = self._config
        answer = self._request("GET", "/")
        version = json.loads(answer).get("version", {})
        number = str(version.get("number", "7"))
        is_old = version.get("distribution") != "opensearch" and number.startswith(("5.", "6."))
        return Rules(
            frozenset(config["topic.key.ignore"]),
            config["key.ignore"],
            frozenset(config["topic.schema.ignore"]),
            config["schema.ignore"],
            config["write.method"].lower() == "upsert",
            config["behavior.on.null.values"].lower(),
            config["type.name"] if is_old else None,
            config["external.version.header"] or None,
            config["compact.map.entries"],
        )

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = _JSON,
        taken: Sequence[int] = (),
    ) -> bytes:
        """Ask the addresses in turn; the first that answers is asked first the next time."""
        problem: RetriableError | None = None
        for client in tuple(self._clients):
            try:
                answer = client.request(method, path, body, headers)
            except RetriableError as error:
                problem = error
                self._clients.append(self._clients.pop(0))
                continue
            if answer.status >= 300 and answer.status not in taken:
                raise ConnectError(
                    f"{method} {client.shown}{path} was answered with {answer.status}: "
                    f"{answer.text[:500]}"
                )
            return b"" if answer.status in taken else answer.body
        raise problem or RetriableError("no address was asked")

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        if self._rules is None:
            self._rules = self._make_rules()
        actions = []
        for record in records:
            found = self._action(self._rules, record)
            if found is not None:
                actions.append(found)
        size = self._config["batch.size"]
        for start in range(0, len(actions), size):
            self._send(actions[start : start + size])

    def _action(self, how: Rules, record: SinkRecord) -> Action | None:
        index = rules.index_name(record.topic)
        try:
            found = rules.action(how, record, index)
        except DataError as error:
            if self._config["drop.invalid.message"]:
                logger.error("dropped: %s", error)
                return None
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise
            reporter.report(record, error)
            return None
        if found is not None:
            self._prepare_index(how, record, index)
        return found

    def _prepare_index(self, how: Rules, record: SinkRecord, index: str) -> None:
        schema = None if how.ignores_schema(record.topic) else record.value_schema
        if (index, schema) in self._prepared:
            return
        path = "/" + quote(index)
        # 400: it exists already.
        exists = not self._request("PUT", path, b"{}", taken=(400,))
        if schema is not None and schema.type is Type.STRUCT:
            body = json.dumps(rules.mapping(schema, compact_maps=how.compact_maps)).encode()
            place = f"{path}/_mapping"
            if how.type_name is not None:
                place += f"/{quote(how.type_name)}"
            # A field of an index cannot get another type: then each document shows whether it fits.
            if not self._request("PUT", place, body, taken=(400,) if exists else ()):
                logger.warning("%s keeps its mapping, which another schema does not fit", index)
        self._prepared.add((index, schema))

    def _send(self, actions: list[Action]) -> None:
        pause_s = self._config["retry.backoff.ms"] / 1000
        for _ in range(self._config["max.retries"] + 1):
            data = b"".join([each.lines for each in actions])
            answer = json.loads(self._request("POST", "/_bulk", data, _BULK))
            if not answer.get("errors"):
                return
            found = rules.outcome(actions, answer)
            for each, reason in found.refused:
                self._refused(each, reason)
            if not found.retried:
                return
            actions = found.retried
            self._stopped.wait(pause_s * (0.5 + random.random()))
            pause_s = min(pause_s * 2, 60.0)
        raise RetriableError(f"{len(actions)} documents were not taken: the server is too busy")

    def _refused(self, action: Action, reason: str) -> None:
        record = action.record
        place = f"{record.topic}-{record.partition}@{record.offset}"
        error = ConnectError(f"{action.index} refused the document of {place}: {reason}")
        behavior = self._config["behavior.on.malformed.documents"].lower()
        if behavior == rules.FAIL or not rules.is_malformed(reason):
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise error
            reporter.report(record, error)
        elif behavior == rules.WARN:
            logger.warning("%s", error)

    def stop(self) -> None:
        self._stopped.set()
        for client in self._clients:
            client.close()
