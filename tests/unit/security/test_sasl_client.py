"""A client's login: the order of its messages, and the errors it ends with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moldau.peers.machine.sessions import due_after_ms
from moldau.security.machine.outcomes import AuthenticationFailed
from moldau.security.machine.scram import ScramMechanism
from moldau.security.sasl_client import Login, PlainLogin, ScramLogin, authenticate
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import SaslAuthenticateResponse, SaslHandshakeResponse


class Server:
    """Answers with what it was given, and keeps what it was sent."""

    def __init__(self, *answers: Message) -> None:
        self.answers = list(answers)
        self.asked: list[ApiKey] = []

    async def __call__(self, key: ApiKey, request: Message) -> Message:
        self.asked.append(key)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def log_in(server: Server, login: Login) -> int:
    return asyncio.run(authenticate(server, login, "host"))


PLAIN = PlainLogin("alice", "secret")
SCRAM = ScramLogin(
    ScramMechanism.SCRAM_SHA_256, "alice", "secret", new_nonce=lambda: "nonce", token_auth=True
)
ACCEPTED = SaslHandshakeResponse(mechanisms=["PLAIN"])


def test_a_login_returns_the_lifetime_of_its_session() -> None:
    server = Server(ACCEPTED, SaslAuthenticateResponse(session_lifetime_ms=7))
    assert log_in(server, PLAIN) == 7
    assert server.asked == [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE]


@pytest.mark.parametrize(
    ("login", "answers", "problem"),
    [
        (
            PLAIN,
            [SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI", "SCRAM"]
            )],
            r"Client SASL mechanism 'PLAIN' not enabled in the server, enabled mechanisms are "
            r"\[GSSAPI, SCRAM\]",
        ),
        (
            PLAIN,
            [SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)],
            "Unexpected handshake request with client mechanism PLAIN",
        ),
        (PLAIN, [SaslHandshakeResponse(error_code=-1)], "error code -1"),
        (
            PLAIN,
            [ACCEPTED, SaslAuthenticateResponse(error_code=58, error_message="not you")],
            "^not you$",
        ),
        (
            PLAIN,
            [ACCEPTED, SaslAuthenticateResponse(error_code=58, error_message=None)],
            "error code 58",
        ),
        # A server that says yes without having proved that it knows the password.
        (SCRAM, [ACCEPTED, SaslAuthenticateResponse()], "when evaluating SASL token"),
        (
            SCRAM,
            [ACCEPTED, SaslAuthenticateResponse(auth_bytes=b"r=other,s=c2FsdA==,i=4096")],
            "does not start with client nonce",
        ),
    ],
)  # fmt: skip
def test_a_login_that_fails(login: Login, answers: list[Any], problem: str) -> None:
    with pytest.raises(AuthenticationFailed, match=problem) as caught:
        log_in(Server(*answers), login)
    assert "secret" not in str(caught.value)


def test_a_server_that_goes_on_and_on_is_left() -> None:
    class Endless:
        mechanism = "ENDLESS"
        complete = False

        async def client(self, host: str) -> Any:
            return self

        def evaluate(self, challenge: bytes) -> bytes:
            return b"more"

    with pytest.raises(AuthenticationFailed, match="did not end"):
        log_in(Server(ACCEPTED, SaslAuthenticateResponse(auth_bytes=b"more")), Endless())


@pytest.mark.parametrize(("chance", "used_ms"), [(0, 8_500), (10, 9_500)])
def test_a_session_is_renewed_before_it_ends(chance: int, used_ms: int) -> None:
    class Chance:
        def randrange(self, stop: int, /) -> int:
            assert chance < stop
            return chance

    assert due_after_ms(10_000, Chance()) == used_ms
