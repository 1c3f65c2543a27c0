"""Messages: browse, search, follow, as a table, export."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import re
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any, Final

from moldau.http.machine.json_text import dump_json
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.services.console.api.bodies import Body, body_of
from moldau.services.console.api.routing import CLUSTER, NDJSON, api, fields, number, text
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import bad_request, console_error, missing
from moldau.services.console.machine.masks import rules_for
from moldau.services.console.scanning import (
    SHOWN_BYTES_MAX,
    Found,
    Pace,
    Scan,
    ScanRequest,
    presented,
)

__all__ = ["MessageHandlers", "scan_request"]

TOPIC: Final = CLUSTER + "/topics/{topic}"
ROWS_MAX: Final = 10_000
TABLE_BYTES_MAX: Final = 64 << 20
"""Of keys and values that a table by key holds, as they are in the topic."""
_SCAN: Final = fields(
    start="string", offset="integer", timestamp="integer", until="integer", partitions="array",
    limit="integer", live="boolean", contains="string", expression="string", key_format="string",
    value_format="string", committed="boolean",
)  # fmt: skip


class MessageHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "messages"
        ndjson = (NDJSON,)
        export = (
            text("format", "json or csv"), text("start", "as in a search"),
            text("contains", "as in a search"), text("expression", "as in a search"),
            number("limit", "records at most"), number("offset", "with start=offset"),
            number("timestamp", "with start=time"), text("partitions", "0,2; else all"),
            text("committed", "true: only committed transactions"),
        )  # fmt: skip
        return [
            api("POST", f"{TOPIC}/messages", self.search,
                "Records as lines of JSON, with lines about the progress; closing the connection "
                "ends it", tag=tag, body=_SCAN, produces=ndjson, timeout_ms=0),
            api("GET", f"{TOPIC}/partitions/{{partition:int}}/messages/{{offset:long}}", self.one,
                "One record, whole", tag=tag),
            api("POST", f"{TOPIC}/table", self.table, "The latest value of each key", tag=tag,
                body=_SCAN, produces=ndjson, timeout_ms=0),
            api("GET", f"{TOPIC}/export", self.export, "Records as a file", tag=tag,
                parameters=export, produces=("application/json", "text/csv"), timeout_ms=0),
        ]  # fmt: skip

    async def search(self, request: Request) -> Answer:
        body = await body_of(request)
        wanted = scan_request(self._backend, body)
        return await self._stream(request, lambda call: self._found(request, call, wanted))

    async def table(self, request: Request) -> Answer:
        body = await body_of(request)
        limit = wanted_rows(body)
        wanted = scan_request(
            self._backend,
            Body({**body.fields, "limit": 2**62, "start": body.fields.get("start", "beginning")}),
            limited=False,
        )
        return await self._stream(request, lambda call: self._latest(request, call, wanted, limit))

    async def one(self, request: Request) -> dict[str, Any]:
        partition, offset = request.path["partition"], request.path["offset"]
        wanted = ScanRequest(start="offset", offset=offset, partitions=(partition,), limit=1)
        with self._backend.call(request) as call:
            scan = self._scan(request, call, wanted, cut=None)
            async with contextlib.aclosing(scan.run()) as rounds:
                async for batch in rounds:
                    for each in batch:
                        if each.raw.offset == offset:
                            return each.shown
            raise missing("record", f"{partition}@{offset} in {request.path['topic']}")

    async def export(self, request: Request) -> Answer:
        numbers = {
            name: request.number(name, kind="long") for name in ("offset", "timestamp", "limit")
        }
        texts = {
            name: request.text(name)
            for name in ("start", "contains", "expression", "key_format", "value_format")
        }
        given: dict[str, Any] = {**numbers, **texts, "committed": request.flag("committed")}
        if request.text("partitions"):
            given["partitions"] = _partitions(request.text("partitions") or "")
        body = Body({name: each for name, each in given.items() if each is not None})
        wanted = scan_request(self._backend, body, default_limit=10_000)
        is_csv = request.text("format") == "csv"
        name = re.sub(r"[^A-Za-z0-9._-]", "_", request.path["topic"])
        suffix = "csv" if is_csv else "json"
        make = self._csv if is_csv else self._json
        return await self._stream(
            request,
            lambda call: make(request, call, wanted),
            media_type="text/csv; charset=utf-8" if is_csv else "application/json",
            headers={"Content-Disposition": f'attachment; filename="{name}.{suffix}"'},
        )

    # What is sent.

    async def _stream(
        self,
        request: Request,
        make: Any,
        *,
        media_type: str = NDJSON,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """An answer that is made while it is sent, with the clients of the user all the while."""

        async def chunks() -> AsyncGenerator[bytes, None]:
            with self._backend.streaming(), self._backend.call(request) as call:
                async for chunk in make(call):
                    yield chunk

        self._backend.admit(request)
        with self._backend.call(request) as call:
            # Whether the user may see the topic: later there is no status to say so.
            await call.admin.describe_topics([request.path["topic"]])
        return Answer(chunks=chunks(), media_type=media_type, headers=headers or {})

    def _scan(
        self,
        request: Request,
        call: Call,
        wanted: ScanRequest,
        *,
        cut: int | None = SHOWN_BYTES_MAX,
    ) -> Scan:
        topic = request.path["topic"]
        masks = rules_for(self._backend.config.masks, topic, call.user)
        return Scan(call, topic, wanted, masks, cut)

    async def _rounds(self, request: Request, scan: Scan) -> AsyncGenerator[list[Found], None]:
        """The scan, until it ends, the client goes, or the console stops."""
        gone = asyncio.create_task(request.disconnected())
        try:
            async with contextlib.aclosing(
                scan.run(lambda: gone.done() or request.stopping.is_set())
            ) as rounds:
                async for batch in rounds:
                    yield batch
        finally:
            gone.cancel()

    async def _found(
        self, request: Request, call: Call, wanted: ScanRequest
    ) -> AsyncGenerator[bytes, None]:
        scan, pace = self._scan(request, call, wanted), Pace()
        try:
            async with contextlib.aclosing(self._rounds(request, scan)) as rounds:
                async for batch in rounds:
                    lines = [_line({"record": each.shown}) for each in batch]
                    if pace.is_due():
                        lines.append(_line({"progress": asdict(scan.progress)}))
                    if lines:
                        yield b"".join(lines)
            yield _line({"progress": asdict(scan.progress), "done": True})
        except Exception as error:
            yield _failure(error)

    async def _latest(
        self, request: Request, call: Call, wanted: ScanRequest, limit: int
    ) -> AsyncGenerator[bytes, None]:
        scan, pace = self._scan(request, call, wanted), Pace()
        keys_max = self._backend.config["table.keys.max"]
        rows: dict[bytes | None, tuple[int, dict[str, Any]]] = {}
        size, truncated = 0, False

        def forget(key: bytes | None) -> int:
            return rows.pop(key, (0, {}))[0]

        try:
            async with contextlib.aclosing(self._rounds(request, scan)) as rounds:
                async for batch in rounds:
                    for each in batch:
                        # A tombstone takes the key out; it comes last where it is written again.
                        size -= forget(each.raw.key)
                        if each.raw.value is None:
                            continue
                        own = len(each.raw.key or b"") + len(each.raw.value)
                        rows[each.raw.key] = own, each.decoded
                        size += own
                        while len(rows) > 1 and (len(rows) > keys_max or size > TABLE_BYTES_MAX):
                            truncated = True
                            size -= forget(next(iter(rows)))
                    if pace.is_due():
                        yield _line({"progress": asdict(scan.progress), "keys": len(rows)})
            shown = list(rows.values())[-limit:]
            for _, row in reversed(shown):
                yield _line({"record": presented(row, SHOWN_BYTES_MAX)})
            yield _line(
                {
                    "progress": asdict(scan.progress),
                    "keys": len(rows),
                    "truncated": truncated,
                    "done": True,
                }
            )
        except Exception as error:
            yield _failure(error)

    async def _json(
        self, request: Request, call: Call, wanted: ScanRequest
    ) -> AsyncGenerator[bytes, None]:
        yield b"["
        first = True
        async with contextlib.aclosing(
            self._rounds(request, self._scan(request, call, wanted, cut=None))
        ) as rounds:
            async for batch in rounds:
                for each in batch:
                    yield (b"\n" if first else b",\n") + dump_json(_plain(each.shown))
                    first = False
        yield b"\n]\n"

    async def _csv(
        self, request: Request, call: Call, wanted: ScanRequest
    ) -> AsyncGenerator[bytes, None]:
        columns = ("partition", "offset", "timestamp", "key", "value", "headers")
        yield (",".join(columns) + "\r\n").encode()
        async with contextlib.aclosing(
            self._rounds(request, self._scan(request, call, wanted, cut=None))
        ) as rounds:
            async for batch in rounds:
                out = io.StringIO()
                writer = csv.writer(out)
                for each in batch:
                    plain = _plain(each.shown)
                    writer.writerow([_cell(plain[name]) for name in columns])
                if batch:
                    yield out.getvalue().encode()


def _partitions(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise bad_request(f"partitions {text}: use numbers with commas between, 0,2") from None


def wanted_rows(body: Body) -> int:
    return max(1, min(ROWS_MAX, body.integer("limit", 1000)))


def scan_request(
    backend: Backend, body: Body, *, default_limit: int = 50, limited: bool = True
) -> ScanRequest:
    """Raises HttpError."""
    partitions = body.items("partitions", []) if "partitions" in body else None
    if partitions is not None and not all(isinstance(each, int) for each in partitions):
        raise bad_request("The field partitions must be a list of numbers.")
    limit = max(1, body.integer("limit", default_limit))
    wanted = ScanRequest(
        start=body.text("start", "newest"),
        offset=body.integer("offset", 0),
        timestamp=body.integer("timestamp", 0),
        until=body.optional_integer("until"),
        partitions=None if partitions is None else tuple(partitions),
        limit=min(limit, backend.config["consume.records.max"]) if limited else limit,
        scan_max=backend.config["search.records.max"],
        live=body.flag("live"),
        contains=body.text("contains", ""),
        expression=body.text("expression", ""),
        key_format=body.text("key_format", "auto"),
        value_format=body.text("value_format", "auto"),
        committed=body.flag("committed"),
    )
    # A filter that cannot be read is refused before anything is sent.
    wanted.test()
    return wanted


def _line(found: dict[str, Any]) -> bytes:
    return dump_json(found) + b"\n"


def _failure(error: Exception) -> bytes:
    """The status has been sent: the error is the last line."""
    refused = console_error(error)
    message = getattr(error, "message", None) or str(error)
    if refused is None and not hasattr(error, "status"):
        raise error
    return _line({"error": message if refused is None else refused.message, "done": True})


def _plain(shown: dict[str, Any]) -> dict[str, Any]:
    """For files: values alone."""
    return {
        **shown,
        "key": shown["key"]["value"],
        "value": shown["value"]["value"],
        "headers": dict(shown["headers"]),
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else dump_json(value).decode()
    # A spreadsheet would take such a text for a formula.
    return "'" + text if text[:1] in ("=", "+", "@") else text
