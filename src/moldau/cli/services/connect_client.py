"""The commands that talk to a worker: list, create, show, status, restart, offsets and so on."""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from moldau.cli.services.connect_files import connector_file
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.tables import Table, aligned, print_json

__all__ = ["STYLES", "WorkerClient", "run"]

_TIMEOUT_S = 95.0
STYLES = {"RUNNING": "green", "FAILED": "red", "PAUSED": "yellow", "STOPPED": "yellow"}


class WorkerClient:
    """A worker's REST interface; a refusal is a Failure with the worker's own words."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def answers_at(self, place: str) -> bool:
        """Whether a worker of the cluster is there, by HOST:PORT as states have it."""
        address = urlsplit(f"{urlsplit(self._url).scheme}://{place}")
        try:
            with socket.create_connection((address.hostname or "", address.port or 8083), 2.0):
                return True
        except OSError:
            return False

    def call(self, method: str, path: str, body: Any = None) -> Any:
        address = urlsplit(self._url)
        secure = address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(address.hostname or "", address.port or 8083, timeout=_TIMEOUT_S)
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(method, address.path + path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise Failure(
                f"no Connect worker answers at {self._url}: {error}. Start one with "
                "`moldau connect start`, or give --url"
            ) from None
        finally:
            connection.close()
        if response.status >= 400:
            raise Failure(_message(text) or f"{method} {path}: {response.status}")
        if "json" not in (response.getheader("Content-Type") or "json"):
            return text
        return json.loads(text) if text else None


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]


def run(arguments: argparse.Namespace) -> int:
    worker = WorkerClient(arguments.url)
    name: str | None = getattr(arguments, "connector", None)
    path = f"/connectors/{quote(name, safe='')}" if name else ""
    command = arguments.command
    simple = {"pause": "paused", "resume": "resumed", "stop": "stopped"}
    if command in simple:
        worker.call("PUT", f"{path}/{command}")
        print(f"{name}: {simple[command]}")
        return 0
    match command:
        case "list":
            _list(worker, arguments)
        case "create":
            _create(worker, arguments)
        case "edit":
            changes = {key: value or None for key, value in _settings(arguments.settings).items()}
            print_json(worker.call("PATCH", f"{path}/config", changes))
        case "show":
            print_json(worker.call("GET", path))
        case "status":
            return _status(worker.call("GET", f"{path}/status"), arguments)
        case "explain":
            return _explain(worker.call("GET", f"{path}/status"), worker)
        case "restart":
            _restart(worker, path, arguments)
        case "delete":
            worker.call("DELETE", path)
            print(f"{name}: deleted")
        case "offsets":
            _offsets(worker, path, arguments)
        case "tail":
            _tail(worker, arguments)
    return 0


def _settings(pairs: list[str]) -> dict[str, str]:
    found = {}
    for each in pairs:
        key, separator, value = each.partition("=")
        if not separator or not key:
            raise Failure(f"{each}: use KEY=VALUE")
        found[key] = value
    return found


def _list(worker: WorkerClient, arguments: argparse.Namespace) -> None:
    found = worker.call("GET", "/connectors?expand=status&expand=info")
    if arguments.json:
        print_json(found)
        return
    table = Table("NAME", "TYPE", "STATE", "TASKS", "WORKER", "CLASS", plain=aligned)
    for name, each in sorted(found.items()):
        status, config = each.get("status", {}), each.get("info", {}).get("config", {})
        connector = status.get("connector", {})
        table.add(
            name,
            status.get("type", ""),
            connector.get("state", ""),
            _counted(status.get("tasks", [])),
            connector.get("worker_id", ""),
            config.get("connector.class", ""),
            style=STYLES.get(_worst(status)),
        )
    for each in _pipelines(worker):
        state = each["state"].upper()
        table.add(each["name"], "pipeline", state, "", "Spark", "", style=STYLES.get(state))
    table.show()


def _pipelines(worker: WorkerClient) -> list[dict[str, Any]]:
    """Those of the cluster; a worker of Apache Kafka does not know them."""
    try:
        found: list[dict[str, Any]] = worker.call("GET", "/pipelines")
    except Failure:
        return []
    return found


def _counted(tasks: list[dict[str, Any]]) -> str:
    states = [each["state"] for each in tasks]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"


def _worst(status: dict[str, Any]) -> str:
    states = [status.get("connector", {}).get("state", "")]
    states += [each["state"] for each in status.get("tasks", [])]
    return "FAILED" if "FAILED" in states else states[0]


def _create(worker: WorkerClient, arguments: argparse.Namespace) -> None:
    if arguments.settings:
        config = _settings(arguments.settings)
        name = arguments.connector
    else:
        config = connector_file(arguments.connector)
        name = config.get("name", "")
        if not name:
            raise Failure(f"{arguments.connector} has no name")
    config["name"] = name
    if arguments.paused:
        body = {"name": name, "config": config, "initial_state": "PAUSED"}
        found = worker.call("POST", "/connectors", body)
    else:
        found = worker.call("PUT", f"/connectors/{quote(name, safe='')}/config", config)
    if arguments.json:
        print_json(found)
    else:
        print(f"{name}: a {found['type']} connector, {found['config']['connector.class']}")
        _say_unread(worker, config)


def _say_unread(worker: WorkerClient, config: dict[str, str]) -> None:
    """Name the settings that nothing reads: most often a mistake, or one of another product."""
    # Imported here: other commands need no tables of connectors.
    from moldau.connect.machine.dialects import (
        SHARED_PREFIXES,
        dialect_of,
        remarks,
        translates,
    )

    class_name = config["connector.class"]
    path = f"/connector-plugins/{quote(class_name, safe='')}/config/validate"
    read = {each["value"]["name"] for each in worker.call("PUT", path, config)["configs"]}
    dialect = dialect_of(class_name)
    unread = [
        key
        for key in config
        if key not in read
        and not key.startswith(SHARED_PREFIXES)
        and (dialect is None or translates(dialect, key) is None)
    ]
    for remark in remarks(config, sorted(unread)):
        print(f"warning: {remark}", file=sys.stderr)


def _status(found: dict[str, Any], arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(found)
        return 0
    table = Table("WHAT", "STATE", "WORKER", "WHY", plain=aligned)
    connector = found["connector"]
    table.add(
        "connector",
        connector["state"],
        connector["worker_id"],
        _reason(connector),
        style=STYLES.get(connector["state"]),
    )
    for each in found["tasks"]:
        table.add(
            f"task {each['id']}",
            each["state"],
            each["worker_id"],
            _reason(each),
            style=STYLES.get(each["state"]),
        )
    table.show()
    return 0


def _reason(part: dict[str, Any]) -> str:
    """The last line of a trace: what went wrong, without where in the code."""
    lines = [line for line in (part.get("trace") or "").splitlines() if line.strip()]
    if not lines:
        return ""
    # Python puts the error last, Java first.
    line = lines[0] if any(each.startswith("\tat ") for each in lines) else lines[-1]
    return line.strip().split(": ", 1)[-1] if ": " in line else line.strip()


def _explain(found: dict[str, Any], worker: WorkerClient) -> int:
    failed = [("the connector", found["connector"])]
    failed += [(f"task {each['id']}", each) for each in found["tasks"]]
    reasons = [(what, each) for what, each in failed if each["state"] == "FAILED"]
    lost: dict[str, list[str]] = {}
    for what, each in failed:
        if each["state"] != "FAILED" and not worker.answers_at(each["worker_id"]):
            lost.setdefault(each["worker_id"], []).append(what)
    for place, names in lost.items():
        print(
            f"{found['name']}: {', '.join(names)} ran on {place}, which does not answer: another "
            "worker takes over after scheduled.rebalance.max.delay.ms, five minutes unless it is "
            "set"
        )
    if not reasons and lost:
        return 1
    if not reasons:
        print(f"{found['name']}: nothing has failed; {found['connector']['state']}, tasks: "
              f"{_counted(found['tasks'])}")  # fmt: skip
        return 0
    for what, each in reasons:
        print(f"{found['name']}: {what} failed on {each['worker_id']}: {_reason(each)}")
    return 1


def _restart(worker: WorkerClient, path: str, arguments: argparse.Namespace) -> None:
    if arguments.task is not None:
        worker.call("POST", f"{path}/tasks/{arguments.task}/restart")
    else:
        query = (
            f"includeTasks={str(arguments.tasks).lower()}"
            f"&onlyFailed={str(arguments.only_failed).lower()}"
        )
        worker.call("POST", f"{path}/restart?{query}")
    print(f"{arguments.connector}: restarted")


def _offsets(worker: WorkerClient, path: str, arguments: argparse.Namespace) -> None:
    if arguments.reset:
        print(worker.call("DELETE", f"{path}/offsets")["message"])
    elif arguments.set is not None:
        try:
            body = json.loads(Path(arguments.set).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Failure(f"cannot read {arguments.set}: {error}") from None
        print(worker.call("PATCH", f"{path}/offsets", body)["message"])
    else:
        print_json(worker.call("GET", f"{path}/offsets"))


def _tail(worker: WorkerClient, arguments: argparse.Namespace) -> None:
    """Print every change of a state."""
    seen: dict[str, str] = {}
    while True:
        found = worker.call("GET", "/connectors?expand=status")
        now: dict[str, str] = {}
        for name, each in sorted(found.items()):
            if arguments.connector not in (None, name):
                continue
            status = each["status"]
            for what, part in [
                (name, status["connector"]),
                *((f"{name}-{task['id']}", task) for task in status["tasks"]),
            ]:
                now[what] = f"{part['state']}  {part['worker_id']}  {_reason(part)}".rstrip()
        for what in sorted(now.keys() | seen.keys()):
            if now.get(what) != seen.get(what):
                clock = time.strftime("%H:%M:%S")
                print_now(f"{clock}  {what}  {now.get(what, 'deleted')}")
        seen = now
        time.sleep(max(arguments.interval, 0.1))
