"""Enhanced authentication of one connection (MQTT 5, 4.12): at CONNECT, and again later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.packets import Auth
from moldau.services.mqtt.machine.properties import Properties, Property
from moldau.services.mqtt.machine.reasons import MqttError, Reason, protocol_error
from moldau.services.mqtt.relayed_login import RelayedLogin

__all__ = ["Authentication"]

_CONTINUE: Final = 0x18
_AGAIN: Final = 0x19


class Authentication:
    """What a client sends goes to the broker; `user` is the one that it has accepted."""

    def __init__(self, config: MqttConfig, write: Callable[[bytes], None], method: str) -> None:
        """Raises MqttError for a method that does not exist here."""
        self._config = config
        self._write = write
        self.method = method
        self.login: RelayedLogin | None = RelayedLogin(config, method)
        self.user = ""

    async def begin(self, data: bytes | None) -> Properties | None:
        """With CONNECT's data. Returns what CONNACK has to say once the client is logged in; until
        then an AUTH packet was sent. Raises MqttError."""
        return await self._step(data or b"")

    async def on_auth(self, packet: Auth, *, connected: bool) -> Properties | None:
        """The same, with an AUTH packet."""
        if packet.properties.get(Property.AUTHENTICATION_METHOD) != self.method:
            raise protocol_error("the authentication method is not the one of CONNECT")
        if packet.reason == _AGAIN and connected and self.login is None:
            self.login = RelayedLogin(self._config, self.method)
        elif packet.reason != _CONTINUE or self.login is None:
            raise protocol_error("there is no authentication to be continued")
        return await self._step(packet.properties.get(Property.AUTHENTICATION_DATA, b""))

    async def _step(self, data: bytes) -> Properties | None:
        login = self.login
        if login is None:
            raise protocol_error("there is no authentication to be continued")
        try:
            done, answer = await login.step(data)
        except OSError as error:
            raise MqttError(
                Reason.SERVER_UNAVAILABLE, f"the brokers cannot be reached: {error}"
            ) from error
        properties: Properties = {
            Property.AUTHENTICATION_METHOD: self.method,
            Property.AUTHENTICATION_DATA: answer,
        }
        if not done:
            self._write(encoding.auth(_CONTINUE, properties))
            return None
        if self.user not in ("", login.user):
            raise MqttError(Reason.NOT_AUTHORIZED, "the session belongs to another user")
        self.user = login.user
        return properties

    def finish(self) -> None:
        """The exchange is over."""
        if self.login is not None:
            self.login.close()
            self.login = None
