"""The SQL editor: statements, pull queries and push queries with live results."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.services.console.api.bodies import body_of
from moldau.services.console.api.routing import CLUSTER, NDJSON, api, fields
from moldau.services.console.backend import Backend
from moldau.services.console.instances import Reported, reported_topology
from moldau.services.console.machine.topology_text import parse_topology
from moldau.services.console.remote import Remote, managing

__all__ = ["SqlHandlers"]

_KEY: Final = "sql.url"
_KSQL: Final = "application/vnd.ksql.v1+json"
_DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"
_ROWS_MAX: Final = 100_000
#: Statements that change nothing; others need permission and are in the audit.
_READING: Final = re.compile(r"^\s*(SHOW|LIST|DESCRIBE|EXPLAIN|PRINT|SET|UNSET)\b", re.IGNORECASE)


class SqlHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "sql"
        body = fields("sql", sql="string", properties="object")
        return [
            api("GET", f"{CLUSTER}/sql", self.overview, "Streams, tables and queries", tag=tag),
            api("POST", f"{CLUSTER}/sql/statements", self.execute, "Execute statements", tag=tag,
                body=body),
            api("POST", f"{CLUSTER}/sql/query", self.query, "Rows of a query, as they come",
                tag=tag, body=body, produces=(NDJSON,), timeout_ms=24 * 3600 * 1000),
            api("GET", f"{CLUSTER}/sql/queries/{{query}}", self.explain, "One query", tag=tag),
            api("DELETE", f"{CLUSTER}/sql/queries/{{query}}", self.terminate, "Terminate a query",
                tag=tag),
        ]  # fmt: skip

    async def overview(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            server = Remote(call, _KEY)
            found = await _statements(server, "SHOW STREAMS; SHOW TABLES; SHOW QUERIES;")
            streams, tables, queries = found
            return {
                "streams": streams["streams"],
                "tables": tables["tables"],
                "queries": queries["queries"],
            }

    async def execute(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        sql, properties = body.text("sql"), body.mapping("properties")
        statements = [each for each in sql.split(";") if each.strip()]
        if all(map(_READING.match, statements)):
            with self._backend.call(request) as call:
                return {"data": await _statements(Remote(call, _KEY), sql, properties)}
        async with managing(self._backend, request, "sql", sql[:200], {"sql": sql}) as call:
            return {"data": await _statements(Remote(call, _KEY), sql, properties)}

    async def query(self, request: Request) -> Answer:
        body = await body_of(request)
        wanted = {"sql": body.text("sql"), "properties": body.mapping("properties")}
        self._backend.admit(request)
        with self._backend.call(request) as call:
            server = Remote(call, _KEY)
        return Answer(chunks=self._rows(server, wanted), media_type=NDJSON)

    async def _rows(self, server: Remote, wanted: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        """Errors are lines too: the status has been sent when they come."""
        query_id = None
        count = 0
        with self._backend.streaming():
            rows = server.lines("POST", "/query-stream", wanted, media_type=_DELIMITED)
            try:
                async for line in rows:
                    if isinstance(line, dict) and "columnNames" in line:
                        query_id = line.get("queryId")
                        line = {"columns": line["columnNames"], "types": line["columnTypes"]}
                    elif isinstance(line, list):
                        line = {"row": line}
                        count += 1
                    elif isinstance(line, dict) and "message" in line:
                        line = {"error": line["message"]}
                    yield _line(line)
                    if count >= _ROWS_MAX:
                        yield _line({"error": f"Stopped after {_ROWS_MAX} rows."})
                        break
            except HttpError as error:
                yield _line({"error": error.message})
            finally:
                await rows.aclose()  # type: ignore[attr-defined]
                if query_id:
                    await _close(server, query_id)

    async def explain(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            query = _identifier(request.path["query"])
            server = Remote(call, _KEY)
            (found,) = await _statements(server, f"EXPLAIN {query};")
            described = found["queryDescription"]
            return {
                "id": described["id"],
                "sql": described["statementText"],
                "sources": described["sources"],
                "sinks": described["sinks"],
                "state": described.get("state"),
                "plan": described["executionPlan"],
                "topology": await _topology(server, query, described["topology"]),
            }

    async def terminate(self, request: Request) -> dict[str, Any]:
        query = _identifier(request.path["query"])
        async with managing(self._backend, request, "terminate-query", query) as call:
            await _statements(Remote(call, _KEY), f"TERMINATE {query};")
            return {}


async def _statements(
    server: Remote, sql: str, properties: dict[str, Any] | None = None
) -> list[Any]:
    text = sql if sql.rstrip().endswith(";") else f"{sql};"
    body = {"ksql": text, "streamsProperties": properties or {}}
    found: list[Any] = await server.ask("POST", "/ksql", body, media_type=_KSQL)
    return found


async def _topology(server: Remote, query: str, text: str) -> dict[str, Any]:
    """With the rates of the nodes, if the server reports them: ksqlDB does not."""
    reported = Reported()
    try:
        reported.add(await server.ask("GET", f"/queries/{query}/topology"))
    except (HttpError, TypeError, ValueError, KeyError, AttributeError):
        return parse_topology(text)
    return reported_topology(reported)


async def _close(server: Remote, query_id: str) -> None:
    try:
        await server.ask("POST", "/close-query", {"queryId": query_id})
    except HttpError:
        # It has ended by itself.
        return


def _identifier(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_\-]{1,300}", text):
        raise HttpError(400, f"{text} is not the ID of a query.")
    return text


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
