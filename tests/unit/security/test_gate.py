"""What a listener with SASL answers before, during and after the login."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable
from random import Random
from typing import Any

import pytest

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import InvalidRequest, Reply
from moldau.broker.security.authentication.gate import SaslGate
from moldau.broker.security.authentication.listener_login import ListenerLogin, authorized_user
from moldau.broker.security.authentication.plain_server import PlainServer, PlainUsers
from moldau.broker.security.principal_builders import PrincipalOf
from moldau.security.machine.scram import (
    ScramClient,
    ScramLogin,
    ScramMechanism,
    ScramServer,
    make_credential,
)
from moldau.times import ElapsedMs, WallMs
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.framing import decode_response, encode_request_frame, encode_response_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

SHA_256 = ScramMechanism.SCRAM_SHA_256
CREDENTIAL = make_credential(SHA_256, b"pencil", b"salt", 4096)


class Dispatcher:
    """Counts what gets through."""

    def __init__(self) -> None:
        self.principals: list[str] = []

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        if key == ApiKey.API_VERSIONS:
            code = 0 if version <= 4 else ErrorCode.UNSUPPORTED_VERSION
            response = ApiVersionsResponse(error_code=code)
            return encode_response_frame(API_BY_KEY[key], 0, correlation_id, response)
        self.principals.append(connection.principal)
        return b"passed on"

    def is_pipelined(self, frame: memoryview) -> bool:
        return False


class Clock:
    def __init__(self) -> None:
        self.time_ms = 0

    def now_ms(self) -> WallMs:
        return WallMs(1_000_000 + self.time_ms)

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(self.time_ms)

    def call_later(self, delay_ms: int, callback: Any) -> Any:
        raise NotImplementedError


class Expiring(PlainServer):
    """PLAIN with credentials that end, as tokens do."""

    expires_at_ms = 1_000_500  # type: ignore[assignment]


class Stage:
    """One connection to a gate; answers are decoded."""

    def __init__(
        self,
        *,
        delay_ms: int = 0,
        reauthentication_ms: int = 0,
        principal_of: PrincipalOf = authorized_user,
    ) -> None:
        users = PlainUsers({"user_alice": "secret", "user_bob": "bob"})
        self.clock = Clock()
        self.dispatcher = Dispatcher()
        self.connection = ConnectionInfo()
        self.outcomes: list[tuple[str, str | None]] = []
        login = ListenerLogin(
            mechanisms={
                "PLAIN": lambda: PlainServer(users.verify),
                "SCRAM-SHA-256": lambda: ScramServer(
                    SHA_256, nonce="server", find=lambda name, _: ScramLogin(CREDENTIAL, name)
                ),
                "EXPIRING": lambda: Expiring(users.verify),
            },
            clock=self.clock,
            failure_delay_ms=delay_ms,
            principal_of=principal_of,
            reauthentication_ms={"PLAIN": reauthentication_ms},
            on_login=lambda _, mechanism, problem: self.outcomes.append((mechanism, problem)),
        )
        self.gate = SaslGate(login, self.connection, self.dispatcher)

    def send(self, key: ApiKey, version: int, request: Message) -> Any:
        frame = encode_request_frame(API_BY_KEY[key], version, 7, "test", request)
        return self.gate.dispatch(self.connection, memoryview(frame)[4:])

    def call(self, key: ApiKey, version: int, request: Message) -> Any:
        return decoded(key, version, self.send(key, version, request))

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        request = SaslHandshakeRequest(mechanism=mechanism)
        return self.call(ApiKey.SASL_HANDSHAKE, version, request)

    def token(self, token: bytes, version: int = 2) -> Any:
        request = SaslAuthenticateRequest(auth_bytes=token)
        return self.call(ApiKey.SASL_AUTHENTICATE, version, request)

    def refused(self, key: ApiKey, version: int, request: Message) -> tuple[str, Any]:
        """Why the connection is closed, and the last response before that."""
        with pytest.raises(InvalidRequest) as caught:
            self.send(key, version, request)
        reply = caught.value.last_reply
        return str(caught.value), decoded(key, version, reply) if reply else None

    def refused_token(self, token: bytes) -> Any:
        request = SaslAuthenticateRequest(auth_bytes=token)
        return self.refused(ApiKey.SASL_AUTHENTICATE, 2, request)[1]

    @property
    def is_open(self) -> bool:
        try:
            return bool(self.send(ApiKey.METADATA, 9, MetadataRequest()) == b"passed on")
        except InvalidRequest:
            return False


def decoded(key: ApiKey, version: int, frame: bytes) -> Any:
    return decode_response(API_BY_KEY[key], version, frame[4:])[1]


def test_a_login_by_plain_sets_the_principal_and_leaves_the_way() -> None:
    stage = Stage()
    assert stage.connection.login_bytes_max == 524_288
    assert stage.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    handshake = stage.handshake()
    assert (handshake.error_code, handshake.mechanisms) == (
        0, ["PLAIN", "SCRAM-SHA-256", "EXPIRING"],
    )  # fmt: skip
    answer = stage.token(b"\0alice\0secret")
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert stage.is_open
    assert stage.dispatcher.principals == ["User:alice"]
    assert stage.gate.dispatch == stage.dispatcher.dispatch
    assert stage.outcomes == [("PLAIN", None)]


def test_a_login_by_scram_takes_two_rounds() -> None:
    stage = Stage()
    stage.handshake("SCRAM-SHA-256")
    client = ScramClient(SHA_256, username="alice", password="pencil", nonce="client")
    first = client.evaluate(b"")
    assert first is not None
    final = client.evaluate(stage.token(first).auth_bytes)
    assert final is not None
    assert client.evaluate(stage.token(final).auth_bytes) is None
    assert stage.is_open


def test_bare_tokens_follow_an_old_handshake() -> None:
    stage = Stage()
    stage.handshake(version=0)
    reply = stage.gate.dispatch(stage.connection, memoryview(b"\0alice\0secret"))
    assert reply == b"\0\0\0\0"
    assert stage.is_open


def test_a_failed_bare_token_has_no_answer() -> None:
    stage = Stage()
    stage.handshake(version=0)
    with pytest.raises(InvalidRequest) as caught:
        stage.gate.dispatch(stage.connection, memoryview(b"\0alice\0wrong"))
    assert caught.value.last_reply == b""
    assert not stage.is_open


@pytest.mark.parametrize("prepare", [lambda _: None, lambda stage: versions(stage)])
def test_nothing_else_is_answered_before_the_handshake(prepare: Any) -> None:
    stage = Stage()
    prepare(stage)
    problem, response = stage.refused(ApiKey.METADATA, 9, MetadataRequest())
    assert "Unexpected Kafka request of type METADATA during SASL handshake" in problem
    assert response is None
    assert stage.dispatcher.principals == []


def versions(stage: Stage) -> None:
    stage.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())


def test_a_token_before_the_handshake_ends_the_connection() -> None:
    stage = Stage()
    assert stage.refused_token(b"\0alice\0secret") is None
    assert not stage.is_open


def test_api_versions_is_answered_once() -> None:
    stage = Stage()
    versions(stage)
    problem, _ = stage.refused(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    assert "Unexpected ApiVersions" in problem


def test_a_client_may_ask_for_versions_again_in_a_version_that_is_known() -> None:
    stage = Stage()
    newer = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1)
    reply = stage.gate.dispatch(stage.connection, memoryview(newer))
    assert decoded(ApiKey.API_VERSIONS, 0, bytes(reply)).error_code == 35  # type: ignore[arg-type]
    versions(stage)
    assert stage.handshake().error_code == 0


def test_an_unknown_mechanism_is_answered_with_those_that_are_enabled() -> None:
    stage = Stage()
    request = SaslHandshakeRequest(mechanism="GSSAPI")
    _, response = stage.refused(ApiKey.SASL_HANDSHAKE, 1, request)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "EXPIRING"]
    assert not stage.is_open


def test_another_request_during_the_exchange_gets_an_error_of_its_own() -> None:
    stage = Stage()
    stage.handshake()
    topic = CreateTopicsRequest.CreatableTopic(name="t")
    _, response = stage.refused(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic]))
    assert response.topics[0].error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert not stage.is_open


@pytest.mark.parametrize(
    ("mechanism", "token", "message"),
    [
        ("PLAIN", b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        ("PLAIN", b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        ("PLAIN", b"\0\0secret", "Authentication failed: username not specified"),
        ("PLAIN", b"\0alice\0", "Authentication failed: password not specified"),
        (
            "PLAIN", b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
        ("PLAIN", b"x", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (
            "SCRAM-SHA-256", b"x",
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism SCRAM-SHA-256",
        ),
    ],
)  # fmt: skip
def test_a_failed_login_has_kafkas_message(mechanism: str, token: bytes, message: str) -> None:
    stage = Stage()
    stage.handshake(mechanism)
    response = stage.refused_token(token)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == message
    assert not stage.is_open
    assert [outcome for _, outcome in stage.outcomes if outcome is None] == []


def test_a_failure_is_answered_after_a_delay() -> None:
    async def scenario() -> None:
        stage = Stage(delay_ms=1)
        stage.handshake()
        request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
        reply = stage.send(ApiKey.SASL_AUTHENTICATE, 2, request)
        with pytest.raises(InvalidRequest) as caught:
            await reply
        assert caught.value.last_reply
        assert not stage.is_open

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "frame",
    [b"", b"\0", b"\xff" * 20, struct.pack(">hhih", 17, 1, 1, 30_000), b"\0\x24\0\0" + b"\0" * 6],
)
def test_frames_that_are_no_requests_end_the_connection(frame: bytes) -> None:
    stage = Stage()
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            stage.gate.dispatch(stage.connection, memoryview(frame))
    assert stage.dispatcher.principals == []


# Sessions (KIP-368).


def logged_in(**options: Any) -> Stage:
    stage = Stage(**options)
    stage.handshake()
    stage.token(b"\0alice\0secret")
    assert stage.is_open
    return stage


def test_a_session_lasts_no_longer_than_the_setting() -> None:
    stage = Stage(reauthentication_ms=5_000)
    stage.handshake()
    assert stage.token(b"\0alice\0secret").session_lifetime_ms == 5_000
    stage.clock.time_ms = 5_000
    assert stage.is_open
    stage.clock.time_ms = 5_001
    assert not stage.is_open


def test_a_session_lasts_no_longer_than_the_credentials() -> None:
    stage = Stage()
    stage.handshake("EXPIRING")
    assert stage.token(b"\0alice\0secret").session_lifetime_ms == 500


def test_a_client_that_logs_in_again_goes_on() -> None:
    stage = logged_in(reauthentication_ms=5_000)
    stage.clock.time_ms = 6_000
    assert stage.handshake().error_code == 0
    assert stage.token(b"\0alice\0secret").session_lifetime_ms == 5_000
    stage.clock.time_ms = 10_000
    assert stage.is_open
    assert stage.dispatcher.principals == ["User:alice"] * 2


def test_nothing_else_is_answered_while_a_client_logs_in_again() -> None:
    stage = logged_in(reauthentication_ms=5_000)
    stage.clock.time_ms = 4_000
    stage.handshake()
    assert not stage.is_open


def test_a_client_that_logs_in_again_stays_who_it_is() -> None:
    stage = logged_in(reauthentication_ms=5_000)
    stage.handshake()
    response = stage.refused_token(b"\0bob\0bob")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert stage.connection.principal == "User:alice"
    assert not stage.is_open


def test_a_client_that_logs_in_again_keeps_its_mechanism() -> None:
    stage = logged_in(reauthentication_ms=5_000)
    request = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    problem, _ = stage.refused(ApiKey.SASL_HANDSHAKE, 1, request)
    assert "is not supported for re-authentication of mechanism 'PLAIN'" in problem


def test_a_wrong_password_the_second_time_ends_the_connection() -> None:
    stage = logged_in(reauthentication_ms=5_000)
    stage.handshake()
    assert "Invalid username" in stage.refused_token(b"\0alice\0wrong").error_message


def test_logins_in_quick_succession_are_left_to_the_dispatcher() -> None:
    stage = logged_in(reauthentication_ms=5_000)
    stage.handshake()
    stage.token(b"\0alice\0secret")
    stage.clock.time_ms = 999
    request = SaslHandshakeRequest(mechanism="PLAIN")
    assert stage.send(ApiKey.SASL_HANDSHAKE, 1, request) == b"passed on"
    stage.clock.time_ms = 1_000
    assert stage.handshake().error_code == 0


def test_without_an_end_of_the_session_a_handshake_is_left_to_the_dispatcher() -> None:
    stage = logged_in()
    request = SaslHandshakeRequest(mechanism="PLAIN")
    assert stage.send(ApiKey.SASL_HANDSHAKE, 1, request) == b"passed on"


# A class of the user's own.


def test_a_verdict_may_take_a_while() -> None:
    async def verify(username: str, password: str) -> bool:
        await asyncio.sleep(0)
        if username == "broken":
            raise ValueError("password was " + password)
        return password == "secret"

    async def login(token: bytes) -> Any:
        stage = Stage()
        stage.handshake()
        stage.gate._exchange = PlainServer(verify)
        request = SaslAuthenticateRequest(auth_bytes=token)
        reply = stage.send(ApiKey.SASL_AUTHENTICATE, 2, request)
        try:
            return decoded(ApiKey.SASL_AUTHENTICATE, 2, await reply).error_message
        except InvalidRequest as error:
            return decoded(ApiKey.SASL_AUTHENTICATE, 2, error.last_reply).error_message

    assert asyncio.run(login(b"\0alice\0secret")) == ""
    assert "Invalid username" in asyncio.run(login(b"\0alice\0wrong"))
    assert asyncio.run(login(b"\0broken\0secret")) == (
        "Authentication failed: credentials for user could not be verified"
    )


@pytest.mark.parametrize("seed", range(20))
def test_nothing_gets_through_without_a_login(seed: int) -> None:
    """Random frames, and requests in random order with random tokens, from a printed seed."""
    chance = Random(seed)
    for _ in range(100):
        stage = Stage()
        for _ in range(chance.randrange(1, 8)):
            try:
                stage.gate.dispatch(stage.connection, memoryview(some_frame(chance)))
            except InvalidRequest:
                break
        assert stage.dispatcher.principals == []
        assert stage.connection.principal == "User:ANONYMOUS"


def some_frame(chance: Random) -> bytes:
    token = chance.choice(
        [
            chance.randbytes(chance.randrange(40)),
            b"\0alice\0" + chance.randbytes(5),
            b"n,,n=alice,r=" + chance.randbytes(8).hex().encode(),
            b"c=biws,r=xserver,p=" + b"A" * 44,
        ]
    )
    kind, version, request = chance.choice(
        [
            (ApiKey.API_VERSIONS, 0, ApiVersionsRequest()),
            (ApiKey.SASL_HANDSHAKE, chance.randrange(2), SaslHandshakeRequest(mechanism="PLAIN")),
            (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256")),
            (ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=token)),
            (ApiKey.METADATA, 9, MetadataRequest()),
        ]
    )
    frame = bytearray(encode_request_frame(API_BY_KEY[kind], version, 7, "test", request)[4:])
    if chance.random() < 0.3 and frame:
        frame[chance.randrange(len(frame))] = chance.randrange(256)
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(60))
    return bytes(frame[: chance.randrange(len(frame) + 1)] if chance.random() < 0.1 else frame)


def test_the_principal_is_what_the_builder_says() -> None:
    stage = Stage(principal_of=lambda _, mechanism, name: f"Team:{mechanism}.{name}")
    stage.handshake()
    assert stage.token(b"\0alice\0secret").error_code == 0
    assert stage.connection.principal == "Team:PLAIN.alice"


def test_a_client_whose_principal_cannot_be_built_is_refused() -> None:
    def refuse(*_: object) -> str:
        raise LookupError("not in the directory of 10.1.2.3")

    stage = Stage(principal_of=refuse)
    stage.handshake()
    with pytest.raises(InvalidRequest) as caught:
        stage.token(b"\0alice\0secret")
    answer = decoded(ApiKey.SASL_AUTHENTICATE, 2, caught.value.last_reply)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "directory" not in answer.error_message
    assert stage.connection.principal == "User:ANONYMOUS"
