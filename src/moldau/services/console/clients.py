"""Clients of the console: an admin and a producer for each user and cluster.

Without a login all requests share the console's own clients. With one, each user's requests run
with the user's own credentials, so the broker's ACLs decide what a page shows and does. At most
`clients.max` sets are kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from moldau.client import AsyncAdmin, AsyncConsumer, AsyncProducer
from moldau.client.errors import AuthenticationError, KafkaError
from moldau.http.machine.errors import HttpError
from moldau.http.request import Principal
from moldau.http.user_pool import UserPool, credential_hash
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
        self._of_users: UserPool[tuple[str, bytes], ClientSet] = UserPool(
            config["clients.max"], refused=AuthenticationError
        )

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

        def make() -> ClientSet:
            return ClientSet(config, credentials_of(config.client_settings("admin"), principal))

        with self._of_users.using((cluster, credential_hash(principal)), make) as found:
            yield found

    def forget(self, principal: Principal) -> None:
        """Close what the user has, after a logout."""
        wanted = credential_hash(principal)
        for key in self._of_users:
            if key[1] == wanted:
                self._of_users.forget(key)

    async def close(self) -> None:
        for each in self._own.values():
            await each.close()
        await self._of_users.close()
