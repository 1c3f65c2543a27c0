"""SCRAM exchanges: the original's vectors, and what an attacker may send."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from moldau.security.machine.outcomes import AuthenticationFailed, SaslError
from moldau.security.machine.scram import (
    ScramClient,
    ScramLogin,
    ScramMechanism,
    ScramServer,
    fake_credential,
    make_credential,
    salted_password,
)

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "security"
needs_vectors = pytest.mark.skipif(not VECTORS.is_dir(), reason=f"{VECTORS} is not here")
SHA_256 = ScramMechanism.SCRAM_SHA_256


def vectors(name: str) -> list[dict[str, Any]]:
    path = VECTORS / name
    return json.loads(path.read_text()) if path.exists() else []


def mechanism(name: str) -> ScramMechanism:
    found = ScramMechanism.named(name)
    assert found is not None
    return found


@needs_vectors
@pytest.mark.parametrize("case", vectors("scram-credentials.json"))
def test_credentials_are_those_of_the_original(case: dict[str, Any]) -> None:
    kind, password = mechanism(case["mechanism"]), case["password"].encode()
    salt, iterations = base64.b64decode(case["salt"]), case["iterations"]
    salted = salted_password(kind, password, salt, iterations)
    made = make_credential(kind, password, salt, iterations)
    assert base64.b64encode(salted).decode() == case["salted_password"]
    assert base64.b64encode(made.stored_key).decode() == case["stored_key"]
    assert base64.b64encode(made.server_key).decode() == case["server_key"]


@needs_vectors
@pytest.mark.parametrize("case", vectors("scram-exchange.json"))
def test_exchanges_are_those_of_the_original(case: dict[str, Any]) -> None:
    kind = mechanism(case["mechanism"])
    credential = make_credential(
        kind, case["password"].encode(), base64.b64decode(case["salt"]), case["iterations"]
    )
    asked: list[tuple[str, bool]] = []

    def find(name: str, is_token: bool) -> ScramLogin:
        asked.append((name, is_token))
        return ScramLogin(credential, "owner" if is_token else name)

    extensions = {"tokenauth": "true"} if case["token_auth"] else {}
    client = ScramClient(
        kind,
        username=case["username"],
        password=case["password"],
        nonce=case["client_nonce"],
        extensions=extensions,
    )
    server = ScramServer(kind, nonce=case["server_nonce_suffix"], find=find)
    client_first = client.evaluate(b"")
    assert client_first is not None
    assert client_first.decode() == case["client_first"]
    server_first = server.evaluate(client_first)
    assert server_first.decode() == case["server_first"]
    client_final = client.evaluate(server_first)
    assert client_final is not None
    assert client_final.decode() == case["client_final"]
    server_final = server.evaluate(client_final)
    assert server_final.decode() == case["server_final"]
    assert client.evaluate(server_final) is None
    assert client.complete
    assert server.complete
    assert asked == [(case["username"], case["token_auth"])]
    assert server.authorization_id == ("owner" if case["token_auth"] else case["username"])
    assert server.token_authenticated == case["token_auth"]


def server(*, password: str = "pencil", iterations: int = 4096) -> ScramServer:
    credential = make_credential(SHA_256, password.encode(), b"salt", iterations)
    return ScramServer(SHA_256, nonce="server", find=lambda name, _: ScramLogin(credential, name))


def client(password: str = "pencil") -> ScramClient:
    return ScramClient(SHA_256, username="user", password=password, nonce="client")


def first_two(a_server: ScramServer, a_client: ScramClient) -> bytes:
    """The exchange up to the client's final message."""
    first = a_client.evaluate(b"")
    assert first is not None
    final = a_client.evaluate(a_server.evaluate(first))
    assert final is not None
    return final


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"y,,n=user,r=client", id="client could bind a channel"),
        pytest.param(b"p=tls-unique,,n=user,r=client", id="channel binding"),
        pytest.param(b"n,,n=,r=client", id="no name"),
        pytest.param(b"n,,n=user,r=", id="no nonce"),
        pytest.param(b"n,,n=us=er,r=client", id="bad escape"),
        pytest.param(b"n,,n=us\0er,r=client", id="NUL"),
        pytest.param(b"n,,n=user,r=a b", id="blank in the nonce"),
        pytest.param(b"n,,n=user,r=" + b"x" * 2000, id="long nonce"),
        pytest.param(b"n,,m=x,n=user,r=client", id="mandatory extension"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"c=biws,r=clientserver,p=AAAA", id="final message first"),
    ],
)
def test_a_first_message_that_does_not_fit_ends_the_exchange(first: bytes) -> None:
    a_server = server()
    with pytest.raises(SaslError):
        a_server.evaluate(first)
    with pytest.raises(SaslError):
        a_server.evaluate(b"n,,n=user,r=client")
    assert not a_server.complete


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"r=clientserver", b"r=client", id="own nonce only"),
        pytest.param(b"r=clientserver", b"r=clientserverx", id="longer nonce"),
        pytest.param(b"c=biws", b"c=cD10bHMtdW5pcXVlLCw=", id="channel binding"),
        pytest.param(b"c=biws", b"c=eSws", id="downgraded channel binding flag"),
        pytest.param(b",p=", b",p=AAAA", id="longer proof"),
        pytest.param(b",p=", b",x=", id="no proof"),
    ],
)
def test_a_final_message_that_was_tampered_with_ends_the_exchange(old: bytes, new: bytes) -> None:
    a_server = server()
    final = first_two(a_server, client())
    assert old in final
    with pytest.raises(SaslError):
        a_server.evaluate(final.replace(old, new))
    assert not a_server.complete


def test_a_final_message_of_another_exchange_is_of_no_use() -> None:
    recorded = first_two(server(), client())
    credential = make_credential(SHA_256, b"pencil", b"salt", 4096)
    other = ScramServer(SHA_256, nonce="other", find=lambda name, _: ScramLogin(credential, name))
    other.evaluate(b"n,,n=user,r=client")
    with pytest.raises(SaslError, match="nonce"):
        other.evaluate(recorded)


def test_a_wrong_password_is_refused() -> None:
    a_server = server()
    with pytest.raises(SaslError, match="Invalid client credentials"):
        a_server.evaluate(first_two(a_server, client("pen")))


def test_nothing_follows_a_complete_exchange() -> None:
    a_server = server()
    final = first_two(a_server, client())
    a_server.evaluate(final)
    assert a_server.complete
    with pytest.raises(SaslError):
        a_server.evaluate(final)
    assert not a_server.complete


def test_an_unknown_user_looks_like_a_wrong_password() -> None:
    secret = b"secret of this process"

    def find(name: str, is_token: bool) -> ScramLogin:
        return ScramLogin(fake_credential(SHA_256, name, secret), name, is_fake=True)

    answers = []
    for _ in range(2):
        a_server = ScramServer(SHA_256, nonce="server", find=find)
        a_client = client()
        first = a_client.evaluate(b"")
        assert first is not None
        answers.append(a_server.evaluate(first))
        final = a_client.evaluate(answers[-1])
        assert final is not None
        with pytest.raises(SaslError, match="Invalid client credentials"):
            a_server.evaluate(final)
    assert answers[0] == answers[1]
    assert fake_credential(SHA_256, "a", secret).salt != fake_credential(SHA_256, "b", secret).salt


def test_nobody_acts_for_somebody_else() -> None:
    with pytest.raises(AuthenticationFailed, match="different from username"):
        server().evaluate(b"n,a=admin,n=user,r=client")
    assert server().evaluate(b"n,a=user,n=user,r=client")


def test_a_stored_credential_with_too_few_iterations_is_refused() -> None:
    with pytest.raises(SaslError, match="less than the minimum"):
        server(iterations=1).evaluate(b"n,,n=user,r=client")


@pytest.mark.parametrize(
    ("challenge", "problem"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "nonce"),
        (b"r=client,s=c2FsdA==,i=4096", "nonce"),
        (b"r=clientserver,s=c2FsdA==,i=1", "less than the minimum"),
        (b"r=clientserver,s=c2FsdA==,i=999999999", "more than the maximum"),
        (b"r=clientserver,s=?,i=4096", "format"),
        (b"m=x,r=clientserver,s=c2FsdA==,i=4096", "format"),
        (b"e=other-error", "format"),
        (b"", "format"),
    ],
)
def test_a_client_refuses_a_server_that_cheats(challenge: bytes, problem: str) -> None:
    a_client = client()
    a_client.evaluate(b"")
    with pytest.raises(SaslError, match=problem):
        a_client.evaluate(challenge)


@pytest.mark.parametrize(
    ("final", "problem"),
    [
        (b"v=AAAA", "signature"),
        (b"e=invalid-proof", "failed with error: invalid-proof"),
        (b"", "format"),
    ],
)
def test_a_client_recognises_a_server_that_does_not_know_the_password(
    final: bytes, problem: str
) -> None:
    a_client = client()
    first_two(server(), a_client)
    with pytest.raises(SaslError, match=problem):
        a_client.evaluate(final)
    assert not a_client.complete


def test_secrets_are_not_printed() -> None:
    credential = make_credential(SHA_256, b"pencil", b"salt", 4096)
    assert repr(credential) == "ScramCredential(iterations=4096)"
    assert "salt" not in repr(ScramLogin(credential, "user"))
