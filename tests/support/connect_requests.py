"""Requests for a worker of Connect, good and bad, in an order: for Apache Kafka's and ours alike.

A step waits first until its connector is in a state (`after`), because states change behind a
request. `comparable` leaves out what cannot be equal: ids of workers, versions, traces.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.waiting import eventually

__all__ = ["STEPS", "Result", "Step", "difference", "play"]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
_HOISTED = {"transforms": "a", "transforms.a.type": _HOIST, "transforms.a.field": "f"}
_SLASH = "Jetty refuses an encoded slash before Connect sees it"
_NONE = object()
_C, _PLUGINS = "/connectors", "/connector-plugins"


@dataclass(frozen=True)
class Step:
    method: str
    path: str
    body: Any = _NONE
    after: tuple[str, ...] = ()
    """A connector's name, its state, and those of its tasks; `gone` for one without a status."""
    raw: bytes | None = None
    content_type: str | None = "application/json"
    accept: str | None = None
    status_only: bool = False
    ours: int | None = None
    """The status of our worker where it is another one, `why`; the body is not compared then."""
    why: str = ""

    def __str__(self) -> str:
        body = self.raw.decode("latin-1") if self.raw is not None else ""
        if self.body is not _NONE:
            body = json.dumps(self.body)
        return f"{self.method} {self.path} {body}"[:160]

    @property
    def data(self) -> bytes | None:
        if self.raw is not None:
            return self.raw
        return None if self.body is _NONE else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Result:
    status: int
    body: Any
    headers: dict[str, str]


def send(url: str, step: Step, folder: str, topic: str = "") -> Result:
    data = step.data
    if data is not None:
        data = data.replace(b"FOLDER", folder.encode()).replace(b"TOPIC", topic.encode())
    request = urllib.request.Request(
        url + step.path.replace("TOPIC", topic), data=data, method=step.method
    )
    if step.content_type and data is not None:
        request.add_header("Content-Type", step.content_type)
    if step.accept:
        request.add_header("Accept", step.accept)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return _result(response.status, response.read(), response.headers)
    except urllib.error.HTTPError as error:
        return _result(error.code, error.read(), error.headers)


def play(url: str, folder: Path, topic: str) -> list[Result]:
    """All steps in their order, with the names of this run replaced in the answers."""
    (folder / "in.txt").write_text("one\ntwo\n")
    found = []
    for step in STEPS:
        if step.after:
            _wait(url, step, topic)
        answer = send(url, step, str(folder), topic)
        text = json.dumps(comparable(answer.body))
        text = text.replace(str(folder), "FOLDER").replace(topic, "TOPIC").replace(url, "URL")
        found.append(Result(answer.status, json.loads(text), answer.headers))
    return found


def _wait(url: str, step: Step, topic: str) -> None:
    name, *states = step.after
    status = Step("GET", f"{_C}/{name}/status")

    def reached() -> bool:
        answer = send(url, status, "", topic)
        if answer.status != 200:
            return states == ["gone"]
        seen = [answer.body["connector"]["state"], *(t["state"] for t in answer.body["tasks"])]
        return seen == states

    eventually(reached, what=f"{name} to be {states} before {step}")


def _result(status: int, data: bytes, headers: Any) -> Result:
    try:
        body = json.loads(data) if data else None
    except ValueError:
        body = data.decode("utf-8", "replace")
    return Result(status, body, {key.lower(): value for key, value in headers.items()})


_LEFT_OUT = {"worker_id", "version", "trace", "commit", "kafka_cluster_id", "last_modified"}


def comparable(value: Any) -> Any:
    """Without what cannot be the same."""
    if isinstance(value, dict):
        return {
            key: comparable(each)
            for key, each in value.items()
            if key not in _LEFT_OUT and key != "task.class"
        }
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, str):
        return " ".join(re.sub(r"http://127\.0\.0\.1:\d+", "URL", value).split())
    return value


def difference(step: Step, theirs: Result, ours: Result) -> str | None:
    """What differs that should not, between answers from which the names of a run are gone."""
    if step.ours is not None:
        return None if ours.status == step.ours else f"{ours.status} instead of {step.ours}"
    if theirs.status == 500 and 400 <= ours.status < 500:
        # What a user does wrong is no error of the server here.
        return None
    if theirs.status != ours.status:
        return f"{ours.status} instead of {theirs.status}: {ours.body}, not {theirs.body}"
    if not step.status_only and theirs.body != ours.body:
        return f"{ours.body}, not {theirs.body}"
    return None


def _lines(file: str = "FOLDER/in.txt", **more: Any) -> dict[str, Any]:
    return {"connector.class": SOURCE, "file": file, "topic": "TOPIC", **more}


def _out(**more: Any) -> dict[str, Any]:
    return {"connector.class": SINK, "file": "FOLDER/out.txt", "topics": "TOPIC", **more}


_RUNNING = ("lines", "RUNNING", "RUNNING")
_OFFSET = {"partition": {"filename": "FOLDER/in.txt"}, "offset": {"position": 4}}
_KAFKA = {"kafka_topic": "TOPIC", "kafka_partition": 0}


def _offsets(*pairs: Any) -> dict[str, Any]:
    return {"offsets": list(pairs)}


_READING = (
    Step("GET", "/"),
    Step("GET", "/health"),
    Step("GET", "/nothing"),
    Step("DELETE", "/"),
    Step("POST", "/health"),
    Step("GET", _C),
    Step("GET", f"{_C}?expand=status"),
    Step("GET", f"{_C}?expand=nothing"),
    Step("GET", f"{_C}/"),
    *(
        Step("GET", f"{_C}/none{each}")
        for each in (
            "", "/config", "/status", "/tasks", "/tasks-config", "/topics", "/offsets",
            "/tasks/0/status", "/tasks/x/status", "/tasks/-1/status", "/nothing",
        )
    ),
    *(Step("PUT", f"{_C}/none/{each}") for each in ("pause", "resume", "stop", "topics/reset")),
    *(
        Step("POST", f"{_C}/none/{each}")
        for each in (
            "restart", "restart?includeTasks=true", "restart?onlyFailed=true", "tasks/0/restart",
            "restart?includeTasks=true&onlyFailed=true", "restart?includeTasks=maybe",
            "restart?onlyFailed=1", "tasks/x/restart",
        )
    ),
    Step("DELETE", f"{_C}/none"),
    Step("DELETE", f"{_C}/none/offsets"),
    Step("PATCH", f"{_C}/none/offsets", _offsets(_OFFSET)),
    Step("PATCH", f"{_C}/none/config", {"tasks.max": "2"}),
    Step("POST", f"{_C}/none/tasks", []),
    Step("PUT", f"{_C}/none/fence"),
)  # fmt: skip

#: Apache Kafka's worker accepts these, and the connector or its tasks fail later.
_STRICTER = tuple(
    step
    for number, more in enumerate(
        (
            {"topic.creation.groups": "a"},
            {"topic.creation.default.partitions": "0"},
            {**_HOISTED, "transforms.a.predicate": "p"},
        )
    )
    for step in (
        Step("POST", _C, {"name": f"s{number}", "config": _lines(**more)}, ours=400,
             why="what cannot work is refused"),
        Step("DELETE", f"{_C}/s{number}", ours=404, why="it was not created"),
    )
)  # fmt: skip

_CREATING = (
    Step("POST", _C, {}, status_only=True),
    Step("POST", _C, {"name": "x"}, status_only=True),
    Step("POST", _C, {"name": "x", "config": {}}),
    Step("POST", _C, {"name": "x", "config": None}, status_only=True),
    Step("POST", _C, {"config": _lines()}),
    Step("POST", _C, {"name": "", "config": _lines()}),
    Step("POST", _C, {"name": "a", "config": _lines(name="b")}),
    Step("POST", _C, {"name": "a\u0007b", "config": _lines()}),
    Step("POST", _C, {"name": "x", "config": {"connector.class": ""}}, status_only=True),
    Step("POST", _C, {"name": "x", "config": {"connector.class": "NoSuch"}}, status_only=True),
    Step("POST", _C, {"name": "x", "config": {"connector.class": SOURCE}}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"tasks.max": "0"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"tasks.max": "many"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"tasks.max": None})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"tasks.max": {"a": 1}})}, status_only=True),
    Step("POST", _C, {"name": "x", "config": _lines(**{"tasks.max": [1]})}, status_only=True),
    Step("POST", _C, {"name": "x", "config": _lines(**{"errors.tolerance": "some"})}),
    Step("POST", _C, {"name": "x", "config": _lines(transforms="a")}),
    Step("POST", _C, {"name": "x", "config": _lines(transforms="a,a")}),
    Step("POST", _C, {"name": "x", "config": _out(topics="")}),
    Step("POST", _C, {"name": "x", "config": _out(**{"topics.regex": "a.*"})}),
    Step("POST", _C, {"name": "x", "config": _out(topics="", **{"topics.regex": "a("})},
         status_only=True),
    Step("POST", _C, {"name": "x",
                      "config": _out(**{"errors.deadletterqueue.topic.name": "TOPIC"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"exactly.once.support": "required"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"exactly.once.support": "perhaps"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"transaction.boundary": "connector"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"transaction.boundary": "moon"})}),
    Step("POST", _C, {"name": "x",
                      "config": _lines(**{"transaction.boundary.interval.ms": "-1"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"config.action.reload": "never"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"errors.log.enable": "perhaps"})}),
    Step("POST", _C, {"name": "x", "config": _lines(**{
        "transforms": "a", "transforms.a.type": "NoSuchTransform"})}, status_only=True),
    Step("POST", _C, {"name": "x", "config": _lines(**{
        "transforms": "a", "transforms.a.type": _HOIST})}),
    Step("POST", _C, {"name": "x", "config": _lines(**_HOISTED, **{"transforms.a.negate": "true"})},
         status_only=True),
    Step("POST", _C, {"name": "x", "config": _lines(predicates="p")}),
    Step("POST", _C, {"name": "x", "config": _lines(**{"offsets.storage.topic": " "})}),
    Step("POST", _C, {"name": "x", "config": _lines(), "initial_state": "ASLEEP"},
         status_only=True),
    Step("POST", _C, {"name": "x", "config": _lines(), "unknown": 1}, status_only=True),
    Step("POST", _C, [1], status_only=True),
    Step("POST", _C, raw=b"{", status_only=True),
    Step("POST", _C, raw=b"", status_only=True),
    Step("POST", _C, raw=b"null", status_only=True),
    Step("POST", _C, raw=b'{"name": "x"}', content_type="text/plain", status_only=True),
    Step("PUT", f"{_C}/x/config", raw=b"[]", status_only=True),
    Step("PUT", f"{_C}/x/config", raw=b"no", status_only=True),
    Step("PUT", f"{_C}/x/config", {}),
    Step("PUT", f"{_C}/x/config", {"name": "y", **_lines()}),
    Step("PUT", f"{_C}/x/config", _lines(**{"value.converter": "NoSuchConverter"}),
         status_only=True),
    Step("PUT", _C, {}, status_only=True),
    Step("DELETE", _C, status_only=True),
    Step("POST", _C, {"name": " lines ", "config": _lines()}),
    Step("POST", _C, {"name": "lines", "config": _lines()}, after=_RUNNING),
    Step("GET", _C),
    Step("GET", f"{_C}/lines"),
    Step("GET", f"{_C}/lines/config"),
    Step("GET", f"{_C}/lines/tasks"),
    Step("GET", f"{_C}/lines/tasks-config", status_only=True),
    Step("GET", f"{_C}/lines/status"),
    Step("GET", f"{_C}/lines/tasks/0/status"),
    Step("GET", f"{_C}/lines/tasks/7/status"),
    Step("GET", f"{_C}?expand=info&expand=status"),
    Step("GET", f"{_C}?expand=info"),
    Step("PUT", f"{_C}/lines/config", _lines(**{"batch.size": 10})),
    Step("PATCH", f"{_C}/lines/config", {"batch.size": "20", "nobody.reads": "this"},
         after=_RUNNING),
    Step("PATCH", f"{_C}/lines/config", {"batch.size": None, "nobody.reads": None}),
    Step("PATCH", f"{_C}/lines/config", {"batch.size": "lots"}),
    Step("PATCH", f"{_C}/lines/config", {"name": "other"}),
    Step("PATCH", f"{_C}/lines/config", {"topic": None}),
    Step("PATCH", f"{_C}/lines/config", {"connector.class": SINK}),
    Step("PATCH", f"{_C}/lines/config", {}),
    Step("PATCH", f"{_C}/lines/config", raw=b"7", status_only=True),
    Step("GET", f"{_C}/lines/config", after=_RUNNING),
)  # fmt: skip

_STATES = (
    Step("POST", f"{_C}/lines/restart", after=_RUNNING),
    Step("POST", f"{_C}/lines/restart?includeTasks=false&onlyFailed=false", after=_RUNNING),
    Step("POST", f"{_C}/lines/restart?onlyFailed=true", after=_RUNNING),
    Step("POST", f"{_C}/lines/restart?includeTasks=true&onlyFailed=true", after=_RUNNING),
    Step("POST", f"{_C}/lines/restart?includeTasks=true", after=_RUNNING),
    Step("POST", f"{_C}/lines/restart?includeTasks=maybe", after=_RUNNING),
    Step("POST", f"{_C}/lines/tasks/0/restart", after=_RUNNING),
    Step("POST", f"{_C}/lines/tasks/9/restart", after=_RUNNING),
    Step("GET", f"{_C}/lines/restart"),
    Step("POST", f"{_C}/lines/pause"),
    Step("PUT", f"{_C}/lines/pause", after=_RUNNING),
    Step("PUT", f"{_C}/lines/pause", after=("lines", "PAUSED", "PAUSED")),
    Step("GET", f"{_C}/lines/status", after=("lines", "PAUSED", "PAUSED")),
    Step("POST", f"{_C}/lines/tasks/0/restart"),
    Step("PATCH", f"{_C}/lines/offsets", _offsets(_OFFSET), after=("lines", "PAUSED", "PAUSED")),
    Step("DELETE", f"{_C}/lines/offsets"),
    Step("PUT", f"{_C}/lines/resume"),
    Step("PATCH", f"{_C}/lines/offsets", _offsets(_OFFSET), after=_RUNNING),
    Step("GET", f"{_C}/lines/topics"),
    Step("PUT", f"{_C}/lines/topics/reset"),
    Step("GET", f"{_C}/lines/topics", status_only=True),
    Step("PUT", f"{_C}/lines/stop"),
    Step("PUT", f"{_C}/lines/stop", after=("lines", "STOPPED")),
    Step("GET", f"{_C}/lines/status", after=("lines", "STOPPED")),
    Step("GET", f"{_C}/lines/tasks"),
    Step("GET", f"{_C}/lines"),
    Step("POST", f"{_C}/lines/restart"),
    Step("POST", f"{_C}/lines/restart?includeTasks=true"),
    Step("POST", f"{_C}/lines/tasks/0/restart", ours=404, why="a stopped connector has no tasks"),
    Step("PUT", f"{_C}/lines/pause"),
    Step("GET", f"{_C}/lines/status", after=("lines", "PAUSED")),
    Step("PUT", f"{_C}/lines/stop"),
)

_SOURCE_OFFSETS = (
    Step("GET", f"{_C}/lines/offsets", after=("lines", "STOPPED")),
    Step("PATCH", f"{_C}/lines/offsets", {}),
    Step("PATCH", f"{_C}/lines/offsets", _offsets()),
    Step("PATCH", f"{_C}/lines/offsets", {"offsets": None}),
    Step("PATCH", f"{_C}/lines/offsets", {"offsets": {}}, status_only=True),
    Step("PATCH", f"{_C}/lines/offsets", _offsets(1), status_only=True),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({})),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({"partition": None, "offset": None})),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({"partition": {}, "offset": {"position": 1}})),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({"partition": None, "offset": {"position": 1}})),
    Step("PATCH", f"{_C}/lines/offsets", {"offsets": [_OFFSET], "other": 1}, status_only=True),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({**_OFFSET, "other": 1}), status_only=True),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({"partition": {"filename": "z"}, "offset": 3}),
         status_only=True),
    Step("PATCH", f"{_C}/lines/offsets",
         _offsets({"partition": {"filename": "z"}, "offset": {"position": "1"}})),
    Step("PATCH", f"{_C}/lines/offsets",
         _offsets({"partition": {"filename": "z"}, "offset": {"position": -1}})),
    Step("PATCH", f"{_C}/lines/offsets",
         _offsets({"partition": {"filename": "z"}, "offset": {"other": 1}})),
    Step("PATCH", f"{_C}/lines/offsets", _offsets({"partition": {"filename": "z"}, "offset": {}})),
    Step("PATCH", f"{_C}/lines/offsets",
         _offsets({"partition": {"filename": "z"}, "offset": {"position": 1, "x": [1]}})),
    Step("PATCH", f"{_C}/lines/offsets", _offsets(_OFFSET)),
    Step("PATCH", f"{_C}/lines/offsets", _offsets(_OFFSET, _OFFSET)),
    Step("GET", f"{_C}/lines/offsets"),
    Step("PATCH", f"{_C}/lines/offsets",
         _offsets({"partition": {"filename": "FOLDER/in.txt"}, "offset": None})),
    Step("GET", f"{_C}/lines/offsets"),
    Step("DELETE", f"{_C}/lines/offsets"),
    Step("GET", f"{_C}/lines/offsets"),
    Step("PUT", f"{_C}/lines/resume"),
    Step("GET", f"{_C}/lines/status", after=_RUNNING),
)  # fmt: skip

_SINK_OFFSETS = (
    Step("POST", _C, {"name": "out-TOPIC", "config": _out(), "initial_state": "stopped"}),
    Step("GET", f"{_C}/out-TOPIC/status", after=("out-TOPIC", "STOPPED")),
    Step("GET", f"{_C}/out-TOPIC/offsets"),
    *(
        Step("PATCH", f"{_C}/out-TOPIC/offsets", _offsets(each))
        for each in (
            {"partition": None, "offset": {"kafka_offset": 1}},
            {"partition": {}, "offset": {"kafka_offset": 1}},
            {"partition": {"kafka_topic": "TOPIC"}, "offset": {"kafka_offset": 1}},
            {"partition": {**_KAFKA, "kafka_topic": None}, "offset": {"kafka_offset": 1}},
            {"partition": {**_KAFKA, "kafka_topic": 5}, "offset": {"kafka_offset": 1}},
            {"partition": {**_KAFKA, "kafka_partition": None}, "offset": {"kafka_offset": 1}},
            {"partition": {**_KAFKA, "kafka_partition": "x"}, "offset": {"kafka_offset": 1}},
            {"partition": {**_KAFKA, "kafka_partition": 1.5}, "offset": {"kafka_offset": 1}},
            {"partition": _KAFKA, "offset": {}},
            {"partition": _KAFKA, "offset": {"kafka_offset": None}},
            {"partition": _KAFKA, "offset": {"kafka_offset": "x"}},
            {"partition": _KAFKA, "offset": {"kafka_offset": 1.5}},
            {"partition": _KAFKA, "offset": {"other": 1}},
            {"partition": _KAFKA, "offset": {"kafka_offset": 1}},
            {"partition": {**_KAFKA, "kafka_partition": "0"}, "offset": {"kafka_offset": "1"}},
        )
    ),
    Step("GET", f"{_C}/out-TOPIC/offsets"),
    Step("PATCH", f"{_C}/out-TOPIC/offsets", _offsets({"partition": _KAFKA, "offset": None})),
    Step("GET", f"{_C}/out-TOPIC/offsets"),
    Step("DELETE", f"{_C}/out-TOPIC/offsets"),
    Step("DELETE", f"{_C}/out-TOPIC/offsets"),
    Step("PUT", f"{_C}/out-TOPIC/resume"),
    Step("GET", f"{_C}/out-TOPIC/status", after=("out-TOPIC", "RUNNING", "RUNNING")),
    Step("DELETE", f"{_C}/out-TOPIC/offsets"),
    Step("DELETE", f"{_C}/out-TOPIC"),
    Step("GET", f"{_C}/out-TOPIC", after=("out-TOPIC", "gone")),
    Step("DELETE", f"{_C}/out-TOPIC"),
    Step("POST", _C, {"name": "p", "config": _lines(), "initial_state": "PAUSED"}),
    Step("GET", f"{_C}/p/status", after=("p", "PAUSED")),
    Step("DELETE", f"{_C}/p"),
    Step("PUT", f"{_C}/a%20b%2Fc/config", _lines(), ours=201, why=_SLASH),
    Step("GET", f"{_C}/a%20b%2Fc", ours=200, why=_SLASH),
    Step("DELETE", f"{_C}/a%20b%2Fc", ours=204, why=_SLASH),
    Step("PUT", f"{_C}/a%20b/config", _lines()),
    Step("DELETE", f"{_C}/a%20b"),
    Step("PUT", f"{_C}/java/config", _out(**{"consumer.override.group.id": "GROUP"}),
         status_only=True),
    Step("DELETE", f"{_C}/java", status_only=True),
)  # fmt: skip

_PLUGIN_STEPS = (
    Step("GET", _PLUGINS, status_only=True),
    Step("GET", f"{_PLUGINS}?connectorsOnly=false", status_only=True),
    Step("GET", f"{_PLUGINS}?connectorsOnly=perhaps", status_only=True),
    Step("GET", f"{_PLUGINS}/NoSuch/config"),
    Step("GET", f"{_PLUGINS}/{SOURCE}/config", status_only=True),
    Step("GET", f"{_PLUGINS}/FileStreamSource/config", status_only=True),
    Step("GET", f"{_PLUGINS}/FileStreamSource/config?version=99", status_only=True),
    Step("GET", f"{_PLUGINS}/FileStreamSource/config?version=latest", status_only=True),
    Step("GET", f"{_PLUGINS}/FileStreamSource/config?version=%5B1,", status_only=True),
    Step("GET", f"{_PLUGINS}/FileStreamSource/config?version=no", status_only=True),
    Step("GET", f"{_PLUGINS}/FileStreamSource/config?version=", status_only=True),
    Step("POST", _C, {"name": "v", "config": _lines(**{"connector.plugin.version": "99"})},
         status_only=True),
    Step("POST", _C, {"name": "v", "config": _lines(**{"connector.plugin.version": "[9,"})},
         status_only=True),
    Step("POST", _C, {"name": "v", "config": _lines(**{"connector.plugin.version": " "})},
         status_only=True),
    Step("POST", _C, {"name": "v", "config": _lines(**{
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter.plugin.version": "99"})}, status_only=True),
    Step("POST", _C, {"name": "v", "config": _lines(**_HOISTED, **{
        "transforms.a.plugin.version": "99"})}, status_only=True),
    Step("POST", _C, {"name": "v", "config": _lines(**{
        "connector.plugin.version": "[0,)", "transforms": "a", "transforms.a.type": _HOIST,
        "transforms.a.field": "f", "transforms.a.plugin.version": "[0.0.1,99)"})}),
    Step("GET", f"{_C}/v/status", after=("v", "RUNNING", "RUNNING")),
    Step("DELETE", f"{_C}/v"),
    Step("GET", f"{_PLUGINS}/org.apache.kafka.connect.json.JsonConverter/config",
         status_only=True),
    Step("GET", f"{_PLUGINS}/org.apache.kafka.connect.transforms.Filter/config"),
    Step("GET", f"{_PLUGINS}/org.apache.kafka.connect.transforms.predicates.HasHeaderKey/config",
         status_only=True),
    Step("PUT", f"{_PLUGINS}/NoSuch/config/validate", {"connector.class": "NoSuch"},
         status_only=True),
    Step("PUT", f"{_PLUGINS}/FileStreamSource/config/validate", {}, status_only=True),
    Step("PUT", f"{_PLUGINS}/FileStreamSource/config/validate", _lines(name="x"),
         status_only=True),
    Step("PUT", f"{_PLUGINS}/FileStreamSinkConnector/config/validate", _lines(name="x")),
    Step("PUT", f"{_PLUGINS}/{SINK}/config/validate", _lines(name="x")),
    Step("PUT", f"{_PLUGINS}/{SOURCE}/config/validate", raw=b"[]", status_only=True),
    Step("PUT", f"{_PLUGINS}/{SOURCE}/config/validate", raw=b"", status_only=True),
    Step("GET", f"{_PLUGINS}/{SOURCE}/config/validate"),
)  # fmt: skip

_LOGGERS = "/admin/loggers"
_LOGGER_STEPS = (
    Step("GET", _LOGGERS, status_only=True),
    Step("GET", f"{_LOGGERS}/root", status_only=True),
    Step("GET", f"{_LOGGERS}/no.such.logger"),
    Step("PUT", f"{_LOGGERS}/a.new.logger", {"level": "DEBUG"}, status_only=True),
    Step("GET", f"{_LOGGERS}/a.new.logger"),
    Step("PUT", f"{_LOGGERS}/a.new.logger", {"level": "debug"}, status_only=True),
    Step("PUT", f"{_LOGGERS}/a.new.logger", {"level": "LOUD"}),
    Step("PUT", f"{_LOGGERS}/a.new.logger", {}),
    Step("PUT", f"{_LOGGERS}/a.new.logger", {"level": None}),
    Step("PUT", f"{_LOGGERS}/a.new.logger", {"level": 5}, status_only=True),
    Step("PUT", f"{_LOGGERS}/a.new.logger?scope=worker", {"level": "INFO"}, status_only=True),
    Step("PUT", f"{_LOGGERS}/a.new.logger?scope=cluster", {"level": "WARN"}),
    Step("PUT", f"{_LOGGERS}/a.new.logger?scope=CLUSTER", {"level": "WARN"}),
    Step("PUT", f"{_LOGGERS}/a.new.logger?scope=moon", {"level": "ERROR"}, status_only=True),
    Step("PUT", f"{_LOGGERS}/a.new.logger", raw=b"[]", status_only=True),
    Step("POST", f"{_LOGGERS}/a.new.logger", {"level": "INFO"}),
    Step("DELETE", f"{_C}/lines"),
    Step("GET", _C, after=("lines", "gone")),
)

STEPS = (
    *_READING, *_STRICTER, *_CREATING, *_STATES, *_SOURCE_OFFSETS, *_SINK_OFFSETS, *_PLUGIN_STEPS,
    *_LOGGER_STEPS,
)  # fmt: skip
