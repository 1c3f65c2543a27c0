"""PLAIN with users of an LDAP directory: slapd checks the passwords."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from moldau.client import Admin
from moldau.client.errors import SaslAuthenticationFailedError
from support.directory import PEOPLE, Directory, slapd_missing
from support.processes import BrokerProcess
from support.secured import client_settings, secured_moldau

pytestmark = [
    pytest.mark.skipif(slapd_missing() is not None, reason=str(slapd_missing())),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
]
USERS = {"ann": "ann-secret", "ben": "ben-secret"}
PREFIX = "listener.name.sasl_plaintext"
CLASS = "moldau.broker.security.authentication.ldap_users.LdapUsers"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with Directory(tmp_path_factory.mktemp("directory"), USERS) as running:
        yield running


@pytest.fixture(scope="module", params=["ldaps", "StartTLS"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, directory: Directory
) -> Iterator[BrokerProcess]:
    urls = {
        "ldaps": f"ldaps://127.0.0.1:{directory.tls_port}",
        "StartTLS": f"ldap://127.0.0.1:{directory.port}",
    }
    settings = {
        f"{PREFIX}.plain.sasl.server.callback.handler.class": CLASS,
        f"{PREFIX}.ldap.url": urls[request.param],
        f"{PREFIX}.ldap.user.dn": f"uid={{user}},{PEOPLE}",
        f"{PREFIX}.ldap.ca.location": str(directory.authority.certificate),
        "connection.failed.authentication.delay.ms": "0",
    }
    with secured_moldau(tmp_path_factory.mktemp("broker"), settings) as running:
        yield running


def log_in(broker: BrokerProcess, user: str, password: str) -> None:
    settings = client_settings(broker.bootstrap, "PLAIN", user, password)
    with Admin(settings) as admin:
        admin.list_topics()


def test_users_of_the_directory_log_in(broker: BrokerProcess) -> None:
    for user, password in USERS.items():
        log_in(broker, user, password)


def test_librdkafka_logs_in(broker: BrokerProcess) -> None:
    config = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "ann-secret",
        "log_level": 0,
    }
    assert AdminClient(config).list_topics(timeout=30).brokers


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ann", "wrong"),
        ("ann", "ben-secret"),
        ("nobody", "ann-secret"),
        ("ANN", "ann-secret"),  # The directory says yes; ACLs would know her by another name.
        ("ann ", "ann-secret"),
        (f"ann,{PEOPLE}", "ann-secret"),
        ("*", "ann-secret"),
    ],
)
def test_others_do_not(broker: BrokerProcess, user: str, password: str) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="Invalid username or password"):
        log_in(broker, user, password)
    assert password not in broker.log.read_text()


def test_without_the_directory_nobody_logs_in_and_its_users_do_when_it_is_back(
    tmp_path: Path,
) -> None:
    directory = Directory(tmp_path / "directory", USERS)
    settings = {
        f"{PREFIX}.plain.sasl.server.callback.handler.class": CLASS,
        f"{PREFIX}.ldap.url": f"ldaps://127.0.0.1:{directory.tls_port}",
        f"{PREFIX}.ldap.user.dn": f"uid={{user}},{PEOPLE}",
        f"{PREFIX}.ldap.ca.location": str(directory.authority.certificate),
    }
    (tmp_path / "broker").mkdir()
    with secured_moldau(tmp_path / "broker", settings) as running:
        with pytest.raises(SaslAuthenticationFailedError, match="could not be verified"):
            log_in(running, "ann", "ann-secret")
        assert "users cannot be checked by the LDAP server 127.0.0.1" in running.log.read_text()
        with directory:
            log_in(running, "ann", "ann-secret")
