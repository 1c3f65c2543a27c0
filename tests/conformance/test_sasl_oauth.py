"""Logins by OAUTHBEARER: tokens of a small issuer, checked by Moldau and by Apache Kafka."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from moldau.client import Producer
from moldau.client.errors import SaslAuthenticationFailedError
from moldau.wire.apis import ApiKey
from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from support.issuer import AUDIENCE, ISSUER, Issuer
from support.processes import SERVER_CLASSES, TOOL_CLASSES, BrokerProcess, java, kafka_missing
from support.raw import RawConnection
from support.secured import PACKAGE, secured_kafka, secured_moldau

MODULE = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"
LISTENER = "listener.name.sasl_plaintext.oauthbearer"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


def properties(issuer: Issuer) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        f"{LISTENER}.sasl.jaas.config": f"{MODULE} required;",
        f"{LISTENER}.sasl.server.callback.handler.class": (
            f"{PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": issuer.jwks_url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[BrokerProcess]:
    with secured_moldau(tmp_path_factory.mktemp("oauth"), properties(issuer)) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[BrokerProcess]:
    if kafka_missing() is not None:
        pytest.skip(str(kafka_missing()))
    folder = tmp_path_factory.mktemp("oauth-kafka")
    running = secured_kafka(folder, properties(issuer))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.jwks_url}"
    temporary = f"-Djava.io.tmpdir={folder}"
    running.command = [*java(SERVER_CLASSES, temporary, allowed), *running.command[-2:]]
    with running:
        yield running


def settings(bootstrap: str, issuer: Issuer, secret: str = "app-secret") -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{MODULE} required clientId="app" clientSecret="{secret}";',
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
    }


def test_moldau_client_fetches_a_token(broker: BrokerProcess, issuer: Issuer) -> None:
    with Producer(settings(broker.bootstrap, issuer)) as producer:
        producer.send("oauth", b"x").result(30)
    with (
        Producer(settings(broker.bootstrap, issuer, "wrong")) as producer,
        pytest.raises(SaslAuthenticationFailedError, match="answered 401"),
    ):
        producer.send("oauth", b"x").result(30)


def test_moldau_client_reads_a_token(broker: BrokerProcess, issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    by_file = settings(broker.bootstrap, issuer)
    by_file["sasl.oauthbearer.token.endpoint.url"] = f"file:{path}"
    path.write_text(issuer.token())
    with Producer(by_file) as producer:
        producer.send("oauth", b"x").result(30)
    path.write_text(issuer.token(aud="other"))
    with (
        Producer(by_file) as producer,
        pytest.raises(SaslAuthenticationFailedError, match="invalid_token"),
    ):
        producer.send("oauth", b"x").result(30)


def test_a_session_ends_with_its_token(broker: BrokerProcess, issuer: Issuer) -> None:
    with RawConnection(broker.port) as connection:
        connection.call(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        message = f"n,,\x01auth=Bearer {issuer.token(exp=int(time.time()) + 60)}\x01\x01"
        request = SaslAuthenticateRequest(auth_bytes=message.encode())
        answer = connection.call(ApiKey.SASL_AUTHENTICATE, 2, request)
    assert answer.error_code == 0
    assert 0 < answer.session_lifetime_ms <= 60_000


def test_librdkafka(broker: BrokerProcess, issuer: Issuer) -> None:
    delivered: list[object] = []
    producer = LibrdkafkaProducer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (issuer.token(), time.time() + 3_600),
        }
    )
    producer.produce("oauth", b"x", on_delivery=lambda error, _: delivered.append(error))
    producer.flush(30)
    assert delivered == [None]


def test_python_clients(broker: BrokerProcess, issuer: Issuer) -> None:
    class Tokens(AbstractTokenProvider):  # type: ignore[misc, unused-ignore]
        def token(self) -> str:
            return issuer.token()

    class AioTokens(AioTokenProvider):  # type: ignore[misc, unused-ignore]
        async def token(self) -> str:
            return issuer.token()

    options = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    blocking = KafkaProducer(**options, sasl_oauth_token_provider=Tokens())
    assert blocking.send("oauth", b"x").get(30).topic == "oauth"
    blocking.close()

    async def send() -> None:
        producer = AIOKafkaProducer(**options, sasl_oauth_token_provider=AioTokens())
        await producer.start()
        await producer.send_and_wait("oauth", b"y")
        await producer.stop()

    asyncio.run(send())


# Apache Kafka.


def test_the_client_logs_in_to_apache_kafka(kafka: BrokerProcess, issuer: Issuer) -> None:
    with Producer(settings(kafka.bootstrap, issuer)) as producer:
        producer.send("oauth", b"x").result(60)


TOKENS: list[tuple[str, Callable[[Issuer], bytes]]] = [
    ("good", lambda issuer: bearer(issuer.token())),
    ("audience", lambda issuer: bearer(issuer.token(aud="other"))),
    ("no audience", lambda issuer: bearer(issuer.token(aud=None))),
    ("issuer", lambda issuer: bearer(issuer.token(iss="other"))),
    ("expired", lambda issuer: bearer(issuer.token(exp=int(time.time()) - 100))),
    ("skew", lambda issuer: bearer(issuer.token(exp=int(time.time()) - 10))),
    ("no exp", lambda issuer: bearer(issuer.token(exp=None))),
    ("no iat", lambda issuer: bearer(issuer.token(iat=None))),
    ("not before", lambda issuer: bearer(issuer.token(nbf=int(time.time()) + 100))),
    ("no subject", lambda issuer: bearer(issuer.token(sub=None))),
    ("no scope", lambda issuer: bearer(issuer.token(scope=None))),
    ("unknown key", lambda issuer: bearer(issuer.token(key_id="unknown"))),
    ("not a token", lambda issuer: bearer("abc")),
    ("unsigned", lambda issuer: bearer(issuer.token().rpartition(".")[0] + ".")),
    ("authzid", lambda issuer: bearer(issuer.token()).replace(b"n,,", b"n,a=admin,")),
    ("own authzid", lambda issuer: bearer(issuer.token()).replace(b"n,,", b"n,a=olga,")),
    ("garbage", lambda issuer: b"garbage"),
]


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in TOKENS])
def test_tokens_are_answered_as_by_apache_kafka(
    broker: BrokerProcess, kafka: BrokerProcess, issuer: Issuer, make: Callable[[Issuer], bytes]
) -> None:
    token = make(issuer)
    assert outcome(broker.port, token) == outcome(kafka.port, token)


def outcome(port: int, token: bytes) -> list[object]:
    found: list[object] = []
    with RawConnection(port) as connection:
        connection.call(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        for each in (token, b"\x01"):
            request = SaslAuthenticateRequest(auth_bytes=each)
            try:
                answer = connection.call(ApiKey.SASL_AUTHENTICATE, 2, request)
            except ConnectionError:
                return [*found, "closed"]
            found += [answer.error_code, answer.error_message, bytes(answer.auth_bytes)]
            if answer.error_code or not answer.auth_bytes:
                break
    return found


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_java_client(broker: BrokerProcess, issuer: Issuer, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    given = settings(broker.bootstrap, issuer) | {
        "sasl.login.callback.handler.class": (
            f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    }
    config.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.token_url}"
    command = [
        *java(TOOL_CLASSES, allowed),
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", broker.bootstrap),
        *("--command-config", str(config), "--list"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
