"""Logins by GSSAPI, with a real key distribution centre."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from moldau.client import Producer
from moldau.client.errors import SaslAuthenticationFailedError
from support.kerberos import REALM, Realm, kerberos_missing
from support.processes import TOOL_CLASSES, BrokerProcess, java, kafka_missing
from support.secured import secured_moldau

pytestmark = pytest.mark.skipif(kerberos_missing() is not None, reason=str(kerberos_missing()))

MODULE = "com.sun.security.auth.module.Krb5LoginModule"


def line(keytab: Path, principal: str) -> str:
    return (
        f"{MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{keytab}" principal="{principal}@{REALM}";'
    )


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with pytest.MonkeyPatch.context() as patch, Realm(tmp_path_factory.mktemp("realm")) as running:
        patch.setenv("KRB5_CONFIG", str(running.config))
        yield running


@pytest.fixture(scope="module")
def alice(realm: Realm) -> Path:
    return realm.keytab("alice")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, realm: Realm) -> Iterator[BrokerProcess]:
    listener = "listener.name.sasl_plaintext"
    own = line(realm.keytab("kafka/localhost"), "kafka/localhost")
    extra = {
        "sasl.enabled.mechanisms": "PLAIN,GSSAPI",
        f"{listener}.gssapi.sasl.jaas.config": own,
        f"{listener}.sasl.kerberos.principal.to.local.rules": (
            "RULE:[1:$1](evil)s/evil/admin@x/,DEFAULT"
        ),
    }
    running = secured_moldau(tmp_path_factory.mktemp("kerberos"), extra)
    config = Path(running.command[-1])
    address = f"SASL_PLAINTEXT://127.0.0.1:{running.port}"
    advertised = f"advertised.listeners=SASL_PLAINTEXT://localhost:{running.port}"
    config.write_text(config.read_text().replace(f"advertised.listeners={address}", advertised))
    with running:
        yield running


def settings(broker: BrokerProcess, jaas_line: str) -> dict[str, str]:
    return {
        "bootstrap.servers": f"localhost:{broker.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": jaas_line,
    }


def test_moldau_client(broker: BrokerProcess, alice: Path) -> None:
    with Producer(settings(broker, line(alice, "alice"))) as producer:
        producer.send("kerberos", b"x").result(30)


def test_kafka_python(broker: BrokerProcess, realm: Realm, alice: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    realm.run("kinit", "-k", "-t", str(alice), "-c", str(cache), f"alice@{REALM}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5CCNAME", f"FILE:{cache}")
        producer = KafkaProducer(
            bootstrap_servers=f"localhost:{broker.port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_service_name="kafka",
        )
        assert producer.send("kerberos", b"x").get(30).topic == "kerberos"
        producer.close()
        with_cache = f"{MODULE} required useTicketCache=true;"
        with Producer(settings(broker, with_cache)) as own:
            own.send("kerberos", b"x").result(30)


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_java_client(broker: BrokerProcess, realm: Realm, alice: Path, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    given = settings(broker, line(alice, "alice"))
    config.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    command = [
        *java(TOOL_CLASSES, f"-Djava.security.krb5.conf={realm.config}"),
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", f"localhost:{broker.port}"),
        *("--command-config", str(config), "--list"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_principal_without_a_name_is_refused(broker: BrokerProcess, realm: Realm) -> None:
    with (
        Producer(settings(broker, line(realm.keytab("evil"), "evil"))) as producer,
        pytest.raises(SaslAuthenticationFailedError, match="due to invalid credentials"),
    ):
        producer.send("kerberos", b"x").result(30)
    assert "Non-simple name" in broker.log.read_text()


def test_a_principal_that_does_not_exist(broker: BrokerProcess, alice: Path) -> None:
    with (
        Producer(settings(broker, line(alice, "nobody"))) as producer,
        pytest.raises(SaslAuthenticationFailedError, match="no Kerberos ticket"),
    ):
        producer.send("kerberos", b"x").result(30)
