"""Nothing that a client can see or measure says which users exist: the same steps, the same shape.

Timing itself is not asserted: what is counted are the derivations that take the time.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from typing import Any

import pytest

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.security.authentication.credentials import ImageCredentials
from moldau.broker.security.authentication.plain_server import PlainUsers
from moldau.security.machine.outcomes import SaslError
from moldau.security.machine.scram import (
    ScramClient,
    ScramMechanism,
    ScramServer,
    make_credential,
)
from moldau.wire.messages import UserScramCredentialRecord

SHA_512 = ScramMechanism.named("SCRAM-SHA-512")
# As Kafka's tools make it: 26 letters and digits.
SALTS = [b"1q2w3e4r5t6z7u8i9o0pasdfgh", bytes(range(200, 220)), bytes(range(64))]


def credentials(
    salt: bytes, iterations: int = 8192, *, own: bytes = b"secret", token_key: bytes | None = None
) -> ImageCredentials:
    assert SHA_512 is not None
    image = MetadataImage()
    made = make_credential(SHA_512, b"right", salt, iterations)
    image.scram[SHA_512.value, "sam"] = UserScramCredentialRecord(
        name="sam",
        mechanism=SHA_512.value,
        salt=made.salt,
        stored_key=made.stored_key,
        server_key=made.server_key,
        iterations=made.iterations,
    )
    return ImageCredentials(lambda: image, own, token_key=token_key, now_ms=lambda: 0)


def failed_login(source: ImageCredentials, name: str) -> bytes:
    """The server's first message; the second one fails."""
    assert SHA_512 is not None
    mechanism = SHA_512
    server = ScramServer(
        mechanism, nonce="server", find=lambda user, token: source.find(mechanism, user, token)
    )
    client = ScramClient(mechanism, username=name, password="wrong", nonce="client")
    first = client.evaluate(b"")
    assert first is not None
    answer = server.evaluate(first)
    final = client.evaluate(answer)
    assert final is not None
    with pytest.raises(SaslError, match="Invalid client credentials"):
        server.evaluate(final)
    return answer


@pytest.mark.parametrize("salt", SALTS, ids=["Kafka's tools", "moldau", "librdkafka"])
def test_an_unknown_user_gets_a_salt_and_iterations_like_those_of_others(salt: bytes) -> None:
    source = credentials(salt)
    known, unknown = failed_login(source, "sam"), failed_login(source, "nobody")
    assert len(known) == len(unknown)
    assert known.rpartition(b",i=")[2] == unknown.rpartition(b",i=")[2] == b"8192"
    login = source.find(SHA_512, "nobody", False) if SHA_512 else None
    assert login is not None
    assert login.is_fake
    assert login.credential.salt.isalnum() == salt.isalnum()
    assert login.credential.salt != salt


@pytest.mark.parametrize("token_key", [None, b"key"])
@pytest.mark.parametrize("is_token", [False, True])
def test_nodes_and_restarts_give_the_same_answers(token_key: bytes | None, is_token: bool) -> None:
    """A salt that changes from node to node would belong to nobody."""
    assert SHA_512 is not None
    salts = set()
    for own in (b"of node 1", b"of node 2"):
        source = credentials(SALTS[0], own=own, token_key=token_key)
        salts.add(source.find(SHA_512, "nobody", is_token).credential.salt)
    assert len(salts) == 1


def test_a_user_cannot_compute_what_others_would_get() -> None:
    """It takes the keys of all users: another one changes what is made up."""
    assert SHA_512 is not None
    image = MetadataImage()
    salts = set()
    for name in ("sam", "kim"):
        made = make_credential(SHA_512, name.encode(), SALTS[0], 4096)
        image.scram[SHA_512.value, name] = UserScramCredentialRecord(
            name=name,
            mechanism=SHA_512.value,
            salt=made.salt,
            stored_key=made.stored_key,
            server_key=made.server_key,
            iterations=made.iterations,
        )
        source = ImageCredentials(lambda: image, b"secret", now_ms=lambda: 0)
        salts.add(source.find(SHA_512, "nobody", False).credential.salt)
    assert len(salts) == 2


def test_an_unknown_user_costs_the_same_derivations(monkeypatch: pytest.MonkeyPatch) -> None:
    source = credentials(SALTS[0])
    calls: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return function(*arguments, **named)

        return call

    for module, name in ((hmac, "digest"), (hashlib, "pbkdf2_hmac"), (hmac, "compare_digest")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    counts = []
    for user in ("sam", "nobody"):
        calls.clear()
        failed_login(source, user)
        counts.append(dict(calls))
    assert counts[0] == counts[1]


def test_plain_compares_for_an_unknown_user_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    users = PlainUsers({"user_alice": "alice-secret"})
    assert not users.verify("alice", "wrong")
    assert not users.verify("nobody", "wrong")
    assert len(compared) == 2
