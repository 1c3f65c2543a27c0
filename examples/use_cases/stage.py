"""What the use cases share: a broker and services for the time of a run, a live view, final checks.

    with Stage(__doc__) as stage:
        stage.topics("payments", partitions=3)
        stage.fact("payments", lambda: sent)          # a line of the live view
        stage.check("each payment counts once", ...)  # judged at the end

Without --bootstrap-server a broker is started, and its data is removed afterwards. --short runs
with less data. The exit status is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import TopicExistsError
from moldau.streams import KafkaStreams, State, Topology
from moldau.testing import Broker

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 90.0


class Stage:
    def __init__(self, description: str | None) -> None:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="use this broker")
        parser.add_argument("--short", action="store_true", help="less data, for a quick look")
        given = parser.parse_args()
        self.short: bool = given.short
        self.title = (description or "").strip().splitlines()[0].rstrip(".")
        self._given: str | None = given.bootstrap_server
        self._facts: dict[str, Callable[[], object]] = {}
        self._failed = 0
        self._applications: list[KafkaStreams] = []
        self._resources = ExitStack()
        self._console = Console()
        self._live: Live | None = None

    def __enter__(self) -> Stage:
        # The databases and search servers that the tests start.
        sys.path.append(str(ROOT / "tests"))
        enter = self._resources.enter_context
        self.folder = Path(
            enter(tempfile.TemporaryDirectory(prefix="moldau-example-", ignore_cleanup_errors=True))
        )
        self.bootstrap = (
            self._given
            or enter(
                Broker(config={"log.retention.ms": "-1", "log.cleaner.backoff.ms": "500"})
            ).bootstrap_servers
        )
        self.producer = enter(
            Producer(
                bootstrap_servers=self.bootstrap,
                key_serializer="string",
                value_serializer=lambda value: (
                    value if isinstance(value, bytes) else as_json(value)
                ),
                linger_ms=5,
            )
        )
        if self._console.is_terminal:
            self._live = enter(
                Live(get_renderable=self._view, refresh_per_second=4, console=self._console)
            )
        else:
            self._console.print(self.title)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._live is None:
            for name, value in self._facts.items():
                self._console.print(f"{name}: {value()}")
        if self._live is not None:
            # Before what it shows is closed.
            self._live.stop()
        self._resources.close()
        if kind is None and self._failed:
            raise SystemExit(1)

    # What there is to see.

    def fact(self, name: str, value: Callable[[], object]) -> None:
        self._facts[name] = value

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def check(self, what: str, passed: object) -> None:
        self._failed += not passed
        self.say(f"{'ok    ' if passed else 'FAILED'} {what}")

    def _view(self) -> Table:
        table = Table(title=self.title, show_header=False, title_justify="left")
        for name, value in self._facts.items():
            table.add_row(name, str(value()))
        return table

    # Records.

    def topics(self, *names: str, partitions: int = 1, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            wanted = [NewTopic(name, num_partitions=partitions, configs=settings) for name in names]
            for error in admin.create_topics(wanted, check=False).errors.values():
                if not isinstance(error, TopicExistsError):
                    raise error

    def send(self, topic: str, key: str | None, value: Any, **options: Any) -> None:
        self.producer.send(topic, value, key=key, **options)

    def read(self, topic: str, value: str = "json") -> list[tuple[str | None, Any]]:
        """All committed records of a topic up to now, by partition."""
        found: list[tuple[str | None, Any]] = []
        with Consumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            key_deserializer="string",
            value_deserializer=value,
        ) as consumer:
            partitions = [
                TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)
            ]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            while any(consumer.position(each) < ends[each] for each in partitions):
                found += [(record.key, record.value) for record in consumer.poll(1.0)]
        return found

    def until(
        self, condition: Callable[[], object], what: str, seconds_max: float = SECONDS_MAX
    ) -> None:
        deadline = time.monotonic() + seconds_max
        while not condition():
            if any(each.state is State.ERROR for each in self._applications):
                raise SystemExit("the application has failed")
            if time.monotonic() > deadline:
                raise SystemExit(f"waited {seconds_max:.0f} s until {what}")
            time.sleep(0.1)

    def until_records(self, topic: str, count: int) -> None:
        self.producer.flush()
        self.until(lambda: len(self.read(topic, "bytes")) >= count, f"{topic} has {count} records")

    # What runs on the broker.

    def streams(self, topology: Topology, application_id: str, **settings: Any) -> KafkaStreams:
        """An application, beside the program, until its end."""
        started = self._resources.enter_context(
            KafkaStreams(
                topology,
                application_id=application_id,
                bootstrap_servers=self.bootstrap,
                auto_offset_reset="earliest",
                state_dir=str(self.folder / "state"),
                **settings,
            )
        )
        self._applications.append(started)
        return started

    def service(self, *command: str) -> str:
        """A service of the moldau command; its address."""
        log = self.folder / f"{command[0]}.log"
        words = [*command, "start", "--port", "0", "--bootstrap-server", self.bootstrap]
        self._resources.enter_context(process("-m", "moldau.cli", *words, log=log))
        self.until(lambda: "Ctrl-C stops it." in log.read_text(), f"{command[0]} is up, see {log}")
        found = re.search(r"listening  (\S+?),?\s", log.read_text())
        if found is None:
            raise SystemExit(f"{command[0]} did not start: {log.read_text()}")
        return found[1]

    def server(self, manager: Any) -> Any:
        """A context manager's resource, until the end of the run."""
        return self._resources.enter_context(manager)

    def connector(self, worker: str, name: str, **config: object) -> None:
        """Creates a connector and waits until its tasks run."""
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        # A worker whose group is rebalancing answers with 409.
        path = f"{worker}/connectors/{name}/config"
        self.until(lambda: ask(path, settings, method="PUT"), f"the worker takes {name}")
        status: dict[str, Any] = {}

        def runs() -> bool:
            status.update(ask(f"{worker}/connectors/{name}/status") or {})
            tasks = [task["state"] for task in status.get("tasks", ())]
            if "FAILED" in tasks:
                raise SystemExit(status["tasks"][0]["trace"])
            return bool(tasks) and set(tasks) == {"RUNNING"}

        self.until(runs, f"the connector {name} runs")


def topology_of(name: str) -> Topology:
    """The one that a program of examples/streams builds."""
    program = runpy.run_path(str(ROOT / "examples" / "streams" / f"{name}.py"))
    built: Topology = program["build"]()
    return built


def as_json(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value, separators=(",", ":")).encode()


def ask(url: str, body: Any = None, method: str | None = None) -> Any:
    """What an HTTP service answers; None for 404."""
    data = as_json(body)
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        if error.code in (404, 409):
            return None
        raise SystemExit(f"{url}: {error.read().decode()}") from error


@contextmanager
def process(*words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program beside this one, ended at the end of the block."""
    with log.open("ab") as output:
        started = subprocess.Popen([sys.executable, *words], stdout=output, stderr=output)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(60)


def latest(records: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """The last value of each key."""
    return dict(records)
