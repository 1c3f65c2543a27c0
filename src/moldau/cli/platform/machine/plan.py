"""Which services `moldau up` runs, in which order, and with which command lines.

Invariants: a service is named by one word, which options and log files use too; a service comes
after all that it needs; the brokers come first and stop last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = [
    "BROKER",
    "KINDS",
    "LOOPBACK",
    "Kind",
    "PlanError",
    "Service",
    "Wanted",
    "chosen",
    "plan",
    "servers_of",
]

BROKER: Final = "broker"
LOOPBACK: Final = "127.0.0.1"
_WILDCARDS: Final = ("0.0.0.0", "[::]", "")


class Kind(NamedTuple):
    """A service that the platform can run."""

    name: str
    title: str
    port: int
    #: The path that answers with 200 when the service works; "" if it does not speak HTTP.
    health: str = ""
    #: Whether it runs if nothing else is said.
    usual: bool = True
    #: A module that must be there, and the extra that brings it.
    module: str = ""
    extra: str = ""
    #: Options that name other services, by these services' names.
    links: tuple[tuple[str, str], ...] = ()


_REGISTRY = ("--schema-registry", "registry")
KINDS: Final = (
    Kind(BROKER, "Broker", 9092),
    Kind("registry", "Schema Registry", 8081, "/subjects", module="uvicorn", extra="schemas"),
    Kind(
        "rest", "REST Proxy", 8082, "/v3/clusters",
        module="uvicorn", extra="schemas", links=(_REGISTRY,),
    ),
    Kind("connect", "Connect", 8083, "/health", module="uvicorn", extra="schemas"),
    Kind("sql", "SQL", 8088, "/healthcheck", module="lmdb", extra="sql", links=(_REGISTRY,)),
    Kind(
        "console", "Control Center", 9021, "/",
        module="uvicorn", extra="schemas",
        links=(_REGISTRY, ("--connect", "connect"), ("--sql", "sql")),
    ),
    Kind("mqtt", "MQTT Proxy", 1883, usual=False, module="uvicorn", extra="schemas"),
)  # fmt: skip


class PlanError(ValueError):
    """What was asked for cannot be; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One process to keep running. `words` follow `moldau` on its command line."""

    name: str
    title: str
    words: tuple[str, ...]
    host: str
    port: int
    #: None where the protocol's own first request shows that it works.
    health: str | None
    needs: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        at = f"{self.host}:{self.port}"
        return at if self.health is None else f"http://{at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user asked for, with every port chosen."""

    kinds: tuple[Kind, ...]
    ports: Mapping[str, int]
    data: str
    brokers: int = 1
    #: The address that everything listens on, and the name under which clients reach the broker.
    host: str = LOOPBACK
    advertised_host: str = LOOPBACK
    #: Addresses of a cluster that runs already, which is used instead of a broker of its own.
    bootstrap_servers: str | None = None
    #: Properties files, by service.
    files: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()


def chosen(
    *, without: Sequence[str] = (), added: Sequence[str] = (), only: Sequence[str] = ()
) -> tuple[Kind, ...]:
    """The services that the options select, in the order in which they start."""
    by_name = {kind.name: kind for kind in KINDS}
    for name in (*without, *added, *only):
        if name not in by_name:
            raise PlanError(f"there is no service {name}. Services are {', '.join(by_name)}")
    names = set(only) or {kind.name for kind in KINDS if kind.usual}
    names = (names | set(added)) - set(without)
    if not names:
        raise PlanError("no service is left to run")
    return tuple(kind for kind in KINDS if kind.name in names)


def plan(wanted: Wanted) -> list[Service]:
    """The services, brokers first."""
    running = {kind.name for kind in wanted.kinds}
    if BROKER not in running and wanted.bootstrap_servers is None:
        raise PlanError("without a broker the services need one: --bootstrap-server HOST:PORT")
    servers = servers_of(wanted)
    made = []
    for kind in wanted.kinds:
        if kind.name == BROKER:
            made.append(_broker(kind, wanted))
            continue
        words = [kind.name, "start"]
        if kind.name in wanted.files:
            words.append(wanted.files[kind.name])
        words += [*_listening(kind, wanted), "--bootstrap-server", servers]
        if kind.name == "console":
            words += ["--override", f"platform.data={wanted.data}"]
        for option, other in kind.links:
            if other in running:
                words += [option, f"http://{_reached_at(wanted.host)}:{wanted.ports[other]}"]
        made.append(
            Service(
                name=kind.name,
                title=kind.title,
                words=tuple(words),
                host=LOOPBACK if _stays_inside(kind, wanted) else _reached_at(wanted.host),
                port=wanted.ports[kind.name],
                health=kind.health or None,
                needs=(BROKER,) if BROKER in running else (),
            )
        )
    return made


def servers_of(wanted: Wanted) -> str:
    """The addresses of the brokers that the services use."""
    if wanted.bootstrap_servers is not None:
        return wanted.bootstrap_servers
    first = wanted.ports[BROKER]
    if wanted.host != LOOPBACK:
        return f"{_reached_at(wanted.host)}:{first}"
    return ",".join(f"{LOOPBACK}:{first + index}" for index in range(wanted.brokers))


def _reached_at(host: str) -> str:
    """Where processes of this machine connect to."""
    return LOOPBACK if host in _WILDCARDS else host


def _stays_inside(kind: Kind, wanted: Wanted) -> bool:
    """The console has the rights of its cluster: without a file that sets a login, nobody else may
    reach it."""
    return kind.name == "console" and kind.name not in wanted.files


def _listening(kind: Kind, wanted: Wanted) -> list[str]:
    port = wanted.ports[kind.name]
    if wanted.host == LOOPBACK or _stays_inside(kind, wanted):
        return ["--port", str(port)]
    protocol = "http" if kind.health else kind.name
    return ["--override", f"listeners={protocol}://{wanted.host}:{port}"]


def _broker(kind: Kind, wanted: Wanted) -> Service:
    port = wanted.ports[BROKER]
    settings = list(wanted.overrides)
    if wanted.host != LOOPBACK:
        if wanted.brokers > 1:
            raise PlanError("several brokers on one machine listen on 127.0.0.1 only")
        settings += [
            f"listeners=PLAINTEXT://{wanted.host}:{port},CONTROLLER://{LOOPBACK}:0",
            f"advertised.listeners=PLAINTEXT://{wanted.advertised_host}:{port}",
        ]
    overrides = [word for each in settings for word in ("--override", each)]
    if wanted.brokers == 1:
        words = ["start", "--port", str(port), "--data", f"{wanted.data}/broker", *overrides]
        title = kind.title
    else:
        words = ["cluster", "--brokers", str(wanted.brokers), "--port", str(port)]
        words += ["--data", f"{wanted.data}/cluster", "--restart", "--logs", *overrides]
        title = f"Cluster of {wanted.brokers}"
    return Service(
        name=BROKER,
        title=title,
        words=tuple(words),
        host=_reached_at(wanted.host),
        port=port,
        health=None,
    )
