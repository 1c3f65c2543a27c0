"""Connect's workers in a test: in threads of the test, with their REST interface as calls."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.services.connect.app import ConnectWorker
from support.http_service import Running, running
from support.waiting import eventually

CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "500",
    "listeners": "http://127.0.0.1:0",
}


@dataclass
class Answered:
    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class WorkerUnderTest:
    running: Running

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def service(self) -> ConnectWorker:
        service: ConnectWorker = self.running.service
        return service

    def call(self, method: str, path: str, body: Any = None) -> Answered:
        return call(self.url, method, path, body)

    def state_of(self, name: str) -> dict[str, Any]:
        """The connector's state, and the sorted states of its tasks."""
        found = self.call("GET", f"/connectors/{name}/status")
        if found.status != 200:
            return {"connector": None, "tasks": []}
        return {
            "connector": found.body["connector"]["state"],
            "tasks": sorted(each["state"] for each in found.body["tasks"]),
        }

    def wait_for(self, name: str, connector: str, *tasks: str) -> None:
        wanted = {"connector": connector, "tasks": sorted(tasks)}
        eventually(
            lambda: self.state_of(name) == wanted,
            what=f"{name} to be {wanted}, not {self.state_of(name)}",
        )


def call(url: str, method: str, path: str, body: Any = None) -> Answered:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return _answered(response.status, response.read(), response.headers)
    except urllib.error.HTTPError as error:
        return _answered(error.code, error.read(), error.headers)


def is_healthy(url: str) -> bool:
    try:
        return call(url, "GET", "/health").status == 200
    except OSError:
        return False


def _answered(status: int, data: bytes, headers: Any) -> Answered:
    try:
        body = json.loads(data) if data else None
    except ValueError:
        # Java's server answers in HTML until it has loaded its resources.
        body = data.decode()
    return Answered(status, body, dict(headers))


@contextmanager
def standalone_worker(
    bootstrap: str, folder: Path, *connectors: Mapping[str, str], **settings: str
) -> Iterator[WorkerUnderTest]:
    given = {
        **CONVERTERS,
        "bootstrap.servers": bootstrap,
        "offset.storage.file.filename": str(folder / "connect.offsets"),
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    config = WorkerConfig.of(given, distributed=False)
    with running(lambda: ConnectWorker(config, distributed=False, connectors=connectors)) as found:
        yield WorkerUnderTest(found)


def distributed_settings(bootstrap: str, group: str, **settings: str) -> dict[str, str]:
    return {
        **CONVERTERS,
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.partitions": "3",
        "status.storage.partitions": "2",
        "scheduled.rebalance.max.delay.ms": "0",
        "heartbeat.interval.ms": "500",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }


@contextmanager
def distributed_worker(bootstrap: str, group: str, **settings: str) -> Iterator[WorkerUnderTest]:
    config = WorkerConfig.of(distributed_settings(bootstrap, group, **settings), distributed=True)
    with running(lambda: ConnectWorker(config, distributed=True)) as found:
        worker = WorkerUnderTest(found)
        eventually(
            lambda: (
                worker.service.herder.membership.generation >= 0
                and worker.service.herder.membership.leader_url
            ),
            what="the worker to be in its group",
        )
        yield worker
