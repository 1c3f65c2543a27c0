"""Backend: what every handler of the console uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from moldau.client import AsyncAdmin
from moldau.http.machine.errors import HttpError
from moldau.http.request import Request
from moldau.services.console.audit import Audit
from moldau.services.console.clients import Clients, ClientSet
from moldau.services.console.config import ClusterConfig, ConsoleConfig
from moldau.services.console.login import Login
from moldau.services.console.machine.errors import console_error
from moldau.services.console.values import Values
from moldau.services.console.watcher import Watcher

__all__ = ["Backend", "Call"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request about a cluster, with the clients of its user."""

    cluster: ClusterConfig
    clients: ClientSet
    watcher: Watcher
    values: Values
    user: str

    @property
    def admin(self) -> AsyncAdmin:
        return self.clients.admin


@dataclass(slots=True)
class Backend:
    config: ConsoleConfig
    clients: Clients
    login: Login
    audit: Audit
    watchers: dict[str, Watcher]
    values: dict[str, Values]
    version: str
    streams: int = field(default=0)
    """Answers that are made while they are sent, now."""

    @contextmanager
    def call(self, request: Request) -> Iterator[Call]:
        """The cluster that the path names. Raises HttpError."""
        name = request.path["cluster"]
        with self.clients.of(request.principal, name) as clients:
            yield Call(
                clients.cluster,
                clients,
                self.watchers[name],
                self.values[name],
                request.principal.name,
            )

    @asynccontextmanager
    async def change(
        self, request: Request, action: str, target: str, details: Any = None
    ) -> AsyncIterator[Call]:
        """A call that changes something: refused by a console that is read-only, and recorded with
        how it ended."""
        if self.config["read.only"]:
            raise HttpError(403, "This console is read-only (read.only=true).")
        error: str | None = None
        with self.call(request) as call:
            try:
                yield call
            except Exception as raised:
                refused = raised if isinstance(raised, HttpError) else console_error(raised)
                error = str(raised) if refused is None else refused.message
                raise
            finally:
                self.audit.add(
                    cluster=call.cluster.name,
                    user=str(request.principal),
                    host=request.client_host,
                    action=action,
                    target=target,
                    details=details,
                    error=error,
                )

    def admit(self, request: Request) -> None:
        """Raise now what an answer that is made while it is sent can no longer say: its status goes
        out first. Raises HttpError, also at `streams.max`."""
        if self.streams >= self.config["streams.max"]:
            raise HttpError(
                429, "Too many searches and live views are open. Stop one, or set streams.max."
            )
        with self.call(request):
            pass

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Counts an answer that is made while it is sent."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
