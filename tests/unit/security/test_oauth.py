"""OAUTHBEARER: messages, claims, signatures against a key set, and the client's tokens."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from moldau.broker.security.authentication.oauth_server import OAuthServer
from moldau.client.config import PRODUCER_KEYS
from moldau.clock import LoopClock
from moldau.config import ConfigError
from moldau.security.jwt_keys import JwtValidator
from moldau.security.logins import login_of
from moldau.security.machine.oauth import (
    ClaimRules,
    InvalidToken,
    OAuthClient,
    OAuthToken,
    check_claims,
    encode_oauth,
    parse_oauth,
)
from moldau.security.machine.outcomes import AuthenticationFailed, SaslError
from moldau.security.oauth_login import OAuthLogin, RefreshRules
from support.issuer import AUDIENCE, ISSUER, Issuer

RULES = ClaimRules(expected_issuer=ISSUER, expected_audience=(AUDIENCE,))
NOW_S = 1_000_000


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


def validator(source: str, rules: ClaimRules = RULES) -> JwtValidator:
    return JwtValidator(source, rules, clock=LoopClock(), retry_backoff_ms=0)


def test_a_message_is_read_back() -> None:
    message = parse_oauth(encode_oauth("a.b.c", {"traceId": "123"}))
    assert message == ("a.b.c", "", {"traceId": "123"})
    assert "a.b.c" not in repr(message)
    assert parse_oauth(b"n,a=bob,\x01auth=bEaReR  x\x01\x01").authorization_id == "bob"


@pytest.mark.parametrize(
    "token",
    [
        b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Bearer x\x01", b"n,,\x01auth=Basic x\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01", b"n,,\x01auth=Bearer \x01\x01", b"\xff",
        b"n,,\x01auth=Bearer x\x01evil\x01\x01",
    ],
)  # fmt: skip
def test_other_messages_are_refused(token: bytes) -> None:
    with pytest.raises(SaslError):
        parse_oauth(token)


def claims(**changes: Any) -> dict[str, Any]:
    values = {
        "sub": "olga", "iss": ISSUER, "aud": [AUDIENCE, "x"], "iat": NOW_S - 1, "exp": NOW_S + 60,
    }  # fmt: skip
    return {k: v for k, v in {**values, **changes}.items() if v is not None}


def test_claims_that_are_accepted() -> None:
    token = check_claims(claims(scope="a b"), RULES, NOW_S * 1000)
    assert token == OAuthToken("olga", (NOW_S + 60) * 1000, frozenset({"a", "b"}))
    rules = RULES._replace(sub_claim_name="client", scope_claim_name="scp")
    token = check_claims(claims(client="svc", scp=["x"]), rules, NOW_S * 1000)
    assert token.principal_name == "svc"
    assert check_claims(claims(nbf=NOW_S + 29), RULES, NOW_S * 1000)
    assert check_claims(claims(aud=None), ClaimRules(), NOW_S * 1000)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"exp": None}, "no expiration time"),
        ({"iat": None}, "no issue time"),
        ({"exp": NOW_S}, "expired"),
        ({"exp": "soon"}, "no time"),
        ({"exp": True}, "no time"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"iss": "https://evil.test"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"sub": None}, "no subject"),
        ({"sub": " "}, "no subject"),
        ({"sub": 7}, "no subject"),
        ({"scope": [1]}, "scopes"),
    ],
)
def test_claims_that_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidToken, match=problem):
        check_claims(claims(**changes), RULES, NOW_S * 1000)


def test_a_token_for_an_audience_is_of_no_use_where_none_is_expected() -> None:
    with pytest.raises(InvalidToken, match="audience"):
        check_claims(claims(), ClaimRules(), NOW_S * 1000)


def test_signatures(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(issuer.key_set()))
    good = issuer.token()

    async def scenario() -> None:
        by_file, by_url = validator(f"file:{path}"), validator(issuer.jwks_url)
        for each in (by_file, by_url):
            assert (await each.validate(good)).principal_name == "olga"
            for bad in forged(good, issuer):
                with pytest.raises(InvalidToken) as caught:
                    await each.validate(bad)
                assert good[:20] not in str(caught.value)

    asyncio.run(scenario())


def forged(good: str, issuer: Issuer) -> list[str]:
    head, body, signature = good.split(".")
    other = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**other, "sub": "admin"}).encode()).decode()
    public = issuer.key_set()["keys"][0]
    with Issuer() as stranger:
        foreign = stranger.token(key_id=issuer.key_id)
    none = jwt.encode(other, None, algorithm="none", headers={"kid": issuer.key_id})
    # The public key as a shared secret: the classic confusion of algorithms.
    secret = public["n"].encode()
    confused = jwt.encode(other, secret, algorithm="HS256", headers={"kid": issuer.key_id})
    return [
        f"{head}.{changed.rstrip('=')}.{signature}", f"{head}.{body}.", f"{head}.{body}", "x", "",
        foreign, none, confused, issuer.token(key_id="unknown"),
        issuer.token(exp=1), issuer.token(aud="other"),
    ]  # fmt: skip


def test_a_new_key_is_fetched_when_a_token_names_it(issuer: Issuer) -> None:
    async def scenario() -> None:
        checking = validator(issuer.jwks_url)
        await checking.validate(issuer.token())
        issuer.rotate()
        assert (await checking.validate(issuer.token("new"))).principal_name == "new"

    asyncio.run(scenario())


def test_made_up_key_ids_do_not_become_requests(issuer: Issuer) -> None:
    async def scenario() -> None:
        checking = JwtValidator(issuer.jwks_url, RULES, clock=LoopClock(), retry_backoff_ms=60_000)
        for number in range(50):
            with pytest.raises(InvalidToken):
                await checking.validate(issuer.token(key_id=f"made-up-{number}"))
        assert issuer.jwks_requests == 1

    asyncio.run(scenario())


def test_a_key_set_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"key set cannot be used.*missing"):
        validator(str(tmp_path / "missing.json"))
    path = tmp_path / "bad.json"
    path.write_text("{}")
    with pytest.raises(ConfigError, match="no usable key set"):
        validator(str(path))


def test_the_server_answers_with_the_error_first() -> None:
    def refuse(token: str) -> OAuthToken:
        raise InvalidToken("because")

    async def scenario() -> None:
        server, client = OAuthServer(refuse), OAuthClient("x.y.z")
        first = client.evaluate(b"")
        assert first is not None
        challenge = await server.evaluate(first)  # type: ignore[misc]
        assert challenge == b'{"status":"invalid_token"}'
        last = client.evaluate(challenge)
        assert last == b"\x01"
        with pytest.raises(AuthenticationFailed, match=r'\{"status":"invalid_token"\}'):
            server.evaluate(last)
        assert not server.complete

    asyncio.run(scenario())


def test_an_authorization_id_must_be_the_tokens_own() -> None:
    async def scenario() -> None:
        server = OAuthServer(lambda token: OAuthToken("olga", None))
        with pytest.raises(AuthenticationFailed, match="different from the token's"):
            await server.evaluate(b"n,a=admin,\x01auth=Bearer x\x01\x01")  # type: ignore[misc]

    asyncio.run(scenario())


# The client.


def values(**changes: Any) -> dict[str, Any]:
    line = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {};"
    options = changes.pop("options", "")
    texts = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": line.format(options), **changes}
    return PRODUCER_KEYS.parse({"bootstrap.servers": "x:1", **texts})


def first_message(login: Any) -> Any:
    async def scenario() -> Any:
        return parse_oauth((await login.client("host")).evaluate(b""))

    return asyncio.run(scenario())


def test_client_credentials(issuer: Issuer) -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": issuer.token_url}
    options = 'clientId="app" clientSecret="app-secret" scope="all" extension_traceId="1"'
    message = first_message(login_of(values(options=options, **url)))
    assert message.extensions == {"traceId": "1"}
    assert jwt.decode(message.token, options={"verify_signature": False})["sub"] == "app"
    assert issuer.requests[-1] == {"grant_type": ["client_credentials"], "scope": ["all"]}
    prefix = "sasl.oauthbearer.client.credentials.client"
    keys = {f"{prefix}.id": "app", f"{prefix}.secret": "app-secret"}
    assert first_message(login_of(values(**url, **keys))).token
    with pytest.raises(AuthenticationFailed, match="answered 401") as caught:
        first_message(login_of(values(**url, **keys | {f"{prefix}.secret": "hunter2"})))
    assert "hunter2" not in str(caught.value)


ASSERTION = "sasl.oauthbearer.assertion"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
JWT_BEARER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"


def signing_key(issuer: Issuer, path: Path, algorithm: str, passphrase: str | None = None) -> None:
    """The issuer knows the public key as the one of `app`."""
    key: Any
    if algorithm == "RS256":
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    else:
        key = ec.generate_private_key(ec.SECP256R1())
    encryption: Any = serialization.NoEncryption()
    if passphrase is not None:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    issuer.signers["app"] = key.public_key()


def assertion_values(issuer: Issuer, path: Path, **changes: Any) -> dict[str, Any]:
    keys = {
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
        f"{ASSERTION}.private.key.file": str(path),
        f"{ASSERTION}.claim.iss": "app",
        f"{ASSERTION}.claim.sub": "ann",
        f"{ASSERTION}.claim.aud": issuer.url,
    }
    return values(**keys | changes)


def subject(message: Any) -> str:
    return str(jwt.decode(message.token, options={"verify_signature": False})["sub"])


def test_a_client_shows_an_assertion_instead_of_a_secret(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    signing_key(issuer, path, "RS256")
    settings = {
        "sasl.oauthbearer.client.credentials.client.id": "app",
        "sasl.oauthbearer.scope": " all ",
        f"{ASSERTION}.claim.jti.include": "true",
    }
    login = login_of(assertion_values(issuer, path, **settings))
    assert subject(first_message(login)) == "ann"
    sent = issuer.requests[-1]
    assertion = sent.pop("client_assertion")[0]
    assert sent == {
        "grant_type": ["client_credentials"],
        "client_assertion_type": ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"],
        "client_id": ["app"],
        "scope": ["all"],
    }
    claims = jwt.decode(assertion, options={"verify_signature": False})
    assert claims.keys() == {"iss", "sub", "aud", "iat", "exp", "nbf", "jti"}
    assert (claims["exp"] - claims["iat"], claims["iat"] - claims["nbf"]) == (300, 60)


def test_an_assertion_is_exchanged_for_a_token(issuer: Issuer, tmp_path: Path) -> None:
    path, template = tmp_path / "key.pem", tmp_path / "template.json"
    signing_key(issuer, path, "ES256", "key-secret")
    template.write_text('{"header": {"kid": "k1", "alg": "none"}, "payload": {"sub": "tom"}}')
    settings = {
        RETRIEVER: JWT_BEARER,
        f"{ASSERTION}.algorithm": "ES256",
        f"{ASSERTION}.private.key.passphrase": "key-secret",
        f"{ASSERTION}.template.file": str(template),
    }
    assert subject(first_message(login_of(assertion_values(issuer, path, **settings)))) == "tom"
    sent = issuer.requests[-1]
    assertion = sent.pop("assertion")[0]
    assert sent == {"grant_type": ["urn:ietf:params:oauth:grant-type:jwt-bearer"]}
    assert jwt.get_unverified_header(assertion) == {"alg": "ES256", "typ": "JWT", "kid": "k1"}
    # The same assertion from a file.
    saved = tmp_path / "assertion"
    saved.write_text(assertion + "\n")
    of_file = values(
        **{
            "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
            RETRIEVER: JWT_BEARER,
            f"{ASSERTION}.file": str(saved),
        }
    )
    assert subject(first_message(login_of(of_file))) == "tom"
    wrong = settings | {f"{ASSERTION}.private.key.passphrase": "hunter2"}
    login = login_of(assertion_values(issuer, path, **wrong))
    with pytest.raises(AuthenticationFailed, match="cannot sign with ES256") as caught:
        first_message(login)
    assert "hunter2" not in str(caught.value)


def test_an_assertion_needs_a_key(issuer: Issuer) -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": issuer.token_url}
    with pytest.raises(ConfigError, match=r"assertion\.private\.key\.file is missing"):
        login_of(values(**url, **{RETRIEVER: JWT_BEARER}))


class Retriever:
    def retrieve(self) -> str:
        with Issuer() as issuer:
            return issuer.token("retrieved")


def test_a_token_from_a_retriever_of_ones_own() -> None:
    settings = values() | {RETRIEVER: f"{__name__}.Retriever"}
    assert subject(first_message(login_of(settings))) == "retrieved"


def test_a_token_from_a_file(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(issuer.token() + "\n")
    url = {"sasl.oauthbearer.token.endpoint.url": f"file:{path}"}
    assert first_message(login_of(values(**url))).token == path.read_text().strip()


class Tokens:
    """A login callback handler."""

    made: ClassVar[list[Any]] = []

    def configure(self, settings: Any) -> None:
        self.made.append(dict(settings))

    async def token(self) -> str:
        with Issuer() as issuer:
            return issuer.token("callback")


def test_a_token_from_a_class() -> None:
    settings = values(options='own="1"') | {"sasl.login.callback.handler.class": Tokens}
    assert first_message(login_of(settings)).token
    assert Tokens.made == [{"own": "1"}]


def test_a_token_is_used_until_most_of_its_lifetime_is_over(issuer: Issuer) -> None:
    made: list[str] = []

    def source() -> str:
        made.append(issuer.token(f"n{len(made)}"))
        return made[-1]

    async def scenario(lifetime_s: int) -> int:
        made.clear()
        issuer.lifetime_s = lifetime_s
        login = OAuthLogin(source)
        for _ in range(3):
            await login.client("host")
        return len(made)

    assert asyncio.run(scenario(3_600)) == 1
    assert asyncio.run(scenario(0)) == 3


def test_when_a_token_is_replaced() -> None:
    rules = RefreshRules()
    assert rules.due_after_s(10_000, 0.0) == 8_000
    assert rules.due_after_s(1_000, 0.0) == 700
    assert rules.due_after_s(100, 0.0) == 80
    assert RefreshRules(min_period_s=900, buffer_s=0).due_after_s(1_000, 0.0) == 900


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, r"token\.endpoint\.url is missing"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://x/"}, r"client\.id is missing"),
        (
            {"options": 'extension_auth="1"', "sasl.oauthbearer.token.endpoint.url": "file:/x"},
            "must be made of letters",
        ),
    ],
)
def test_what_is_missing_is_named(changes: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        login_of(values(**changes))
