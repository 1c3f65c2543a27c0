"""The HTTP sink: records as bodies of requests, at least once and in order."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.connect.api import (
    CheckedBy,
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
from moldau.connect.connectors.http.machine import bodies
from moldau.connect.connectors.http.machine.bodies import BodyRules, Request
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import WebClient, basic, define_connection, plain

logger = logging.getLogger(__name__)


def check_url(key: str, value: Any) -> None:
    parts = urlsplit(str(value))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http://HOST or https://HOST")


CONFIG: Final = (
    define_connection(ConfigDef())
    .define("http.api.url", Kind.STRING, importance=Importance.HIGH, group="HTTP",
            validator=CheckedBy(check_url, "a URL"),
            doc="Address; ${topic} and ${key} are replaced")
    .define("request.method", Kind.STRING, "POST", group="HTTP",
            validator=OneOf(("POST", "PUT", "PATCH", "DELETE"), ignore_case=True), doc="Method")
    .define("headers", Kind.STRING, "", group="HTTP",
            doc="Headers NAME:VALUE, separated by header.separator")
    .define("header.separator", Kind.STRING, "|", group="HTTP", doc="Between headers")
    .define("auth.type", Kind.STRING, "NONE", group="HTTP",
            validator=OneOf(("NONE", "BASIC", "BEARER"), ignore_case=True),
            doc="NONE, BASIC or BEARER")
    .define("connection.user", Kind.STRING, "", group="HTTP", doc="User of BASIC")
    .define("connection.password", Kind.PASSWORD, None, group="HTTP",
            doc="Password of BASIC, or token of BEARER")
    .define("request.body.format", Kind.STRING, "string", group="HTTP",
            validator=OneOf(("string", "json"), ignore_case=True), doc="string or json")
    .define("batch.max.size", Kind.INT, 1, validator=Range(1), group="Batches",
            doc="How many records one request has")
    .define("batch.json.as.array", Kind.BOOLEAN, False, group="Batches",
            doc="Whether a request is a JSON array of its records")
    .define("batch.prefix", Kind.STRING, "", group="Batches", doc="In front of the records")
    .define("batch.suffix", Kind.STRING, "", group="Batches", doc="Behind the records")
    .define("batch.separator", Kind.STRING, ",", group="Batches", doc="Between the records")
    .define("behavior.on.null.values", Kind.STRING, "ignore", group="Errors",
            validator=OneOf(("ignore", "delete", "fail"), ignore_case=True),
            doc="What a record without a value does; delete: a DELETE request")
    .define("behavior.on.error", Kind.STRING, "fail", group="Errors",
            validator=OneOf(("fail", "log", "ignore"), ignore_case=True),
            doc="What a refused request does, if records are not reported")
    .define("max.retries", Kind.INT, 10, validator=Range(0), group="Errors",
            doc="How often a request is repeated before the task fails")
    .define("retry.backoff.ms", Kind.INT, 3000, validator=Range(0), group="Errors",
            doc="How long to wait before that")
)  # fmt: skip


class HttpSinkConnector(PlainSink):
    DESCRIPTION = "Records to requests over HTTP"
    SETTINGS = CONFIG

    def task_class(self) -> type[SinkTask]:
        return HttpSinkTask


def client_of(config: Mapping[str, Any], url: str, key: str) -> WebClient:
    """A client with the settings of a connector; only the server's part of the URL is used."""
    authorization = None
    secret = plain(config["connection.password"]) or ""
    if config["auth.type"].upper() == "BASIC":
        authorization = basic(config["connection.user"], secret)
    elif config["auth.type"].upper() == "BEARER":
        authorization = f"Bearer {secret}"
    parts = urlsplit(url)
    return WebClient(
        f"{parts.scheme}://{parts.netloc}",
        key=key,
        timeout_s=config["read.timeout.ms"] / 1000,
        authorization=authorization,
        trusted=config["ssl.truststore.location"],
        verify_hostname=config["ssl.verify.hostname"],
    )


def headers_of(config: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for each in filter(None, config["headers"].split(config["header.separator"])):
        name, _, value = each.partition(":")
        found[name.strip()] = value.strip()
    return found


class HttpSinkTask(SinkTask):
    def __init__(self) -> None:
        super().__init__()
        self._failures = 0
        self._stopped = threading.Event()
        #: How far the records that are being put are done, for when they come again.
        self._done = 0
        self._first: tuple[str, int, int] | None = None

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        url = config["http.api.url"]
        self._client = client_of(config, url, "http.api.url")
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        self._headers = headers_of(config)
        as_json = config["request.body.format"].lower() == "json"
        if as_json or config["batch.json.as.array"]:
            self._headers.setdefault("Content-Type", "application/json")
        self._rules = BodyRules(
            path or "/",
            config["batch.max.size"],
            config["batch.json.as.array"],
            config["batch.prefix"],
            config["batch.suffix"],
            config["batch.separator"],
            as_json,
        )

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        place = (records[0].topic, records[0].original_partition, records[0].original_offset)
        if place != self._first:
            self._first, self._done = place, 0
        try:
            self._put_rest(records)
        except RetriableError as error:
            self._failures += 1
            if self._failures > self._config["max.retries"]:
                raise ConnectError(f"{error} (tried {self._failures} times)") from error
            self.context.timeout(self._config["retry.backoff.ms"])
            raise
        self._failures = 0
        self._first = None

    def _put_rest(self, records: Sequence[SinkRecord]) -> None:
        """Continue after what was sent before a failure."""
        run: list[SinkRecord] = []
        for record in records[self._done :]:
            if record.value is None:
                self._send_all(run)
                run = []
                self._without_value(record)
                self._done += 1
            else:
                run.append(record)
        self._send_all(run)

    def _send_all(self, records: Sequence[SinkRecord]) -> None:
        if records:
            for request in bodies.requests(self._rules, records):
                self._send(self._config["request.method"].upper(), request)
                self._done += len(request.records)

    def _without_value(self, record: SinkRecord) -> None:
        match self._config["behavior.on.null.values"].lower():
            case "delete":
                path = bodies.address(self._rules.url_path, record)
                self._send("DELETE", Request(path, b"", (record,)))
            case "fail":
                error = DataError(
                    f"record {record.topic}-{record.partition}@{record.offset} has no value"
                )
                self._refused((record,), error)

    def _send(self, method: str, request: Request) -> None:
        answer = self._client.request(method, request.path, request.body, self._headers)
        if answer.status >= 300:
            error = ConnectError(
                f"{method} {self._client.shown}{request.path} was answered with {answer.status}: "
                f"{answer.text[:500]}"
            )
            self._refused(request.records, error)

    def _refused(self, records: Sequence[SinkRecord], error: Exception) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is not None:
            for record in records:
                reporter.report(record, error)
        elif self._config["behavior.on.error"].lower() == "fail":
            raise error
        elif self._config["behavior.on.error"].lower() == "log":
            logger.error("%s", error)

    def stop(self) -> None:
        self._stopped.set()
        self._client.close()
