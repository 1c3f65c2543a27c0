"""Enhanced authentication of MQTT 5: SCRAM messages go to the broker, and its answers back.

The broker has the user's credentials and checks the proof; the proxy never sees a password. It gets
a delegation token of the user, made over the same connection, with which the proxy's clients then
log in: so the broker's ACLs decide, as they do for passwords.
"""

from __future__ import annotations

import asyncio
import re
import struct
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from moldau.client.config import ADMIN_KEYS
from moldau.invariant import of_type
from moldau.security.tls import client_context
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

__all__ = ["METHODS", "RelayedLogin", "Token"]

METHODS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ANSWER_S: Final = 10.0
_FRAME_BYTES_MAX: Final = 1 << 20
#: Of the client's first message: the user's name, with `=2C` and `=3D` for comma and equals sign.
_USER: Final = re.compile(r"[ny],(?:a=[^,]*)?,(?:m=[^,]*,)?n=([^,]+),r=[^,]+(,.*)?")


@dataclass(frozen=True, slots=True)
class Token:
    """Lets the proxy's clients act as a user until it expires."""

    id: str
    hmac: bytes = field(repr=False)
    expires_ms: int

    @property
    def login(self) -> dict[str, str]:
        return {
            "username": self.id,
            "password": b64encode(self.hmac).decode(),
            "tokenauth": "true",
        }


class RelayedLogin:
    """One exchange, over a connection of its own; `close` it."""

    def __init__(self, config: MqttConfig, method: str) -> None:
        """MqttError for a method that is not one of `METHODS`."""
        if method not in METHODS or not config.authenticates:
            offered = "a user name and password"
            if config.authenticates:
                offered = f"{offered}, or with {' or '.join(METHODS)}"
            raise MqttError(
                Reason.BAD_AUTHENTICATION_METHOD,
                f"{method[:100]!r} is no authentication method here: log in with {offered}",
            )
        self.method = method
        self.user = ""
        self._config = config
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._steps = 0

    async def step(self, data: bytes) -> tuple[bool, bytes]:
        """Whether the user is logged in, and what to send to the client.

        Raises MqttError if the broker does not accept it, OSError if it cannot be reached.
        """
        self._steps += 1
        if self._steps == 1:
            self.user = _user_of(data)
            await self._connect()
        elif self._steps > 2:
            raise MqttError(Reason.PROTOCOL_ERROR, "a SCRAM client sends two messages")
        answer = of_type(
            await self._call(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=data), 2),
            SaslAuthenticateResponse,
        )
        if answer.error_code:
            raise MqttError(Reason.NOT_AUTHORIZED, "the broker does not accept the login")
        return self._steps == 2, bytes(answer.auth_bytes)

    async def token(self) -> Token:
        """A delegation token of the user who has logged in."""
        made = of_type(
            await self._call(
                ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest(max_lifetime_ms=-1), 2
            ),
            CreateDelegationTokenResponse,
        )
        if made.error_code:
            name = ErrorCode(made.error_code).name
            raise MqttError(
                Reason.BAD_AUTHENTICATION_METHOD,
                f"the broker makes no delegation token, which {self.method} needs: {name} "
                "(delegation.token.secret.key)",
            )
        return Token(made.token_id, bytes(made.hmac), made.expiry_timestamp_ms)

    async def _connect(self) -> None:
        settings = ADMIN_KEYS.parse(self._config.client_settings("admin"))
        context = None
        if settings["security.protocol"].upper() == "SASL_SSL":
            context = client_context(settings)
        problem: OSError | None = None
        for address in self._config["bootstrap.servers"]:
            host, _, port = address.rpartition(":")
            host = host.strip("[]")
            try:
                self._streams = await asyncio.wait_for(
                    asyncio.open_connection(host, int(port), ssl=context), ANSWER_S
                )
            except (OSError, TimeoutError) as error:
                problem = error if isinstance(error, OSError) else OSError(f"{address}: no answer")
                continue
            await self._handshake()
            return
        raise problem or OSError("bootstrap.servers is empty")

    async def _handshake(self) -> None:
        answer = of_type(
            await self._call(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=self.method), 1),
            SaslHandshakeResponse,
        )
        if answer.error_code:
            raise MqttError(
                Reason.BAD_AUTHENTICATION_METHOD,
                f"the broker has no {self.method}: it has {', '.join(answer.mechanisms)}",
            )

    async def _call(self, key: ApiKey, request: Message, version: int) -> Message:
        if self._streams is None:
            raise MqttError(Reason.PROTOCOL_ERROR, "the login has not begun")
        reader, writer = self._streams
        api = API_BY_KEY[key]
        writer.write(encode_request_frame(api, version, self._steps, "mqtt-proxy", request))
        try:
            async with asyncio.timeout(ANSWER_S):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                if not 0 < size <= _FRAME_BYTES_MAX:
                    raise OSError("the broker's answer is no answer")
                frame = await reader.readexactly(size)
            return decode_response(api, version, frame)[1]
        except (EOFError, WireError, TimeoutError) as error:
            raise OSError(f"the broker ended the login: {error}") from error

    def close(self) -> None:
        if self._streams is not None:
            with suppress(OSError):
                self._streams[1].close()
            self._streams = None


def _user_of(data: bytes) -> str:
    found = _USER.fullmatch(data.decode("utf-8", "replace"))
    if found is None or "tokenauth=" in (found[2] or "").lower():
        raise MqttError(Reason.NOT_AUTHORIZED, "the first message is not a user's SCRAM login")
    return found[1].replace("=2C", ",").replace("=3D", "=")
