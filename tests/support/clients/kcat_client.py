"""kcat, an independent program on an older librdkafka.

It has no administration of its own, so those steps go through confluent-kafka; everything about
records is kcat's.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from support.clients.base import Row
from support.clients.confluent_client import ConfluentClient


class KcatClient(ConfluentClient):
    codecs: Sequence[str] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._bootstrap = bootstrap

    def _run(self, *arguments: str, stdin: bytes | None = None) -> str:
        command = ["kcat", "-b", self._bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def topics(self) -> set[str]:
        listed = json.loads(self._run("-L", "-J"))
        return {topic["topic"] for topic in listed["topics"]}

    def produce(self, topic: str, codec: str, rows: Sequence[Row]) -> None:
        """kcat cannot set timestamps or a null key beside others: the session allows for that."""
        for row in rows:
            headers = [
                part for name, value in row.headers for part in ("-H", f"{name}={value.decode()}")
            ]
            assert row.key is not None
            assert row.value is not None
            line = row.key + b"|" + row.value + b"\n"
            self._run("-P", "-t", topic, "-p", "0", "-z", codec, "-K", "|", *headers, stdin=line)

    def read(self, topic: str, *, offset: int, count: int) -> list[Row]:
        arguments = ("-C", "-q", "-J", "-t", topic, "-p", "0", "-o", str(offset), "-c", str(count))
        rows = []
        for line in self._run(*arguments).splitlines():
            seen = json.loads(line)
            pairs = seen.get("headers", [])
            headers = tuple(
                (name, value.encode()) for name, value in zip(pairs[::2], pairs[1::2], strict=True)
            )
            rows.append(Row(seen["key"].encode(), seen["payload"].encode(), seen["ts"], headers,
                            seen["offset"]))  # fmt: skip
        return rows

    def offset_at(self, topic: str, timestamp: int) -> int:
        answer = self._run("-Q", "-t", f"{topic}:0:{timestamp}")
        return int(answer.rsplit("offset", 1)[1].split()[0])
