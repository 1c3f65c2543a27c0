"""SaslGate: stands before the dispatcher until the client has logged in and while a session lasts.

    VERSIONS_OR_HANDSHAKE -> HANDSHAKE -> TOKENS -> OPEN
                          \\____________^     ^______| a SaslHandshake begins a re-authentication

Decided here: which requests are answered before the login, as in Kafka: ApiVersions (once, with the
full list), SaslHandshake and SaslAuthenticate, and after a SaslHandshake v0 bare tokens. Anything
else ends the connection, after connection.failed.authentication.delay.ms and with Kafka's error
where there is a place for one.

Invariants: the dispatcher sees no other frame before the principal is known; no answer to a failed
login says whether the user exists; after the login of a session without an end a request costs
nothing here, since the gate is replaced by the dispatcher's own method.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, TypeVar

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver, InvalidRequest, Reply
from moldau.broker.network.machine.refusals import refusal
from moldau.broker.security.authentication.listener_login import ListenerLogin
from moldau.broker.security.authentication.mechanism import ServerMechanism
from moldau.invariant import present
from moldau.security.machine.outcomes import AuthenticationFailed, SaslError
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.framing import RequestHeader, decode_request_header, encode_response_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

__all__ = ["SaslGate"]

#: Kafka does not let a client log in again more often.
REAUTHENTICATION_INTERVAL_MS: Final = 1_000
_HANDSHAKE_KEY: Final = int(ApiKey.SASL_HANDSHAKE).to_bytes(2, "big")
_SIZE: Final = struct.Struct(">i")
#: The size, the correlation id, then the error code of an ApiVersions response.
_ERROR_CODE: Final = slice(8, 10)

_M = TypeVar("_M", bound=Message)

logger = logging.getLogger(__name__)


class _State(Enum):
    VERSIONS_OR_HANDSHAKE = "versions or handshake"
    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    OPEN = "open"
    FAILED = "failed"


class SaslGate:
    """See the module. Implements `FrameReceiver`; one for each connection."""

    __slots__ = (
        "_bare_tokens",
        "_began_ms",
        "_connection",
        "_exchange",
        "_expires_ms",
        "_login",
        "_mechanism",
        "_previous",
        "_receiver",
        "_state",
        "dispatch",
        "is_pipelined",
    )

    def __init__(
        self, login: ListenerLogin, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> None:
        self._login = login
        self._connection = connection
        self._receiver = receiver
        self._state = _State.VERSIONS_OR_HANDSHAKE
        self._exchange: ServerMechanism | None = None
        self._mechanism = ""
        self._bare_tokens = False
        # Of the login before a re-authentication: the mechanism and the principal.
        self._previous: tuple[str, str] | None = None
        self._began_ms: int | None = None
        self._expires_ms: int | None = None
        connection.login_bytes_max = login.receive_bytes_max
        self.is_pipelined = receiver.is_pipelined
        self.dispatch: Callable[[ConnectionInfo, memoryview], Reply | Awaitable[Reply]] = self._take

    def _take(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        match self._state:
            case _State.OPEN:
                return self._pass_on(connection, frame)
            case _State.VERSIONS_OR_HANDSHAKE | _State.HANDSHAKE:
                return self._on_request(frame)
            case _State.TOKENS:
                return self._on_bare_token(frame) if self._bare_tokens else self._on_token(frame)
            case _State.FAILED:
                raise InvalidRequest("a request came after the login had failed")

    # After the login.

    def _pass_on(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        if self._expires_ms is not None:
            now_ms = self._login.clock.elapsed_ms()
            if frame[:2] == _HANDSHAKE_KEY and self._may_log_in_again(now_ms):
                self._began_ms = now_ms
                self._previous = (self._mechanism, connection.principal)
                self._state = _State.HANDSHAKE
                return self._on_request(frame)
            if now_ms > self._expires_ms:
                connection.traffic.expired += 1
                raise InvalidRequest(
                    f"the session of {connection.principal} has expired and the client has not "
                    "logged in again"
                )
        return self._receiver.dispatch(connection, frame)

    def _may_log_in_again(self, now_ms: int) -> bool:
        """If not, the dispatcher answers that the connection is logged in already."""
        began_ms = self._began_ms
        return began_ms is None or now_ms - began_ms >= REAUTHENTICATION_INTERVAL_MS

    # ApiVersions and the handshake.

    def _on_request(self, frame: memoryview) -> Reply | Awaitable[Reply]:
        header = self._header(frame)
        if header.api_key == ApiKey.API_VERSIONS:
            return self._on_api_versions(frame)
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return self._on_handshake(header, frame)
        return self._fail(
            f"Unexpected Kafka request of type {_api_name(header.api_key)} during SASL handshake."
        )

    def _on_api_versions(self, frame: memoryview) -> Reply | Awaitable[Reply]:
        if self._state is not _State.VERSIONS_OR_HANDSHAKE:
            raise InvalidRequest(
                "Unexpected ApiVersions request received during the SASL handshake"
            )
        reply = self._receiver.dispatch(self._connection, frame)
        if isinstance(reply, bytes) and not any(reply[_ERROR_CODE]):
            self._state = _State.HANDSHAKE
        return reply

    def _on_handshake(self, header: RequestHeader, frame: memoryview) -> Reply | Awaitable[Reply]:
        request = self._decode(SaslHandshakeRequest, header, frame)
        mechanism, login = request.mechanism, self._login
        response = SaslHandshakeResponse(mechanisms=list(login.mechanisms))
        self._bare_tokens = header.api_version == 0
        if mechanism not in login.mechanisms:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._fail(
                f"Unsupported SASL mechanism {mechanism[:64]!r}", _encode(header, response)
            )
        if self._previous is not None and mechanism != self._previous[0]:
            return self._fail(
                f"SASL mechanism '{mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._previous[0]}'"
            )
        self._mechanism = mechanism
        self._exchange = login.exchange(mechanism)
        self._state = _State.TOKENS
        return _encode(header, response)

    # Tokens.

    def _on_bare_token(self, frame: memoryview) -> Reply | Awaitable[Reply]:
        def reply(token: bytes, lifetime_ms: int) -> bytes:
            return _SIZE.pack(len(token)) + token

        return self._evaluate(bytes(frame), reply, lambda message: b"")

    def _on_token(self, frame: memoryview) -> Reply | Awaitable[Reply]:
        header = self._header(frame)
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            return self._fail_unexpected(header, frame)
        request = self._decode(SaslAuthenticateRequest, header, frame)

        def reply(token: bytes, lifetime_ms: int) -> bytes:
            return _encode(
                header, SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
            )

        def refuse(message: str) -> bytes:
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            return _encode(header, SaslAuthenticateResponse(error_code=code, error_message=message))

        return self._evaluate(bytes(request.auth_bytes), reply, refuse)

    def _fail_unexpected(
        self, header: RequestHeader, frame: memoryview
    ) -> Reply | Awaitable[Reply]:
        name = _api_name(header.api_key)
        problem = f"Unexpected Kafka request of type {name} during SASL authentication."
        api = API_BY_KEY.get(header.api_key)
        if api is None or not api.min_version <= header.api_version <= api.max_version:
            return self._fail(problem)
        request = self._decode(api.request, header, frame)
        code = ErrorCode.ILLEGAL_SASL_STATE
        response = refusal(api, header.api_version, request, code, problem)
        return self._fail(problem, b"" if response is None else _encode(header, response))

    def _evaluate(
        self,
        token: bytes,
        reply: Callable[[bytes, int], bytes],
        refuse: Callable[[str], bytes],
    ) -> Reply | Awaitable[Reply]:
        exchange = present(self._exchange, "a token came before the handshake")
        try:
            answer = exchange.evaluate(token)
            if isinstance(answer, bytes):
                return reply(answer, self._on_evaluated(exchange))
        except Exception as error:
            return self._refuse(error, refuse)
        return self._evaluate_later(exchange, answer, reply, refuse)

    async def _evaluate_later(
        self,
        exchange: ServerMechanism,
        answer: Awaitable[bytes],
        reply: Callable[[bytes, int], bytes],
        refuse: Callable[[str], bytes],
    ) -> Reply:
        try:
            return reply(await answer, self._on_evaluated(exchange))
        except Exception as error:
            failed = self._refuse(error, refuse)
        if isinstance(failed, Awaitable):
            await failed
        return None

    def _refuse(self, error: Exception, refuse: Callable[[str], bytes]) -> Reply | Awaitable[Reply]:
        if isinstance(error, AuthenticationFailed):
            return self._fail(str(error), refuse(str(error)))
        if not isinstance(error, SaslError):
            logger.error("SASL mechanism %s failed", self._mechanism, exc_info=error)
        what = "authentication" if self._previous is None else "re-authentication"
        # What is wrong may reveal whether a user exists: only the own log has it.
        message = (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )
        return self._fail(f"{message} ({error})", refuse(message))

    def _on_evaluated(self, exchange: ServerMechanism) -> int:
        """Open the gate if the exchange is complete; the session's lifetime for the client."""
        if not exchange.complete:
            return 0
        connection, previous = self._connection, self._previous
        principal = self._login.principal_of(connection, self._mechanism, exchange.authorization_id)
        if previous is not None and principal != previous[1]:
            raise AuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{previous[1].replace(':', '.', 1)}: {principal.replace(':', '.', 1)}"
            )
        lifetime_ms = self._login.session_lifetime_ms(self._mechanism, exchange.expires_at_ms)
        self._exchange = None
        self._state = _State.OPEN
        connection.principal = principal
        connection.token_authenticated = exchange.token_authenticated
        self._login.on_login(connection, self._mechanism, None)
        if lifetime_ms is None:
            self._expires_ms = None
            self.dispatch = self._receiver.dispatch
        else:
            self._expires_ms = self._login.clock.elapsed_ms() + lifetime_ms
        connection.logged_in()
        return lifetime_ms or 0

    # Failures.

    def _fail(self, problem: str, reply: bytes = b"") -> Reply | Awaitable[Reply]:
        """Send the reply, if there is one, and close the connection, both after the delay that
        slows down guessing."""
        self._state = _State.FAILED
        self._exchange = None
        self._login.on_login(self._connection, self._mechanism, problem)
        error = InvalidRequest(f"authentication failed: {problem}", last_reply=reply)
        delay_ms = self._login.failure_delay_ms
        if delay_ms <= 0:
            raise error
        return _raise_later(error, delay_ms)

    def _header(self, frame: memoryview) -> RequestHeader:
        try:
            return decode_request_header(frame)
        except WireError as error:
            raise InvalidRequest(f"a request before the login cannot be read: {error}") from error

    def _decode(self, kind: type[_M], header: RequestHeader, frame: memoryview) -> _M:
        api = API_BY_KEY[ApiKey(header.api_key)]
        if not api.min_version <= header.api_version <= api.max_version:
            raise InvalidRequest(f"Version {header.api_version} is not supported for {api.name}")
        try:
            return decode(kind, header.api_version, frame, header.body_position)
        except WireError as error:
            raise InvalidRequest(f"{api.name} v{header.api_version}: {error}") from error


async def _raise_later(error: InvalidRequest, delay_ms: int) -> Reply:
    await asyncio.sleep(delay_ms / 1000)
    raise error


def _encode(header: RequestHeader, response: Message) -> bytes:
    api = API_BY_KEY[ApiKey(header.api_key)]
    return encode_response_frame(api, header.api_version, header.correlation_id, response)


def _api_name(key: int) -> str:
    api = API_BY_KEY.get(key)
    return f"key {key}" if api is None else ApiKey(key).name
