"""Redis from Debian's package: a server for a run of tests, on 127.0.0.1, without files."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.processes import free_port
from support.waiting import eventually


def redis_missing() -> str | None:
    found = shutil.which("redis-server")
    return None if found else "Redis is not here: apt-get install redis-server"


@dataclass(frozen=True)
class RedisServer:
    port: int

    @property
    def uri(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> Any:
        import redis

        return redis.Redis(port=self.port, decode_responses=True)


@contextlib.contextmanager
def running_redis() -> Iterator[RedisServer]:
    server = RedisServer(free_port())
    with tempfile.TemporaryDirectory(prefix="moldau-redis-") as folder:
        process = subprocess.Popen(
            ["redis-server", "--port", str(server.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", folder],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            eventually(lambda: _answers(server), what="Redis answers")
            yield server
        finally:
            process.terminate()
            process.wait(30)


def _answers(server: RedisServer) -> bool:
    import redis

    try:
        return bool(server.client().ping())
    except redis.ConnectionError:
        return False
