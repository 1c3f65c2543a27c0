"""Clients of the proxy: producers, an admin and free consumers, for each user that has its own.

Without pass-through all requests share one set, with the proxy's own credentials. With it each user
and password has a set of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from moldau.client import AsyncAdmin, AsyncConsumer, AsyncProducer
from moldau.client.errors import AuthenticationError, KafkaError
from moldau.config.errors import ConfigError
from moldau.http.machine.errors import HttpError
from moldau.http.request import Principal
from moldau.http.user_pool import UserPool, credential_hash
from moldau.security.machine.jaas import PASSWORD_MECHANISMS, jaas_line
from moldau.services.rest.config import RestConfig
from moldau.services.rest.machine.errors import no_consumer_available

__all__ = ["ClientSet", "Clients"]

logger = logging.getLogger(__name__)

Consumer = AsyncConsumer[bytes | None, bytes | None]
CLOSE_S: Final = 5.0


class ClientSet:
    """The clients of one user, each made when it is first needed."""

    def __init__(self, config: RestConfig, overlay: Mapping[str, str]) -> None:
        self._config = config
        self._overlay = dict(overlay)
        self._admin: AsyncAdmin | None = None
        self._producers: list[AsyncProducer] = []
        self._free: list[Consumer] = []
        self._consumers = asyncio.Semaphore(config["simpleconsumer.pool.size.max"])
        self._cluster_id: str | None = None

    def settings(self, kind: str) -> dict[str, str]:
        return {**self._config.client_settings(kind), **self._overlay}

    @property
    def admin(self) -> AsyncAdmin:
        if self._admin is None:
            self._admin = AsyncAdmin(self.settings("admin"))
        return self._admin

    async def cluster_id(self) -> str:
        """Asked for once: a cluster keeps its id."""
        if self._cluster_id is None:
            self._cluster_id = (await self.admin.describe_cluster()).cluster_id
        return self._cluster_id

    def producer(self, topic: str) -> AsyncProducer:
        """All records of a topic go through one producer, so that they stay in order."""
        if not self._producers:
            settings = self.settings("producer")
            for number in range(self._config["producer.pool.size"]):
                name = settings.get("client.id", "rest-producer")
                self._producers.append(
                    AsyncProducer({**settings, "client.id": f"{name}-{number + 1}"})
                )
        return self._producers[hash(topic) % len(self._producers)]

    def new_consumer(self, settings: Mapping[str, str]) -> Consumer:
        return AsyncConsumer({**self.settings("consumer"), **settings})

    @asynccontextmanager
    async def consumer(self, isolation_level: str) -> AsyncIterator[Consumer]:
        """A consumer without a group, from a bounded pool; it is used again afterwards."""
        try:
            async with asyncio.timeout(self._config["simpleconsumer.pool.timeout.ms"] / 1000):
                await self._consumers.acquire()
        except TimeoutError:
            raise no_consumer_available() from None
        try:
            plain = isolation_level == "read_uncommitted"
            if plain and self._free:
                consumer = self._free.pop()
            else:
                consumer = self.new_consumer(
                    {
                        "isolation.level": isolation_level,
                        "enable.auto.commit": "false",
                        "auto.offset.reset": "earliest",
                        "allow.auto.create.topics": "false",
                    }
                )
            try:
                yield consumer
                await consumer.unsubscribe()
            except BaseException:
                await _close(consumer)
                raise
            if plain:
                self._free.append(consumer)
            else:
                await _close(consumer)
        finally:
            self._consumers.release()

    async def close(self) -> None:
        for producer in self._producers:
            with contextlib.suppress(KafkaError):
                await producer.close(CLOSE_S)
        for consumer in self._free:
            await _close(consumer)
        if self._admin is not None:
            with contextlib.suppress(KafkaError):
                await self._admin.close(CLOSE_S)


async def _close(consumer: Consumer) -> None:
    with contextlib.suppress(KafkaError):
        await consumer.close(CLOSE_S)


class Clients:
    """Finds the set of a request's user."""

    def __init__(self, config: RestConfig) -> None:
        self._config = config
        self._own = ClientSet(config, {})
        self._of_users: UserPool[bytes, ClientSet] = UserPool(
            config["clients.max"], refused=AuthenticationError
        )
        if config.passes_on:
            self._mechanism = _mechanism(config)

    @property
    def count(self) -> int:
        return 1 + len(self._of_users)

    @contextmanager
    def of(self, principal: Principal) -> Iterator[ClientSet]:
        """The set of this user, which stays open until the end of the block."""
        if not self._config.passes_on or principal.secret is None:
            yield self._own
            return

        def make() -> ClientSet:
            return ClientSet(self._config, self._credentials(principal))

        with self._of_users.using(credential_hash(principal), make) as found:
            yield found

    async def close(self) -> None:
        await self._own.close()
        await self._of_users.close()

    def _credentials(self, principal: Principal) -> dict[str, str]:
        if principal.method != "basic":
            raise HttpError(
                401,
                "Only a user name and password can be passed on to the broker.",
                error_code=40101,
            )
        login = {"username": principal.name, "password": str(principal.secret)}
        return {
            "sasl.mechanism": self._mechanism,
            "sasl.jaas.config": jaas_line(self._mechanism, login),
        }


def _mechanism(config: RestConfig) -> str:
    """Raises ConfigError if a user name and password could not be passed on."""
    settings: dict[str, Any] = config.client_settings("admin")
    protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()
    mechanism = str(settings.get("sasl.mechanism", "GSSAPI")).upper()
    if not protocol.startswith("SASL") or mechanism not in PASSWORD_MECHANISMS:
        raise ConfigError(
            "confluent.rest.auth.propagate.method=JETTY_AUTH needs a broker that checks passwords: "
            "set client.security.protocol to SASL_PLAINTEXT or SASL_SSL, and client.sasl.mechanism "
            f"to one of {', '.join(PASSWORD_MECHANISMS)}",
            key="confluent.rest.auth.propagate.method",
        )
    return mechanism
