"""Kills workers and targets during flows of Connect, and counts what arrived.

    PYTHONPATH=tests python -m support.connect_kills --count 50 [--flow s3] [--on-spark]

Three flows, each with a broker of its own, two workers and a target. A kill is a SIGKILL of one of
the workers or of the target, which comes back; the next one follows when records flow again. With
--on-spark the workers are instances on Spark, and what is killed are its Python workers.

| flow | way | promised |
|---|---|---|
| jdbc | table, JDBC source (exactly once), topic, JDBC sink (upsert by offset), table | each once |
| s3 | topic, S3 sink, objects | each once |
| cdc | table, change data capture (exactly once), topic | each once, in order |
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.client import Consumer, Producer
from moldau.config import dump_properties
from support import minio, postgres
from support.connect_workers import call, distributed_settings, is_healthy
from support.minio import Minio
from support.ports import free_port
from support.postgres import Postgres
from support.processes import moldau
from support.waiting import eventually

if TYPE_CHECKING:
    from support.connect_on_spark import SparkWorkers

RECOVERY_S_MAX = float(os.environ.get("RECOVERY_S_MAX", "120"))
FLUSH_SIZE = 50
BATCH = 10


class Killable:
    """A program that is killed and started again."""

    def __init__(self, name: str, command: list[Any], log: Path, **options: Any) -> None:
        self.name = name
        self._command, self._log, self._options = [str(each) for each in command], log, options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, **self._options
            )

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def start_until(self, is_ready: Callable[[], bool]) -> None:
        """PostgreSQL does not start before all processes of the killed one are gone."""
        deadline = time.monotonic() + RECOVERY_S_MAX
        while not is_ready():
            if self.has_ended:
                self.start()
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} is not back: {self._log.read_text()[-2000:]}")
            time.sleep(0.2)


class Flow(ABC):
    """Records are fed from a thread until it is stopped, all with consecutive numbers."""

    name: str

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.fed = 0
        self._stop = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._feed_on, daemon=True)

    @abstractmethod
    def open(self) -> None:
        """Start the target."""

    @abstractmethod
    def connectors(self) -> dict[str, dict[str, str]]: ...

    @abstractmethod
    def feed(self, first: int, last: int) -> None:
        """Add records with these numbers; they may have been added before."""

    @abstractmethod
    def arrived(self) -> int:
        """How many records have arrived."""

    @abstractmethod
    def check(self) -> None:
        """All numbers up to `fed` have arrived, each once."""

    @abstractmethod
    def kill_target(self) -> None:
        """Kill it, and start it again."""

    @abstractmethod
    def close(self) -> None: ...

    def start_feeding(self) -> None:
        self._thread.start()

    def stop_feeding(self) -> None:
        self._stop.set()
        self._thread.join()
        self.raise_failure()

    def raise_failure(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _feed_on(self) -> None:
        try:
            while not self._stop.wait(0.02) or self.fed % FLUSH_SIZE:
                self.feed(self.fed, self.fed + BATCH)
                self.fed += BATCH
        except BaseException as error:
            self._failed = error


class _PostgresFlow(Flow):
    def open(self) -> None:
        self.server = KillablePostgres(Path(tempfile.mkdtemp(prefix="moldau-kills-")))
        self.server.start()
        with self.server.cluster.connect(autocommit=True) as connection:
            connection.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, note TEXT)")

    def feed(self, first: int, last: int) -> None:
        import psycopg

        while True:
            try:
                with self.server.cluster.connect(connect_timeout=5) as connection:
                    connection.execute(
                        "INSERT INTO numbers SELECT n, 'x' "
                        "FROM generate_series(%s::bigint, %s::bigint) n ON CONFLICT DO NOTHING",
                        (first, last - 1),
                    )  # fmt: skip
                return
            except psycopg.OperationalError:
                time.sleep(0.1)

    def kill_target(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        self.server.close()


class JdbcFlow(_PostgresFlow):
    name = "jdbc"

    def connectors(self) -> dict[str, dict[str, str]]:
        url = self.server.cluster.url("postgres")
        return {
            "out": {
                "connector.class": "JdbcSource", "connection.url": url,
                "table.whitelist": "numbers", "mode": "incrementing",
                "incrementing.column.name": "id", "topic.prefix": "jdbc-",
                "poll.interval.ms": "100", "exactly.once.support": "required",
                "batch.max.rows": "20", "connection.attempts": "1000",
                "connection.backoff.ms": "200",
            },
            "in": {
                "connector.class": "JdbcSink", "connection.url": url, "topics": "jdbc-numbers",
                "auto.create": "true", "insert.mode": "upsert", "pk.mode": "kafka",
                "table.name.format": "copied", "max.retries": "1000", "retry.backoff.ms": "200",
                "consumer.override.isolation.level": "read_committed",
                "consumer.override.session.timeout.ms": "6000",
            },
        }  # fmt: skip

    def _count(self, what: str) -> int:
        import psycopg

        try:
            with self.server.cluster.connect(connect_timeout=5) as connection:
                found = connection.execute(f"SELECT {what} FROM copied").fetchone()
                return int(found[0])
        except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
            return 0

    def arrived(self) -> int:
        return self._count("count(*)")

    def check(self) -> None:
        assert self._count("count(*)") == self._count("count(DISTINCT id)") == self.fed


class CdcFlow(_PostgresFlow):
    name = "cdc"

    def open(self) -> None:
        super().open()
        self._consumer: Consumer[bytes, bytes] = Consumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        self._numbers: list[int] = []

    def connectors(self) -> dict[str, dict[str, str]]:
        return {
            "changes": {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "database.hostname": "127.0.0.1", "database.user": "moldau",
                "database.port": str(self.server.cluster.port), "database.dbname": "postgres",
                "topic.prefix": "cdc", "slot.name": "kills", "poll.interval.ms": "50",
                "exactly.once.support": "required", "transaction.boundary": "connector",
            }
        }  # fmt: skip

    def arrived(self) -> int:
        if not self._consumer.assignment():
            self._consumer.assign([("cdc.public.numbers", 0)])
        with contextlib.suppress(Exception):
            for record in self._consumer.poll(0.2):
                if record.value is not None:
                    value = json.loads(record.value)
                    self._numbers.append(value.get("payload", value)["after"]["id"])
        return len(self._numbers)

    def check(self) -> None:
        # What comes after the last one would be a double.
        self.arrived()
        assert self._numbers == list(range(self.fed)), _difference(self._numbers, self.fed)

    def close(self) -> None:
        self._consumer.close()
        super().close()


class S3Flow(Flow):
    name = "s3"

    def open(self) -> None:
        self._port = free_port()
        self._data = Path(tempfile.mkdtemp(prefix="moldau-kills-"))
        self.server = Killable(
            "MinIO",
            [minio.PROGRAM, "server", "--quiet", "--address", f"127.0.0.1:{self._port}",
             self._data / "data"],
            self.folder / "minio.log",
            env={**os.environ, "MINIO_ROOT_USER": minio.USER, "MINIO_UPDATE": "off",
                 "MINIO_ROOT_PASSWORD": minio.PASSWORD, "MINIO_BROWSER": "off"},
        )  # fmt: skip
        self.minio = Minio(f"http://127.0.0.1:{self._port}")
        self._start()
        self._bucket = self.minio.bucket()
        self._counted: dict[str, int] = {}
        self._producer: Producer = Producer(bootstrap_servers=self.bootstrap)

    def _start(self) -> None:
        self.server.start_until(lambda: minio.answers(self.minio))

    def connectors(self) -> dict[str, dict[str, str]]:
        return {
            "objects": {
                "connector.class": "S3Sink", "topics": "numbers",
                "value.converter": "JsonConverter", "value.converter.schemas.enable": "false",
                "flush.size": str(FLUSH_SIZE), "format.class": "JsonFormat",
                "consumer.override.session.timeout.ms": "6000",
                **self.minio.config(self._bucket),
            }
        }  # fmt: skip

    def feed(self, first: int, last: int) -> None:
        for number in range(first, last):
            self._producer.send("numbers", json.dumps({"id": number}).encode(), partition=0)
        self._producer.flush()

    def _objects(self, known: Collection[str] = ()) -> dict[str, list[int]]:
        """The numbers in each object that is not known."""
        from pyarrow import fs

        files = self.minio.files()
        found: dict[str, list[int]] = {}
        for each in files.get_file_info(fs.FileSelector(self._bucket, recursive=True)):
            if each.type == fs.FileType.File and each.path not in known:
                with files.open_input_stream(each.path) as data:
                    lines = data.read().splitlines()
                found[each.path] = [json.loads(line)["id"] for line in lines]
        return found

    def arrived(self) -> int:
        # Each object is read once: there are thousands in the end, and this is asked all the time.
        with contextlib.suppress(OSError):
            fresh = self._objects(self._counted)
            self._counted |= {path: len(numbers) for path, numbers in fresh.items()}
        return sum(self._counted.values())

    def check(self) -> None:
        found = sorted(each for numbers in self._objects().values() for each in numbers)
        assert found == list(range(self.fed)), _difference(found, self.fed)

    def kill_target(self) -> None:
        self.server.kill()
        self._start()

    def close(self) -> None:
        self._producer.close()
        self.server.kill()
        shutil.rmtree(self._data, ignore_errors=True)


def _difference(found: list[int], count: int) -> str:
    doubles = sorted(each for each, times in Counter(found).items() if times > 1)[:20]
    missing = sorted(set(range(count)) - set(found))[:20]
    return f"{len(found)} arrived of {count}: missing {missing}, twice {doubles}"


class KillablePostgres:
    """A cluster in a folder, at one port."""

    def __init__(self, folder: Path) -> None:
        programs = postgres.programs()
        assert programs is not None
        user = postgres.unprivileged()
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        postgres.run(user, programs / "initdb", "-D", data, "-U", "moldau", "-A", "trust", "-N")
        self.cluster = Postgres(free_port())
        command = [programs / "postgres", "-D", data]
        command += postgres.arguments(self.cluster, data)
        options = postgres.as_user(user)
        self._server = Killable("PostgreSQL", command, folder / "log", cwd=folder, **options)
        self._folder = folder

    def start(self) -> None:
        self._server.start_until(lambda: postgres.answers(self.cluster))

    def kill(self) -> None:
        self._server.kill()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def worker_settings(bootstrap: str, group: str) -> dict[str, str]:
    return distributed_settings(
        bootstrap,
        group,
        exactly_once_source_support="enabled",
        session_timeout_ms="6000",
        key_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter="org.apache.kafka.connect.json.JsonConverter",
    )


class Workers:
    """Two workers of a group, in processes of their own."""

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str]) -> None:
        self.urls: list[str] = []
        self._workers: list[Killable] = []
        for number in range(2):
            port = free_port()
            self.urls.append(f"http://127.0.0.1:{port}")
            file = folder / f"worker-{number}.properties"
            file.write_text(dump_properties({**settings, "listeners": self.urls[-1]}))
            command = [sys.executable, "-m", "moldau.cli", "connect", "start", file]
            log = folder / f"worker-{number}.log"
            self._workers.append(Killable(f"worker {number}", command, log))

    def start(self) -> None:
        for worker, url in zip(self._workers, self.urls, strict=True):
            worker.start_until(lambda url=url: is_healthy(url))  # type: ignore[misc]

    def kill(self, number: int) -> None:
        self._workers[number].kill()
        self._workers[number].start()

    def close(self) -> None:
        for each in self._workers:
            each.kill()


FLOWS: dict[str, type[Flow]] = {each.name: each for each in (JdbcFlow, S3Flow, CdcFlow)}


def missing(flow: str) -> str | None:
    """Why a flow cannot run here, or None."""
    return minio.minio_missing() if flow == "s3" else postgres.postgres_missing()


def _workers(on_spark: bool) -> type[Workers | SparkWorkers]:
    if not on_spark:
        return Workers
    # Only here: whoever kills plain workers needs no Spark.
    from support.connect_on_spark import SparkWorkers

    return SparkWorkers


@contextlib.contextmanager
def _running(
    kind: type[Flow], folder: Path, bootstrap: str, *, on_spark: bool
) -> Iterator[tuple[Flow, Workers | SparkWorkers]]:
    flow, settings = kind(folder, bootstrap), worker_settings(bootstrap, f"kills-{kind.name}")
    workers = _workers(on_spark)(folder, bootstrap, settings)
    flow.open()
    try:
        workers.start()
        for name, config in flow.connectors().items():
            made = call(workers.urls[0], "PUT", f"/connectors/{name}/config", config)
            assert made.status == 201, made.body
        yield flow, workers
    finally:
        workers.close()
        flow.close()


def run(
    name: str, folder: Path, bootstrap: str, *, kills: int, seed: int, on_spark: bool = False
) -> dict[str, int]:
    """How often each part was killed, and how many records arrived, each once."""
    chance = random.Random(seed)
    counts = {"workers": 0, "target": 0}
    with _running(FLOWS[name], folder, bootstrap, on_spark=on_spark) as (flow, workers):
        flow.start_feeding()
        for _ in range(kills):
            _flows_on(flow, workers)
            time.sleep(chance.uniform(0.0, 1.0))
            if chance.random() < 1 / 3 or counts["target"] * 3 < counts["workers"] - 2:
                counts["target"] += 1
                flow.kill_target()
            else:
                counts["workers"] += 1
                workers.kill(chance.randrange(2))
        _flows_on(flow, workers)
        flow.stop_feeding()
        try:
            eventually(
                lambda: flow.arrived() >= flow.fed,
                what=f"all {flow.fed} records have arrived",
                seconds_max=RECOVERY_S_MAX,
            )
        except AssertionError as error:
            states = [_states(url) for url in workers.urls]
            raise AssertionError(
                f"{error}: {flow.arrived()} arrived; {json.dumps(states, indent=1)}"
            ) from None
        flow.check()
        return {**counts, "records": flow.fed}


def _flows_on(flow: Flow, workers: Workers | SparkWorkers) -> None:
    before = flow.arrived()
    try:
        eventually(
            lambda: flow.arrived() > before,
            what=f"{flow.name}: records arrive, after {before}",
            seconds_max=RECOVERY_S_MAX,
        )
    except AssertionError as error:
        flow.raise_failure()
        states = [_states(url) for url in workers.urls]
        raise AssertionError(f"{error}: {json.dumps(states, indent=1)}") from None


def _states(url: str) -> Any:
    try:
        return call(url, "GET", "/connectors?expand=status").body
    except OSError as error:
        return f"{url}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50, help="kills of each flow")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--flow", action="append", choices=sorted(FLOWS), default=None)
    parser.add_argument("--on-spark", action="store_true", help="workers as instances on Spark")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    for name in options.flow or FLOWS:
        if why := missing(name):
            print(f"{name}: left out: {why}", flush=True)
            continue
        began = time.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix=f"connect-kills-{name}-") as folder,
            moldau(Path(folder)) as broker,
        ):
            found = run(
                name,
                Path(folder),
                broker.bootstrap,
                kills=options.count,
                seed=seed,
                on_spark=options.on_spark,
            )
        shown = ", ".join(f"{key} {value}" for key, value in found.items())
        print(f"{name}: {shown}; each once, {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
