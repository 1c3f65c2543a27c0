"""What a Connect server is started with, and what is remembered of one that runs.

Pure: both are plain data with a JSON form. A file that cannot be understood raises ValueError,
which the callers turn into words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from moldau.spark.runtime.machine.errors import SparkRuntimeError

__all__ = ["CONNECTORS", "ServerSettings", "ServerState", "parse_conf"]

_HERE = ("spark://127.0.0.1:", "spark://localhost:")
CONNECTORS = ("auto", "moldau", "kafka")
_T = TypeVar("_T", "ServerSettings", "ServerState")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Kept in the deployment folder, so that a restart is a restart of the same."""

    master: str = "local[*]"
    conf: dict[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    connector: str = "auto"
    host: str = "127.0.0.1"
    port: int = 0  # 0: a free one, the same as before if it still is
    last_port: int = 0
    #: Distributions that executors get beside moldau's own.
    ship: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.connector not in CONNECTORS:
            raise SparkRuntimeError(
                f"connector {self.connector!r} is unknown: choose one of {', '.join(CONNECTORS)}"
            )
        if not 0 <= self.port <= 65535:
            raise SparkRuntimeError(f"port {self.port}: a port is between 0 and 65535")
        if not self.master.strip():
            raise SparkRuntimeError("the master is empty: give local[*] or the cluster's URL")

    @property
    def is_local(self) -> bool:
        """Whether tasks run inside of the server, with this machine's Python."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def on_this_machine(self) -> bool:
        """Whether all executors are here, so that nothing has to listen for others."""
        return self.is_local or self.master.startswith(("local-cluster[", *_HERE))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ServerSettings:
        return _from_json(cls, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A server that was started; `ready` once it has answered."""

    pid: int
    mark: str  # of the process's start, see processes.start_mark
    url: str
    master: str
    log: str
    ready: bool = False
    ui: str | None = None
    #: What reads and writes topics in this server beside our own source: "kafka" or nothing.
    connector: str = "moldau"
    started_ms: int = 0
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ServerState:
        return _from_json(cls, text)


def _from_json(kind: type[_T], text: str) -> _T:
    """Fields that are not known are of another version of moldau and are left out."""
    loaded: Any = json.loads(text)
    if not isinstance(loaded, dict):
        raise ValueError("not a JSON object")
    known = {each.name for each in fields(kind)}
    values = {name: value for name, value in loaded.items() if name in known}
    for name in ("packages", "ship"):
        if name in values:
            values[name] = tuple(values[name])
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from None


def parse_conf(entries: list[str]) -> Mapping[str, str]:
    """Repeated key=value options, as spark-submit takes them."""
    conf: dict[str, str] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key.strip():
            raise SparkRuntimeError(
                f"--conf {entry}: expected key=value, e.g. spark.driver.memory=4g"
            )
        conf[key.strip()] = value
    return conf
