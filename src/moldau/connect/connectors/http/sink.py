"""The HTTP sink: records as bodies of requests, at least once and in order."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConfigError,
    ConfigValue,
    ConnectError,
    DataError,
    Importance,
    Kind,
    NonEmpty,
    OneOf,
    Range,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.http.login import Tokens, check_url, define_oauth2, headers_of
from moldau.connect.connectors.http.machine import bodies
from moldau.connect.connectors.http.machine.bodies import BodyRules, Request
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import (
    Answer,
    WebClient,
    basic,
    define_connection,
    plain,
)

logger = logging.getLogger(__name__)


def _check_statuses(key: str, value: Any) -> None:
    bodies.statuses(value)


CONFIG: Final = (
    define_oauth2(define_connection(ConfigDef()))
    .define("http.api.url", Kind.STRING, importance=Importance.HIGH, group="HTTP",
            validator=CheckedBy(check_url, "a URL"),
            doc="Address; ${topic} and ${key} are replaced")
    .define("request.method", Kind.STRING, "POST", group="HTTP",
            validator=OneOf(("POST", "PUT", "PATCH", "DELETE"), ignore_case=True), doc="Method")
    .define("headers", Kind.STRING, "", group="HTTP",
            doc="Headers NAME:VALUE, separated by header.separator")
    .define("header.separator", Kind.STRING, "|", group="HTTP", doc="Between headers")
    .define("auth.type", Kind.STRING, "NONE", group="HTTP",
            validator=OneOf(("NONE", "BASIC", "BEARER", "OAUTH2"), ignore_case=True),
            doc="NONE, BASIC, BEARER or OAUTH2")
    .define("connection.user", Kind.STRING, "", group="HTTP", doc="User of BASIC")
    .define("connection.password", Kind.PASSWORD, None, group="HTTP",
            doc="Password of BASIC, or token of BEARER")
    .define("request.body.format", Kind.STRING, "string", group="HTTP",
            validator=OneOf(("string", "json"), ignore_case=True), doc="string or json")
    .define("batch.max.size", Kind.INT, 1, validator=Range(1), group="Batches",
            doc="How many records one request has")
    .define("batch.json.as.array", Kind.BOOLEAN, False, group="Batches",
            doc="Whether a request is a JSON array of its records")
    .define("batch.key.pattern", Kind.STRING, "someKey", group="Batches",
            doc="Records of one request have the same; ${topic} and ${key} are replaced")
    .define("batch.prefix", Kind.STRING, "", group="Batches", doc="In front of the records")
    .define("batch.suffix", Kind.STRING, "", group="Batches", doc="Behind the records")
    .define("batch.separator", Kind.STRING, ",", group="Batches", doc="Between the records")
    .define("regex.patterns", Kind.STRING, "", group="Replacements",
            doc="What is replaced in each record, separated by regex.separator")
    .define("regex.replacements", Kind.STRING, "", group="Replacements",
            doc="What with; ${topic} and ${key} are those of the record")
    .define("regex.separator", Kind.STRING, "~", validator=NonEmpty(), group="Replacements",
            doc="Between patterns, and between replacements")
    .define("behavior.on.null.values", Kind.STRING, "ignore", group="Errors",
            validator=OneOf(("ignore", "delete", "fail"), ignore_case=True),
            doc="What a record without a value does; delete: a DELETE request")
    .define("behavior.on.error", Kind.STRING, "fail", group="Errors",
            validator=OneOf(("fail", "log", "ignore"), ignore_case=True),
            doc="What a refused request does, if records are not reported")
    .define("max.retries", Kind.INT, 10, validator=Range(0), group="Errors",
            doc="How often a request is repeated before it counts as refused")
    .define("retry.on.status.codes", Kind.STRING, "408,429,500,502-504", group="Errors",
            validator=CheckedBy(_check_statuses, "404,500-502,510-"),
            doc="Which answers are repeated")
    .define("retry.backoff.ms", Kind.INT, 3000, validator=Range(0), group="Errors",
            doc="How long to wait before that")
)  # fmt: skip


class HttpSinkConnector(PlainSink):
    DESCRIPTION = "Records to requests over HTTP"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        if any(each.errors for each in values):
            return values
        by_name = {each.name: each for each in values}
        config = {name: each.value for name, each in by_name.items()}
        if config["auth.type"].upper() == "OAUTH2" and not config["oauth2.token.url"]:
            by_name["oauth2.token.url"].errors.append("oauth2.token.url must be set with OAUTH2")
        try:
            _replacements(config)
        except ConfigError as error:
            by_name[error.key or "regex.patterns"].errors.append(str(error))
        return values

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


def _replacements(config: Mapping[str, Any]) -> tuple[tuple[re.Pattern[str], str], ...]:
    texts = config["regex.replacements"]
    try:
        return bodies.replacements(config["regex.patterns"], texts, config["regex.separator"])
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError.invalid("regex.replacements", texts, str(error)) from None


class HttpSinkTask(SinkTask):
    def __init__(self) -> None:
        super().__init__()
        self._failures = 0
        self._stopped = threading.Event()
        self._tokens: Tokens | None = None
        #: Which of the records that are being put are done, for when they come again.
        self._done: set[tuple[str, int, int]] = set()
        self._first: tuple[str, int, int] | None = None

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        url = config["http.api.url"]
        self._client = client_of(config, url, "http.api.url")
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if config["auth.type"].upper() == "OAUTH2":
            self._tokens = Tokens(config)
        self._retried = bodies.statuses(config["retry.on.status.codes"])
        self._headers = headers_of(config["headers"], config["header.separator"])
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
            config["batch.key.pattern"],
            _replacements(config),
        )

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        place = _place(records[0])
        if place != self._first:
            self._first, self._done = place, set()
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
        """Continue with what was not sent before a failure."""
        run: list[SinkRecord] = []
        for record in records:
            if _place(record) in self._done:
                continue
            if record.value is None:
                self._send_all(run)
                run = []
                self._without_value(record)
                self._done.add(_place(record))
            else:
                run.append(record)
        self._send_all(run)

    def _send_all(self, records: Sequence[SinkRecord]) -> None:
        for request in bodies.requests(self._rules, records):
            self._send(self._config["request.method"].upper(), request)
            self._done.update(map(_place, request.records))

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
        answer = self._ask(method, request)
        if answer.status == 401 and self._tokens is not None:
            self._tokens.refused()
            answer = self._ask(method, request)
        if answer.status < 300:
            self._failures = 0
            return
        text = (
            f"{method} {self._client.shown}{request.path} was answered with {answer.status}: "
            f"{answer.text[:500]}"
        )
        if answer.status in self._retried and self._failures < self._config["max.retries"]:
            raise RetriableError(text)
        if self._failures:
            text += f" (tried {self._failures + 1} times)"
        self._failures = 0
        self._refused(request.records, ConnectError(text))

    def _ask(self, method: str, request: Request) -> Answer:
        headers = dict(self._headers)
        if self._tokens is not None:
            headers["Authorization"] = self._tokens.header()
        return self._client.request(
            method, request.path, request.body, headers, taken=range(100, 600)
        )

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
        if self._tokens is not None:
            self._tokens.close()


def _place(record: SinkRecord) -> tuple[str, int, int]:
    return record.original_topic, record.original_partition, record.original_offset
