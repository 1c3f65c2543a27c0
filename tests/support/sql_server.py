"""A SQL server in a test, and requests to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from moldau.services.sql.config import SqlConfig
from moldau.services.sql.service import SqlService
from support.http_service import Running, running

__all__ = ["SqlProcess", "SqlServer", "sql_process", "sql_server"]

V1 = "application/vnd.ksql.v1+json"
_TIMEOUT_S = 60


class SqlRequests:
    """Requests to a server; errors are raised by `execute` and given back by `post`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT_S)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": V1, "Accept": V1, **headers}
        return self._client.post(path, content=content, headers=given)

    def get(self, path: str) -> Any:
        answer = self._client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def execute(self, script: str, properties: dict[str, Any] | None = None) -> list[Any]:
        """The entities of statements."""
        answer = self.post("/ksql", {"ksql": script, "streamsProperties": properties or {}})
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()
        return found

    def query(self, sql: str, properties: dict[str, Any] | None = None) -> list[Any]:
        """Header, rows and message of a query that ends."""
        answer = self.post("/query", {"ksql": sql, "streamsProperties": properties or {}})
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()
        return found

    @contextmanager
    def stream(self, sql: str, properties: dict[str, Any] | None = None) -> Iterator[Iterator[Any]]:
        """The lines of /query-stream, as they come."""
        body = {"sql": sql, "properties": properties or {}}
        with self._client.stream(
            "POST", "/query-stream", json=body, headers={"Accept": "*/*"}
        ) as answer:
            assert answer.status_code == 200, answer.read()
            yield (json.loads(line) for line in answer.iter_lines() if line)

    def rows_later(self, sql: str, count: int, properties: dict[str, Any]) -> LaterRows:
        """Start a query with a limit in the background; its header is there when this returns."""
        return LaterRows(self, sql, count, properties)


class SqlServer(SqlRequests):
    """A server in this process."""

    def __init__(self, service: Running) -> None:
        super().__init__(service.url)
        self.service = service


class SqlProcess(SqlRequests):
    """A server in a process of its own, that can be killed."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        super().__init__(url)
        self.process = process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(_TIMEOUT_S)


@contextmanager
def sql_process(bootstrap: str, folder: Path, **properties: str) -> Iterator[SqlProcess]:
    """`properties` with underscores for dots."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "moldau.cli", "sql", "start", "--port", "0"]
    command += ["--bootstrap-server", bootstrap]
    texts = {"ksql_streams_state_dir": str(folder / "state"), **properties}
    for name, value in texts.items():
        command += ["--override", f"{name.replace('_', '.')}={value}"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            shown = ""
            while "Ctrl-C stops it." not in shown:
                line = process.stdout.readline()
                assert line, shown + (folder / "log").read_text()
                shown += line
            found = re.search(r"listening  (\S+)", shown)
            assert found is not None
            yield SqlProcess(process, found[1])
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(_TIMEOUT_S)


class LaterRows:
    """Rows of a push query that is read in a thread."""

    def __init__(
        self, server: SqlRequests, sql: str, count: int, properties: dict[str, Any]
    ) -> None:
        self.rows: list[Any] = []
        self.header: Any = None
        self._started = threading.Event()
        self._done = threading.Event()
        self._arguments = (server, sql, count, properties)
        threading.Thread(target=self._run, daemon=True).start()
        assert self._started.wait(_TIMEOUT_S)

    def _run(self) -> None:
        server, sql, count, properties = self._arguments
        with server.stream(sql, properties) as lines:
            self.header = next(lines)
            self._started.set()
            for row in lines:
                self.rows.append(row)
                if len(self.rows) >= count:
                    break
        self._done.set()

    def wait(self) -> list[Any]:
        assert self._done.wait(_TIMEOUT_S), self.rows
        return self.rows


@contextmanager
def sql_server(bootstrap: str, **properties: str) -> Iterator[SqlServer]:
    """`properties` with underscores for dots."""
    texts = {name.replace("_", "."): value for name, value in properties.items()}
    settings = {"bootstrap.servers": bootstrap, "listeners": "http://127.0.0.1:0", **texts}
    with running(lambda: SqlService(SqlConfig.of(settings))) as service:
        yield SqlServer(service)
