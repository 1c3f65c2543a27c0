"""Where numbers come out: a topic, a Delta table in a folder or in S3, a table of PostgreSQL."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from moldau.client import Admin, Consumer, TopicPartition
from moldau.client.admin import OffsetSpec
from spark.chaos.counting import closed_quietly
from support.minio import PASSWORD, USER, minio_missing, running_minio
from support.postgres import postgres_missing, running_postgres

KINDS = ("topic", "delta", "postgresql", "s3")
_ASK_SECONDS = 0.5


class Target(Protocol):
    """A sink, and what a reader finds in it."""

    #: As it is written in a definition, without `exactlyOnce`.
    sink: Mapping[str, Any]

    def counts(self) -> Counter[int]:
        """How often each number is there, as far as it can be seen now."""

    def read_to_end(self, *, seconds_max: float = 60.0) -> None:
        """Until nothing hides what is there."""

    def close(self) -> None: ...


class InTopic:
    """What a reader of committed records has seen of a topic, from its beginning."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.sink: Mapping[str, Any] = {"topic": topic, "format": "string", "key": "id"}
        self._config = {"bootstrap.servers": bootstrap}
        self._places = [TopicPartition(topic, each) for each in range(partitions)]
        self._consumer = Consumer(
            self._config | {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        )
        self._consumer.assign(self._places)
        self._seen: Counter[int] = Counter()

    def counts(self) -> Counter[int]:
        for record in self._consumer.poll(0.25):
            self._seen[int(record.value)] += 1
        return self._seen

    def read_to_end(self, *, seconds_max: float = 60.0) -> None:
        with Admin(self._config) as admin:
            latest = admin.list_offsets(dict.fromkeys(self._places, OffsetSpec.latest()))
            ends = {place: latest[place].offset for place in self._places}
        deadline = time.monotonic() + seconds_max
        while any(self._consumer.position(place) < end for place, end in ends.items()):
            if time.monotonic() > deadline:
                raise RuntimeError("an open transaction holds readers up")
            self.counts()

    def close(self) -> None:
        closed_quietly(self._consumer)


class InDelta:
    """What is in a Delta table; a file is read when it is first seen."""

    def __init__(self, address: str, storage: Mapping[str, str] | None = None) -> None:
        self._address = address
        self._storage = dict(storage or {})
        options = {f"storage.{name}": value for name, value in self._storage.items()}
        self.sink: Mapping[str, Any] = {"delta": address, **options}
        self._files: dict[str, Counter[int]] = {}

    def counts(self) -> Counter[int]:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            table = DeltaTable(self._address, storage_options=self._storage)
        except TableNotFoundError:
            return Counter()
        found: Counter[int] = Counter()
        for fragment in table.to_pyarrow_dataset().get_fragments():
            if fragment.path not in self._files:
                try:
                    column = fragment.to_table(columns=["number"])["number"]
                except FileNotFoundError as error:
                    raise RuntimeError(
                        f"{self._address} has lost its file {fragment.path}"
                    ) from error
                self._files[fragment.path] = Counter(column.to_pylist())
            found += self._files[fragment.path]
        time.sleep(_ASK_SECONDS)
        return found

    def read_to_end(self, *, seconds_max: float = 60.0) -> None:
        """A version of the table is there as a whole."""

    def close(self) -> None: ...


class InPostgres:
    def __init__(self, server: Any, database: str) -> None:
        self.sink: Mapping[str, Any] = {"jdbc": server.url(database), "table": "numbers"}
        self._connection = server.connect(database, autocommit=True)

    def counts(self) -> Counter[int]:
        time.sleep(_ASK_SECONDS)
        [[name]] = self._connection.execute("SELECT to_regclass('numbers')").fetchall()
        if name is None:
            return Counter()
        rows = self._connection.execute("SELECT number, count(*) FROM numbers GROUP BY number")
        return Counter(dict(rows.fetchall()))

    def read_to_end(self, *, seconds_max: float = 60.0) -> None:
        """What is committed can be seen."""

    def close(self) -> None:
        self._connection.close()


class Targets:
    """The servers and folders of the kinds that are asked for, and a reader of each."""

    def __init__(self, folder: Path, bootstrap: str, partitions: int) -> None:
        self._folder, self._bootstrap, self._partitions = folder, bootstrap, partitions
        self._servers = ExitStack()
        self._storage: dict[str, str] = {}
        self._postgres: tuple[Any, str] | None = None
        self._bucket = ""

    def topic(self) -> str:
        return "chaos-out"

    def reader(self, kind: str) -> Target:
        """A new one, which has seen nothing yet."""
        match kind:
            case "topic":
                return InTopic(self._bootstrap, self.topic(), self._partitions)
            case "delta":
                return InDelta(str(self._folder / "numbers"))
            case "s3":
                return self._in_s3()
            case _:
                return self._in_postgres()

    def _in_s3(self) -> Target:
        if not self._bucket:
            if reason := minio_missing():
                raise RuntimeError(reason)
            server = self._servers.enter_context(running_minio())
            self._bucket = server.bucket()
            self._storage = {
                "AWS_ENDPOINT_URL": server.url,
                "AWS_ACCESS_KEY_ID": USER,
                "AWS_SECRET_ACCESS_KEY": PASSWORD,
                "AWS_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
            }
        return InDelta(f"s3://{self._bucket}/numbers", self._storage)

    def _in_postgres(self) -> Target:
        if self._postgres is None:
            if reason := postgres_missing():
                raise RuntimeError(reason)
            server = self._servers.enter_context(running_postgres())
            self._postgres = server, server.database()
        return InPostgres(*self._postgres)

    def close(self) -> None:
        self._servers.close()
