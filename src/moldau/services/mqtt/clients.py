"""The proxy's clients at the broker: one set for itself, and one for each user with a password.

A device's name and password are those of a user of the broker: its set logs in with them, so that
the broker checks the password and its ACLs decide. Sets are shared by devices of the same user and
closed when the last of them is gone and another needs the room.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from moldau.client import AsyncAdmin, AsyncConsumer, AsyncProducer, KafkaError, TopicPartition
from moldau.client.errors import AuthenticationError
from moldau.security.machine.jaas import jaas_line
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.hub import Hub
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.relayed_login import RelayedLogin
from moldau.services.mqtt.shared import SharedReaders

__all__ = ["ClientSet", "Clients"]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


logger = logging.getLogger(__name__)

CLOSE_S: Final = 5.0
LOGIN_S: Final = 20.0
#: A login by a token is used for another device if it lasts so long.
TOKEN_LEFT_MS_MIN: Final = 3_600_000
TOKEN_PAUSE_S: Final = 0.1
Consumer = AsyncConsumer[bytes | None, bytes | None]


class ClientSet:
    """The clients of one user."""

    def __init__(
        self, config: MqttConfig, overlay: dict[str, str], written: dict[TopicPartition, int]
    ) -> None:
        self.written = written
        self._config = config
        self._overlay = overlay
        self.admin = AsyncAdmin(self._settings("admin"))
        self.producer = AsyncProducer({**self._settings("producer"), "client.id": "mqtt-proxy"})
        reader = {**self._settings("consumer"), "client.id": "mqtt-proxy"}
        self.hub = Hub(config, reader, self.admin, written)
        self.shared = SharedReaders(config, self._settings("share"), self.admin)
        self.users = 0
        #: When its login ends; None: never.
        self.expires_ms: int | None = None
        self._started: asyncio.Task[None] | None = None
        self._readers = asyncio.Semaphore(config["catch.up.readers.max"])
        self._free: list[Consumer] = []

    def _settings(self, kind: str) -> dict[str, str]:
        return {**self._config.client_settings(kind), **self._overlay}

    @asynccontextmanager
    async def catch_up_consumer(self) -> AsyncIterator[Consumer]:
        """A consumer without a group, from a bounded pool; it is used again afterwards."""
        async with self._readers:
            if self._free:
                consumer = self._free.pop()
            else:
                consumer = AsyncConsumer(
                    {**self._settings("consumer"), "client.id": "mqtt-catch-up"}
                )
            try:
                yield consumer
                await consumer.unsubscribe()
            except BaseException:
                with suppress(KafkaError):
                    await consumer.close(CLOSE_S)
                raise
            self._free.append(consumer)

    async def start(self) -> None:
        """Log in, once. Raises KafkaError."""
        if self._started is None:
            self._started = asyncio.get_running_loop().create_task(self._start())
        await asyncio.shield(self._started)

    async def _start(self) -> None:
        await self.admin.describe_cluster(timeout=LOGIN_S)
        await self.producer.start()
        self.hub.start()

    @property
    def failed(self) -> bool:
        return (
            self._started is not None
            and self._started.done()
            and (self._started.cancelled() or self._started.exception() is not None)
        )

    async def close(self) -> None:
        if self._started is not None:
            self._started.cancel()
            with suppress(BaseException):
                await self._started
        await self.hub.stop()
        await self.shared.stop()
        for consumer in self._free:
            with suppress(KafkaError):
                await consumer.close(CLOSE_S)
        for close in (self.producer.close, self.admin.close):
            with suppress(KafkaError):
                await close(CLOSE_S)


class Clients:
    """Finds the set of a device's user; `release` it when the device is gone."""

    def __init__(self, config: MqttConfig) -> None:
        self._config = config
        #: The ends of what was written by any set.
        self.written: dict[TopicPartition, int] = {}
        self.own = ClientSet(config, {}, self.written)
        self._of_users: OrderedDict[bytes, ClientSet] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def acquire(self, user: str | None, password: bytes | None) -> ClientSet:
        """Raises MqttError for a user that the broker does not accept."""
        if not self._config.authenticates or (user is None and self._config["allow.anonymous"]):
            self.own.users += 1
            return self.own
        if user is None or password is None:
            raise MqttError(Reason.NOT_AUTHORIZED, "a user name and password are needed")
        key = hashlib.sha256(user.encode() + b"\0" + password).digest()
        found = self._of_users.get(key)
        if found is None or found.failed:
            found = self._add(key, self._login(user, password))
        return await self._entered(key, found)

    async def acquire_relayed(self, login: RelayedLogin) -> ClientSet:
        """For a user whom the broker has accepted itself. Raises MqttError, KafkaError."""
        user = login.user.encode()
        for key, found in reversed(self._of_users.items()):
            if (
                key.startswith(b"token\0" + user + b"\0")
                and not found.failed
                and (found.expires_ms or 0) - _now_ms() > TOKEN_LEFT_MS_MIN
            ):
                return await self._entered(key, found)
        try:
            token = await login.token()
        except OSError as error:
            raise MqttError(Reason.SERVER_UNAVAILABLE, f"the broker is gone: {error}") from error
        key = b"token\0" + user + b"\0" + token.id.encode()
        overlay = {
            "sasl.mechanism": login.method,
            "sasl.jaas.config": jaas_line(login.method, token.login),
        }
        deadline = asyncio.get_running_loop().time() + LOGIN_S
        while True:
            found = self._add(key, overlay)
            found.expires_ms = token.expires_ms
            try:
                return await self._entered(key, found)
            except MqttError:
                # Brokers learn of a new token one after the other.
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(TOKEN_PAUSE_S)

    def _add(self, key: bytes, overlay: dict[str, Any]) -> ClientSet:
        self._make_room()
        found = self._of_users[key] = ClientSet(self._config, overlay, self.written)
        return found

    async def _entered(self, key: bytes, found: ClientSet) -> ClientSet:
        """Count another device; log in if it is the first."""
        self._of_users.move_to_end(key)
        found.users += 1
        try:
            await found.start()
        except BaseException as error:
            found.users -= 1
            if self._of_users.get(key) is found:
                # Guessed passwords are not kept.
                del self._of_users[key]
                self._close_soon(found)
            if isinstance(error, AuthenticationError):
                raise MqttError(
                    Reason.BAD_USER_NAME_OR_PASSWORD, "the broker does not accept the login"
                ) from None
            raise
        return found

    def release(self, found: ClientSet) -> None:
        found.users -= 1

    async def close(self) -> None:
        for each in (self.own, *self._of_users.values()):
            await each.close()
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_S)

    def all(self) -> list[ClientSet]:
        return [self.own, *self._of_users.values()]

    def _make_room(self) -> None:
        if len(self._of_users) < self._config["clients.max"]:
            return
        for key, each in self._of_users.items():
            if each.users == 0:
                del self._of_users[key]
                self._close_soon(each)
                return
        raise MqttError(
            Reason.SERVER_BUSY, "as many users as clients.max allows are connected already"
        )

    def _close_soon(self, found: ClientSet) -> None:
        task = asyncio.get_running_loop().create_task(found.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _login(self, user: str, password: bytes) -> dict[str, Any]:
        mechanism = self._config.mechanism
        try:
            text = password.decode()
        except UnicodeDecodeError:
            raise MqttError(Reason.BAD_USER_NAME_OR_PASSWORD, "the password is not UTF-8") from None
        login = {"username": user, "password": text}
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas_line(mechanism, login)}
