"""Clients of the console: an admin and a producer for each user and cluster.

Without a login all requests share the console's own clients. With one, each user's requests run
with the user's own credentials, so the broker's ACLs decide what a page shows and does. At most
`clients.max` sets are kept; the least recently used one that nobody is using is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from moldau.client import AsyncAdmin, AsyncConsumer, AsyncProducer
from moldau.client.errors import AuthenticationError, KafkaError
from moldau.http.machine.errors import HttpError, too_many_requests
from moldau.http.request import Principal
from moldau.services.console.config import ClusterConfig, ConsoleConfig
from moldau.services.console.credentials import credentials_of

__all__ = ["ClientSet", "Clients", "Consumer"]

Consumer = AsyncConsumer[bytes | None, bytes | None]
CLOSE_S: Final = 5.0


class ClientSet:
    """The clients of one user at one cluster, each made when it is first needed."""

    def __init__(self, cluster: ClusterConfig, overlay: Mapping[str, Any]) -> None:
        self.cluster = cluster
        self._overlay = dict(overlay)
        self._admin: AsyncAdmin | None = None
        self._producer: AsyncProducer | None = None
        self.memory: dict[str, Any] = {}
        """What handlers keep for this user for a moment, such as the names of topics."""
        self.users = 0

    def settings(self, kind: str) -> dict[str, Any]:
        return {**self.cluster.client_settings(kind), **self._overlay}

    @property
    def admin(self) -> AsyncAdmin:
        if self._admin is None:
            self._admin = AsyncAdmin(self.settings("admin"))
        return self._admin

    @property
    def producer(self) -> AsyncProducer:
        if self._producer is None:
            self._producer = AsyncProducer(self.settings("producer"))
        return self._producer

    @asynccontextmanager
    async def transactional_producer(self, transactional_id: str) -> AsyncIterator[AsyncProducer]:
        producer = AsyncProducer(
            {**self.settings("producer"), "transactional.id": transactional_id}
        )
        try:
            await producer.init_transactions()
            yield producer
        finally:
            with contextlib.suppress(KafkaError):
                await producer.close(CLOSE_S)

    @asynccontextmanager
    async def consumer(self, **settings: str) -> AsyncIterator[Consumer]:
        """A consumer without a group."""
        own = {name.replace("_", "."): value for name, value in settings.items()}
        consumer: Consumer = AsyncConsumer({**self.settings("consumer"), **own})
        try:
            yield consumer
        finally:
            with contextlib.suppress(KafkaError):
                await consumer.close(CLOSE_S)

    async def close(self) -> None:
        for client in (self._producer, self._admin):
            if client is not None:
                with contextlib.suppress(KafkaError):
                    await client.close(CLOSE_S)


class Clients:
    """Finds the set of a request's user."""

    def __init__(self, config: ConsoleConfig) -> None:
        self._config = config
        self._own = {name: ClientSet(each, {}) for name, each in config.clusters.items()}
        self._of_users: OrderedDict[tuple[str, bytes], ClientSet] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        return len(self._own) + len(self._of_users)

    def own(self, cluster: str) -> ClientSet:
        """With the console's own credentials."""
        return self._own[cluster]

    @contextmanager
    def of(self, principal: Principal, cluster: str) -> Iterator[ClientSet]:
        """The set of this user, which stays open until the end of the block. Raises HttpError."""
        config = self._config.clusters.get(cluster)
        if config is None:
            known = ", ".join(self._config.clusters)
            raise HttpError(404, f"There is no cluster {cluster}. Configured: {known}.")
        if principal.secret is None:
            yield self._own[cluster]
            return
        key = (cluster, _hash(principal))
        found = self._of_users.get(key)
        if found is None:
            self._make_room()
            overlay = credentials_of(config.client_settings("admin"), principal)
            found = self._of_users[key] = ClientSet(config, overlay)
        self._of_users.move_to_end(key)
        found.users += 1
        try:
            yield found
        except AuthenticationError:
            if self._of_users.get(key) is found:
                del self._of_users[key]
                self._close_soon(found)
            raise
        finally:
            found.users -= 1

    def forget(self, principal: Principal) -> None:
        """Close what the user has, after a logout."""
        wanted = _hash(principal)
        for key in [key for key in self._of_users if key[1] == wanted]:
            self._close_soon(self._of_users.pop(key))

    async def close(self) -> None:
        for each in (*self._own.values(), *self._of_users.values()):
            await each.close()
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_S)

    def _make_room(self) -> None:
        if len(self._of_users) < self._config["clients.max"]:
            return
        for key, each in self._of_users.items():
            if each.users == 0:
                del self._of_users[key]
                self._close_soon(each)
                return
        raise too_many_requests()

    def _close_soon(self, found: ClientSet) -> None:
        task = asyncio.create_task(found.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _hash(principal: Principal) -> bytes:
    return hashlib.sha256(f"{principal.name}\0{principal.secret}".encode()).digest()
