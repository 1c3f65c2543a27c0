"""/inserts-stream: rows as lines of JSON, each acknowledged with its number."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from moldau.http.request import Answer, Request
from moldau.services.sql.core import SqlCore
from moldau.services.sql.machine.errors import BAD_REQUEST, KsqlHttpError
from moldau.sql.errors import KsqlException

__all__ = ["InsertHandler"]


class InsertHandler:
    def __init__(self, core: SqlCore) -> None:
        self._core = core

    async def insert(self, request: Request) -> Answer:
        """The first line names the target, each other one is a row."""
        lines = [line for line in (await request.body()).splitlines() if line.strip()]
        if not lines:
            raise KsqlHttpError(400, "The body is empty", error_code=BAD_REQUEST)
        first = _object(lines[0])
        target = first.get("target")
        if not isinstance(target, str):
            raise KsqlHttpError(400, "No target in the request", error_code=BAD_REQUEST)
        answers: list[str] = []
        for number, line in enumerate(lines[1:]):
            try:
                await asyncio.to_thread(self._core.insert_row, target, _object(line))
                answers.append(json.dumps({"status": "ok", "seq": number}))
            except (KsqlException, KsqlHttpError) as error:
                answer = {
                    "status": "error",
                    "seq": number,
                    "error_code": BAD_REQUEST,
                    "message": str(error),
                }
                answers.append(json.dumps(answer))
                break
        return Answer(body=("\n".join(answers) + "\n").encode())


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise KsqlHttpError(400, f"Not a JSON object: {line[:200]!r}", error_code=BAD_REQUEST)
    return found
