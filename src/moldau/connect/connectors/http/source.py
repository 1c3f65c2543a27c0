"""The HTTP source: asks a server again and again, and writes the records of its answers.

The offset is a part of the last record, such as its id or time, that goes into the next request as
${offset}; the names of settings are those of the well-known connector of castorm. An answer may
name its next page, by a Link header or a part of it, which is asked for at once. After a restart
a page that was not the last is asked for again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConnectError,
    Importance,
    Kind,
    OneOf,
    Range,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.http.login import check_url, headers_of
from moldau.connect.connectors.http.machine.bodies import linked, pointed
from moldau.connect.connectors.http.sink import client_of
from moldau.connect.connectors.support.plain import SingleSource
from moldau.connect.connectors.support.web import define_connection
from moldau.data import json_text
from moldau.data.builders import STRING

CONFIG: Final = (
    define_connection(ConfigDef())
    .define("http.request.url", Kind.STRING, importance=Importance.HIGH, group="HTTP",
            validator=CheckedBy(check_url, "a URL"), doc="Address; ${offset} is replaced")
    .define("http.request.method", Kind.STRING, "GET", group="HTTP",
            validator=OneOf(("GET", "POST", "PUT"), ignore_case=True), doc="Method")
    .define("http.request.body", Kind.STRING, "", group="HTTP",
            doc="Body; ${offset} is replaced")
    .define("headers", Kind.STRING, "", group="HTTP",
            doc="Headers NAME:VALUE, separated by header.separator")
    .define("header.separator", Kind.STRING, "|", group="HTTP", doc="Between headers")
    .define("auth.type", Kind.STRING, "NONE", group="HTTP",
            validator=OneOf(("NONE", "BASIC", "BEARER"), ignore_case=True),
            doc="NONE, BASIC or BEARER")
    .define("connection.user", Kind.STRING, "", group="HTTP", doc="User of BASIC")
    .define("connection.password", Kind.PASSWORD, None, group="HTTP",
            doc="Password of BASIC, or token of BEARER")
    .define("http.response.list.pointer", Kind.STRING, "/", group="Records",
            doc="Where the records are in an answer, as a JSON pointer")
    .define("http.response.record.key.pointer", Kind.STRING, "", group="Records",
            doc="Where the key is in a record; empty: no key")
    .define("http.response.record.offset.pointer", Kind.STRING, "", group="Records",
            doc="Where the offset is in a record; empty: every answer is written whole")
    .define("http.response.next.page.pointer", Kind.STRING, "", group="Records",
            doc="Where an answer has the address of its next page, as a JSON pointer; a Link "
            "header with rel=\"next\" is followed in any case")
    .define("http.offset.initial", Kind.STRING, "", group="Records", doc="The first offset")
    .define("http.timer.interval.millis", Kind.LONG, 60_000, validator=Range(1), group="Records",
            doc="How long to wait between requests")
    .define("kafka.topic", Kind.STRING, importance=Importance.HIGH, group="Records", doc="Topic")
)  # fmt: skip


class HttpSourceConnector(SingleSource):
    DESCRIPTION = "Answers of a server over HTTP to a topic"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return HttpSourceTask


class HttpSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._offset: str | None = None
        #: The page to ask for, as path and query; None for the first.
        self._page: str | None = None

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._url = config["http.request.url"]
        self._partition = {"url": self._url}
        self._client = client_of(config, self._url, "http.request.url")
        self._headers = headers_of(config["headers"], config["header.separator"])
        self._first = True

    def poll(self) -> Sequence[SourceRecord] | None:
        pause_s = self._config["http.timer.interval.millis"] / 1000
        if not self._first and self._page is None and self._stopped.wait(pause_s):
            return None
        if self._offset is None:
            stored = self.context.offset_storage_reader.offset(self._partition) or {}
            self._offset = str(stored.get("offset", self._config["http.offset.initial"]))
            self._page = stored.get("page")
        self._first = False
        asked = self._page
        document, next_page = self._ask()
        found = self._records(document, asked if next_page is not None else None)
        self._page = next_page
        return found or None

    def _ask(self) -> tuple[Any, str | None]:
        """The answer, and where its next page is."""
        parts = urlsplit(self._page or self._url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        offset = self._offset or ""
        body = self._config["http.request.body"].replace("${offset}", offset).encode()
        answer = self._client.request(
            self._config["http.request.method"].upper(),
            path.replace("${offset}", quote(offset, safe="")),
            body or None,
            self._headers,
        )
        if answer.status >= 300:
            raise ConnectError(
                f"{self._client.shown}{path} was answered with {answer.status}: {answer.text[:500]}"
            )
        try:
            document = json_text.parse(answer.body)
        except ValueError as error:
            raise ConnectError(f"{self._client.shown}{path} did not answer JSON: {error}") from None
        return document, self._next_page(document, answer.headers.get("link", ""))

    def _next_page(self, document: Any, link: str) -> str | None:
        found = linked(link, "next")
        if pointer := self._config["http.response.next.page.pointer"]:
            found = pointed(document, pointer) or found
        if not isinstance(found, str) or not found:
            return None
        target, own = urlsplit(urljoin(self._url, found)), urlsplit(self._url)
        if (target.scheme, target.netloc) != (own.scheme, own.netloc):
            # Its login is not for others.
            raise ConnectError(f"the next page is on another server, {target.netloc}: {found}")
        return (target.path or "/") + (f"?{target.query}" if target.query else "")

    def _records(self, document: Any, page: str | None) -> list[SourceRecord]:
        """`page` is where to begin again, if it is not the first."""
        config = self._config
        found = pointed(document, config["http.response.list.pointer"])
        if found is None:
            return []
        records = []
        for item in found if isinstance(found, list) else [found]:
            if pointer := config["http.response.record.offset.pointer"]:
                offset = pointed(item, pointer)
                if offset is None:
                    raise ConnectError(
                        f"a record has nothing at {pointer}: {json.dumps(item)[:200]}"
                    )
                self._offset = str(offset)
            key = None
            if pointer := config["http.response.record.key.pointer"]:
                key = pointed(item, pointer)
            records.append(
                SourceRecord(
                    self._partition,
                    {"offset": self._offset} | ({"page": page} if page else {}),
                    config["kafka.topic"],
                    key=None if key is None else str(key),
                    key_schema=None if key is None else STRING,
                    value=json_text.compact(item),
                    value_schema=STRING,
                )
            )
        return records

    def stop(self) -> None:
        self._stopped.set()
        self._client.close()
