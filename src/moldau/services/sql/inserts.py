"""/inserts-stream: rows as lines of JSON, each acknowledged with its number when it is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from moldau.http.request import Answer, Request
from moldau.services.sql.config import INSERTS_DISABLED, INSERTS_ENABLED
from moldau.services.sql.core import SqlCore
from moldau.services.sql.machine.errors import BAD_REQUEST, BAD_STATEMENT, KsqlHttpError
from moldau.services.sql.machine.frames import DELIMITED, streamed_type
from moldau.sql.errors import KsqlException

__all__ = ["InsertHandler"]

#: Rows that are sent before the first of them is waited for.
_BATCH: Final = 500


class InsertHandler:
    def __init__(self, core: SqlCore) -> None:
        self._core = core
        self._line_bytes_max = core.config.http.request_body_bytes_max

    async def insert(self, request: Request) -> Answer:
        """The first line names the target, each other one is a row. Acknowledgements are lines, or
        a JSON array, and come while the client still sends."""
        request.media_type = streamed_type(request.headers.get("accept"), request.media_type)
        batches = _batches(request, self._line_bytes_max)
        first, rows = await _first(batches)
        target = _object(first).get("target")
        if not isinstance(target, str):
            raise KsqlHttpError(400, "No target in the request", error_code=BAD_REQUEST)
        if not self._core.config[INSERTS_ENABLED]:
            raise KsqlHttpError(400, INSERTS_DISABLED, error_code=BAD_REQUEST)
        try:
            await asyncio.to_thread(self._core.rows.target, target)
        except KsqlException as error:
            raise KsqlHttpError(400, str(error), error_code=BAD_STATEMENT) from error
        return Answer(chunks=self._acknowledged(request, target, rows, batches))

    async def _acknowledged(
        self, request: Request, target: str, rows: list[bytes], batches: AsyncIterator[list[bytes]]
    ) -> AsyncGenerator[bytes, None]:
        is_lines = request.media_type == DELIMITED
        number = 0
        if not is_lines:
            yield b"["
        while True:
            for start in range(0, len(rows), _BATCH):
                found = await asyncio.to_thread(
                    self._insert, target, rows[start : start + _BATCH], number
                )
                before = number
                number += len(found)
                if is_lines:
                    # Each by itself: clients take a piece of the answer for a row of it.
                    for each in found:
                        yield _shown([each], is_lines=True, is_first=False)
                else:
                    yield _shown(found, is_lines=False, is_first=before == 0)
                if found[-1]["status"] != "ok":
                    rows = []
                    break
            else:
                try:
                    rows = await anext(batches)
                    continue
                except StopAsyncIteration:
                    pass
                except KsqlHttpError as error:
                    yield _shown([_failure(number, error)], is_lines=is_lines, is_first=number == 0)
            break
        if not is_lines:
            yield b"]\n"

    def _insert(self, target: str, lines: list[bytes], number: int) -> list[dict[str, Any]]:
        """What became of some rows, up to the first that failed."""
        sent: list[Any] = []
        failure: dict[str, Any] | None = None
        for index, line in enumerate(lines):
            try:
                sent.append(self._core.rows.send(target, _object(line)))
            except (KsqlException, KsqlHttpError) as error:
                failure = _failure(number + index, error)
                break
        found: list[dict[str, Any]] = []
        for index, future in enumerate(sent):
            try:
                self._core.rows.written(future)
                found.append({"status": "ok", "seq": number + index})
            except KsqlException as error:
                return [*found, _failure(number + index, error)]
        return found if failure is None else [*found, failure]


def _failure(number: int, error: Exception) -> dict[str, Any]:
    return {"status": "error", "seq": number, "error_code": BAD_REQUEST, "message": str(error)}


def _shown(found: list[dict[str, Any]], *, is_lines: bool, is_first: bool) -> bytes:
    texts = [json.dumps(each) for each in found]
    if is_lines:
        return "".join(f"{each}\n" for each in texts).encode()
    return (("" if is_first else ",\n") + ",\n".join(texts)).encode()


async def _first(batches: AsyncIterator[list[bytes]]) -> tuple[bytes, list[bytes]]:
    """The first line, and the rows that came with it."""
    async for lines in batches:
        return lines[0], lines[1:]
    raise KsqlHttpError(400, "The body is empty", error_code=BAD_REQUEST)


async def _batches(request: Request, line_bytes_max: int) -> AsyncIterator[list[bytes]]:
    """The lines that have arrived, without empty ones."""
    rest = b""
    async for piece in request.stream():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > line_bytes_max:
            raise KsqlHttpError(
                413, f"A row has more than {line_bytes_max} bytes", error_code=BAD_REQUEST
            )
        whole = [line for line in lines if line.strip()]
        if whole:
            yield whole
    if rest.strip():
        yield [rest]


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise KsqlHttpError(
            400, f"Invalid JSON in inserts stream: {line[:200]!r}", error_code=BAD_REQUEST
        )
    return found
