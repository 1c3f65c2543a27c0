"""A client's login over any connection: SaslHandshake, then SaslAuthenticate until both agree.

Decided here: in which order messages are exchanged, and the error that a failed login is raised
with. How requests travel is the caller's affair (`Ask`). `Login` makes the client's side of one
exchange; fetching a token may take it a while, so it is awaited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from moldau.security.machine.outcomes import AuthenticationFailed, SaslError
from moldau.security.machine.plain import encode_plain
from moldau.security.machine.scram import TOKEN_AUTH, ScramClient, ScramMechanism
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

__all__ = ["Ask", "Login", "PlainLogin", "SaslClient", "ScramLogin", "authenticate"]

#: More messages than any mechanism needs: a server that goes on and on is not one.
ROUNDS_MAX = 16


class SaslClient(Protocol):
    """The client's side of one exchange."""

    @property
    def complete(self) -> bool:
        """Whether nothing more is to be evaluated."""
        ...

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next message, None at the end; the first one answers an empty challenge."""
        ...


class Login(Protocol):
    """How a client proves who it is."""

    @property
    def mechanism(self) -> str: ...

    async def client(self, host: str) -> SaslClient:
        """One exchange with a node; raises AuthenticationFailed if there are no credentials."""
        ...


class Ask(Protocol):
    """Sends one request and returns its response."""

    async def __call__(self, key: ApiKey, request: Message, /) -> Message: ...


async def authenticate(ask: Ask, login: Login, host: str) -> int:
    """Log in; returns the session's lifetime in ms, 0 if it has none.

    Raises AuthenticationFailed with the broker's message, and whatever `ask` raises.
    """
    client = await login.client(host)
    handshake = cast(
        SaslHandshakeResponse,
        await ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=login.mechanism)),
    )
    _check_handshake(handshake, login.mechanism)
    challenge, lifetime_ms = b"", 0
    for _ in range(ROUNDS_MAX):
        token = _evaluate(client, challenge)
        if token is None:
            return lifetime_ms
        answer = cast(
            SaslAuthenticateResponse,
            await ask(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token)),
        )
        if answer.error_code != ErrorCode.NONE:
            raise AuthenticationFailed(
                answer.error_message or f"Authentication failed with error code {answer.error_code}"
            )
        challenge, lifetime_ms = bytes(answer.auth_bytes), answer.session_lifetime_ms
        if client.complete:
            return lifetime_ms
    raise AuthenticationFailed(f"{login.mechanism} did not end after {ROUNDS_MAX} messages")


def _check_handshake(response: SaslHandshakeResponse, mechanism: str) -> None:
    enabled = f"[{', '.join(response.mechanisms)}]"
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AuthenticationFailed(
            f"Client SASL mechanism '{mechanism}' not enabled in the server, "
            f"enabled mechanisms are {enabled}"
        )
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationFailed(
            f"Unexpected handshake request with client mechanism {mechanism}, "
            f"enabled mechanisms are {enabled}"
        )
    if response.error_code != ErrorCode.NONE:
        raise AuthenticationFailed(f"SaslHandshake failed with error code {response.error_code}")


def _evaluate(client: SaslClient, challenge: bytes) -> bytes | None:
    try:
        return client.evaluate(challenge)
    except SaslError as error:
        raise AuthenticationFailed(
            f"An error: ({error}) occurred when evaluating SASL token received from the Kafka "
            "Broker"
        ) from error


class PlainClient:
    def __init__(self, username: str, password: str) -> None:
        self._token = encode_plain(username, password)
        self.complete = False

    def evaluate(self, challenge: bytes) -> bytes:
        self.complete = True
        return self._token


class PlainLogin:
    """Implements `Login`."""

    mechanism = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password

    async def client(self, host: str) -> SaslClient:
        return PlainClient(self._username, self._password)


class ScramLogin:
    """Implements `Login`."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: str,
        *,
        new_nonce: Callable[[], str],
        token_auth: bool = False,
    ) -> None:
        self._kind = mechanism
        self._username = username
        self._password = password
        self._new_nonce = new_nonce
        self._extensions = {TOKEN_AUTH: "true"} if token_auth else {}

    @property
    def mechanism(self) -> str:
        return self._kind.mechanism_name

    async def client(self, host: str) -> SaslClient:
        return ScramClient(
            self._kind,
            username=self._username,
            password=self._password,
            nonce=self._new_nonce(),
            extensions=self._extensions,
        )
