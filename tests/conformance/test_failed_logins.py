"""Failed logins by TLS and SASL: how long they take, as with Apache Kafka, and what is recorded."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.client import Admin
from moldau.client.errors import SslAuthenticationError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from support.certificates import Authority
from support.ports import free_port
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.raw import RawConnection
from support.secured import USERS
from support.waiting import eventually

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes certificates")

#: Far longer than anything else takes here.
DELAY_S = 4.0
NOT_TLS = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Site:
    def __init__(self, folder: Path) -> None:
        self.ca = Authority(folder / "ca")
        self.broker = self.ca.issue("broker", "/CN=broker")
        self.duke = self.ca.issue("duke", "/O=Org/CN=Duke")
        self.ssl_port, self.sasl_port = free_port(), free_port()

    @property
    def properties(self) -> dict[str, str]:
        controller = free_port()
        return {
            "listeners": f"SSL://127.0.0.1:{self.ssl_port},SASL://127.0.0.1:{self.sasl_port},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "SSL:SSL,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "inter.broker.listener.name": "SSL",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca.certificate),
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?)(,.*)?$/$1/",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": USERS,
            "connection.failed.authentication.delay.ms": str(int(1000 * DELAY_S)),
        }

    def without_certificate(self) -> float:
        """How long it takes until the broker closes the connection."""
        context = ssl.create_default_context(cafile=str(self.ca.certificate))

        def attempt(raw: socket.socket) -> None:
            # The alert comes after the client's side of the handshake is done.
            with context.wrap_socket(raw, server_hostname="localhost") as sock:
                assert not sock.recv(1)

        return self._seconds(attempt)

    def without_tls(self) -> float:
        def attempt(raw: socket.socket) -> None:
            raw.sendall(NOT_TLS)
            while raw.recv(1000):
                pass

        return self._seconds(attempt)

    def _seconds(self, attempt: Callable[[socket.socket], None]) -> float:
        with socket.create_connection(("127.0.0.1", self.ssl_port), timeout=60) as raw:
            began = time.monotonic()
            with suppress(ssl.SSLError, ConnectionError):
                attempt(raw)
            return time.monotonic() - began

    def listens_for_sasl(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.sasl_port)) == 0

    def with_wrong_password(self) -> float:
        connection = RawConnection(self.sasl_port)
        handshake = SaslHandshakeRequest(mechanism="PLAIN")
        assert connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake).error_code == 0
        began = time.monotonic()
        token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
        answer = connection.call(ApiKey.SASL_AUTHENTICATE, 2, token)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        return time.monotonic() - began


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(
    scope="module",
    params=[
        "moldau",
        pytest.param("kafka", marks=pytest.mark.long("starts Apache Kafka for one figure")),
    ],
)
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, site: Site
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "kafka":
        if missing := kafka_missing():
            pytest.skip(missing)
        broker = apache_kafka(folder, site.properties)
        broker.port = site.ssl_port
    else:
        overrides = [f"{key}={value}" for key, value in site.properties.items()]
        broker = moldau(folder, overrides, site.ssl_port)
    with broker:
        yield broker


def test_only_failed_sasl_logins_are_delayed(either: BrokerProcess, site: Site) -> None:
    """connection.failed.authentication.delay.ms slows down guessing of passwords. A failed TLS
    handshake ends at once: nothing can be guessed."""
    # Kafka opens one listener after the other.
    eventually(site.listens_for_sasl, what="the SASL listener")
    assert site.with_wrong_password() >= DELAY_S
    assert site.without_certificate() < DELAY_S
    assert site.without_tls() < DELAY_S


def test_certificates_are_audited(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    path = tmp_path / "audit.jsonl"
    properties = site.properties | {
        "moldau.audit.file": str(path),
        "moldau.audit.events": "authenticated,rejected",
    }
    overrides = [f"{key}={value}" for key, value in properties.items()]
    own = {
        "bootstrap.servers": f"localhost:{site.ssl_port}",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(site.ca.certificate),
    }
    duke = own | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(site.duke.pem)}
    with moldau(tmp_path / "broker", overrides, site.ssl_port):
        with Admin(duke) as admin:
            admin.list_topics()
        with Admin(own) as admin, pytest.raises(SslAuthenticationError):
            admin.list_topics()
    events = [json.loads(each) for each in path.read_text().splitlines()]
    names = {each["principal"] for each in events if each["event"] == "authenticated"}
    assert names == {"User:Duke"}
    (rejected, *_) = [each for each in events if each["event"] == "rejected"]
    assert (rejected["mechanism"], rejected["listener"]) == ("SSL", "SSL")
    assert "certificate" in rejected["reason"]
