"""TLS with everybody else: other clients against Moldau, moldau.client against Apache Kafka, and
three nodes of Moldau among each other. Certificates are openssl's, key stores keytool's."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from moldau.client.errors import InvalidRequestError, SslAuthenticationError
from support.certificates import PASSWORD, Authority, Identity
from support.cli import moldau_cli
from support.cluster import ClusterUnderTest
from support.java import KafkaTools
from support.ports import free_port
from support.processes import (
    apache_kafka,
    kafka_missing,
    moldau,
    write_properties,
)
from support.waiting import eventually

pytestmark = pytest.mark.skipif(
    not (shutil.which("openssl") and shutil.which("keytool")),
    reason="openssl and keytool make the certificates",
)
TOOLS = "org.apache.kafka.tools."
needs_kafka = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


class Pki:
    """A CA, a broker's certificate and a client's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = Authority(folder)
        self.broker = self.ca.issue("broker", "/O=Org/CN=broker")
        self.localhost = self.ca.issue("localhost", "/O=Org/CN=broker", hosts="DNS:localhost")
        self.duke = self.ca.issue("duke", "/C=US/O=Org/OU=ServiceUsers/CN=Duke")

    @property
    def broker_settings(self) -> dict[str, str]:
        """As for Apache Kafka: stores in Java's formats."""
        return {
            "ssl.keystore.location": str(self.broker.jks),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.ca.trust_store("pkcs12")),
            "ssl.truststore.password": PASSWORD,
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?)(,.*)?$/$1/",
        }

    def client_settings(self, own: Identity | None = None) -> dict[str, Any]:
        """For moldau.client, with PEM files: no package but the standard library."""
        settings = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca.certificate),
        }
        if own is not None:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(own.pem)}
        return settings


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


class Secured:
    """A broker with a listener that requires certificates and one that does not."""

    def __init__(self, folder: Path, pki: Pki) -> None:
        self.port, self.open_port = free_port(), free_port()
        settings = pki.broker_settings | {
            "listeners": f"SSL://localhost:{self.port},OPEN://localhost:{self.open_port},"
            "CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "SSL:SSL,OPEN:SSL,CONTROLLER:SSL",
            "security.inter.broker.protocol": "SSL",
            "ssl.client.auth": "required",
            "ssl.keystore.location": str(pki.localhost.jks),
            "listener.name.open.ssl.client.auth": "none",
            "group.initial.rebalance.delay.ms": "0",
        }
        overrides = [f"{key}={value}" for key, value in settings.items()]
        self.process = moldau(folder, overrides, self.port)

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    @property
    def open(self) -> str:
        return f"localhost:{self.open_port}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, pki: Pki) -> Iterator[Secured]:
    secured = Secured(tmp_path_factory.mktemp("broker"), pki)
    with secured.process:
        yield secured


VALUES = [b"%d" % number + b"." * 700 for number in range(300)]


def exchange(bootstrap: str, settings: Mapping[str, Any], topic: str) -> list[bytes]:
    """What moldau.client reads of what it wrote."""
    with Producer(bootstrap_servers=bootstrap, **_fields(settings)) as producer:
        for value in VALUES:
            producer.send(topic, value=value)
    found: list[bytes] = []
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=f"of-{topic}",
        auto_offset_reset="earliest",
        **_fields(settings),
    ) as consumer:
        consumer.subscribe([topic])
        while len(found) < len(VALUES):
            found += [record.value for record in consumer.poll(30)]
    return found


def _fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "_"): value for name, value in settings.items()}


def test_moldau_client(broker: Secured, pki: Pki) -> None:
    assert exchange(broker.bootstrap, pki.client_settings(pki.duke), "moldau-client") == VALUES


def test_a_listener_has_settings_of_its_own(broker: Secured, pki: Pki) -> None:
    assert exchange(broker.open, pki.client_settings(), "open") == VALUES


def test_what_spark_reads_with(broker: Secured, pki: Pki) -> None:
    from moldau.spark import client_cache
    from moldau.spark.columns.reading import read_range

    settings = {"bootstrap.servers": broker.open, **pki.client_settings()}
    with Producer(settings) as producer:
        for value in VALUES:
            producer.send("columns", value=value, partition=0)
    batches = read_range(settings, "columns", 0, 0, len(VALUES))
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == VALUES
    client_cache.close_idle()


def test_the_tools(broker: Secured, pki: Pki, tmp_path: Path) -> None:
    config = write_properties(tmp_path / "client.properties", pki.client_settings(pki.duke))
    where = ("--bootstrap-server", broker.bootstrap, "--command-config", str(config))
    created = moldau_cli("topics", *where, "--create", "--topic", "by-tool")
    assert created.status == 0, created.err
    assert "by-tool" in moldau_cli("topics", *where, "--list").out.splitlines()
    config = write_properties(tmp_path / "nobody.properties", pki.client_settings())
    where = ("--bootstrap-server", broker.bootstrap, "--command-config", str(config))
    refused = moldau_cli("topics", *where, "--list")
    assert refused.status == 1
    assert "the other side wants a certificate: set ssl.keystore.location" in refused.err
    plain = moldau_cli("topics", "--bootstrap-server", broker.bootstrap, "--list")
    assert plain.status == 1
    assert "uses TLS: set security.protocol" in plain.err


def confluent(bootstrap: str, pki: Pki) -> list[bytes]:
    from confluent_kafka import Consumer as ConfluentConsumer
    from confluent_kafka import Producer as ConfluentProducer

    common = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(pki.ca.certificate),
        "ssl.certificate.location": str(pki.duke.certificate),
        "ssl.key.location": str(pki.duke.key),
    }
    producer = ConfluentProducer(common)
    for value in VALUES:
        producer.produce("confluent", value)
    assert producer.flush(60) == 0
    consumer = ConfluentConsumer(common | {"group.id": "c", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    found: list[bytes] = []
    while len(found) < len(VALUES):
        for message in consumer.consume(100, 10):
            assert message.error() is None, message.error()
            found.append(message.value())
    consumer.close()
    return found


def kafka_python(bootstrap: str, pki: Pki) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer

    common = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(pki.ca.certificate),
        "ssl_certfile": str(pki.duke.certificate),
        "ssl_keyfile": str(pki.duke.key),
    }
    producer = KafkaProducer(**common)
    for value in VALUES:
        producer.send("kafka-python", value)
    producer.close(60)
    consumer = KafkaConsumer(
        "kafka-python", group_id="k", auto_offset_reset="earliest", consumer_timeout_ms=30_000,
        **common,
    )  # fmt: skip
    found: list[bytes] = []
    for record in consumer:
        found.append(record.value)
        if len(found) == len(VALUES):
            break
    consumer.close()
    return found


def aiokafka(bootstrap: str, pki: Pki) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.helpers import create_ssl_context

    async def work() -> list[bytes]:
        common = {
            "bootstrap_servers": bootstrap,
            "security_protocol": "SSL",
            "ssl_context": create_ssl_context(
                cafile=str(pki.ca.certificate),
                certfile=str(pki.duke.certificate),
                keyfile=str(pki.duke.key),
            ),
        }
        async with AIOKafkaProducer(**common) as producer:
            for value in VALUES:
                await producer.send("aiokafka", value)
        found: list[bytes] = []
        consumer = AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **common)
        async with consumer:
            async for record in consumer:
                found.append(record.value)
                if len(found) == len(VALUES):
                    return found
        return found

    return asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.parametrize("client", [confluent, kafka_python, aiokafka])
def test_other_clients(
    client: Callable[[str, Pki], list[bytes]], broker: Secured, pki: Pki
) -> None:
    assert client(broker.bootstrap, pki) == VALUES


@needs_kafka
def test_the_java_client(broker: Secured, pki: Pki, tmp_path: Path) -> None:
    config = write_properties(
        tmp_path / "client.properties",
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(pki.ca.trust_store("jks")),
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": str(pki.duke.jks),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        },
    )
    typed = "".join(f"line {number}\n" for number in range(100))
    with KafkaTools(broker.bootstrap) as tools:
        secured = ("--command-config", str(config))
        sent = tools.run(TOOLS + "ConsoleProducer", "--topic", "java", *secured, typed=typed)
        assert sent.status == 0, sent.output
        seen = tools.run(
            TOOLS + "consumer.ConsoleConsumer",
            *("--topic", "java", "--from-beginning", "--max-messages", "100", *secured),
        )
        assert [each for each in seen.output.splitlines() if each.startswith("line ")] == (
            typed.splitlines()
        ), seen.output


def test_what_is_rejected_is_raised_and_not_retried(
    broker: Secured, pki: Pki, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "Other CA")
    cases = [
        (pki.client_settings(), "certificate required"),
        (
            pki.client_settings(pki.duke) | {"ssl.truststore.location": str(other.certificate)},
            "ssl.truststore.location",
        ),
        (
            pki.client_settings(pki.duke) | {"ssl.enabled.protocols": "TLSv1.2"}
            | {"ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA"},
            "handshake failure",
        ),
    ]  # fmt: skip
    for settings, words in cases:
        given = {"bootstrap_servers": broker.bootstrap, **_fields(settings)}
        with (
            Admin(**given) as admin,
            pytest.raises(SslAuthenticationError, match=words),
        ):
            admin.list_topics()
        with Producer(**given) as producer, pytest.raises(SslAuthenticationError, match=words):
            producer.send("never", value=b"x").result(60)
        with Consumer(**given, group_id="never") as consumer:
            consumer.subscribe(["never"])
            with pytest.raises(SslAuthenticationError, match=words):
                consumer.poll(60)


def test_a_certificate_for_another_address(broker: Secured, pki: Pki) -> None:
    settings = pki.client_settings(pki.duke)
    with (
        Admin(bootstrap_servers=f"127.0.0.1:{broker.port}", **_fields(settings)) as admin,
        pytest.raises(SslAuthenticationError, match=r"ssl\.endpoint\.identification"),
    ):
        admin.list_topics()


def test_certificates_are_replaced_while_clients_are_connected(broker: Secured, pki: Pki) -> None:
    """By IncrementalAlterConfigs for one listener, as with Kafka."""
    renewed = pki.ca.issue("renewed", "/O=Org/CN=broker", hosts="DNS:localhost")
    settings = _fields(pki.client_settings())
    prefix = "listener.name.open."
    with (
        Producer(bootstrap_servers=broker.open, **settings) as producer,
        Admin(bootstrap_servers=broker.open, **settings) as admin,
    ):
        producer.send("replaced", value=b"before").result(60)
        before = serial_number(broker.open_port, pki)
        changes = {
            f"{prefix}ssl.keystore.location": str(renewed.jks),
            f"{prefix}ssl.keystore.password": PASSWORD,
            f"{prefix}ssl.key.password": PASSWORD,
        }
        resource = ConfigResource(ConfigResourceType.BROKER, "1")
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp(name, value) for name, value in changes.items()]}
        )
        eventually(
            lambda: serial_number(broker.open_port, pki) != before,
            what="the listener has the new certificate",
        )
        producer.send("replaced", value=b"after").result(60)
        # What cannot be used is refused, and nothing changes.
        other = pki.ca.issue("other", "/O=Org/CN=another", hosts="DNS:localhost")
        for store, words in ((other.jks, "DistinguishedName"), ("/nowhere", "cannot be read")):
            change = AlterConfigOp(f"{prefix}ssl.keystore.location", str(store))
            with pytest.raises(InvalidRequestError, match=words):
                admin.incremental_alter_configs({resource: [change]})
    assert PASSWORD not in broker.process.output()


def serial_number(port: int, pki: Pki) -> str:
    tls = ssl.create_default_context(cafile=str(pki.ca.certificate))
    with (
        socket.create_connection(("localhost", port)) as raw,
        tls.wrap_socket(raw, server_hostname="localhost") as sock,
    ):
        certificate = sock.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])


@pytest.mark.long("starts Apache Kafka; test_sasl logs in to it")
@needs_kafka
@pytest.mark.slow("starts Apache Kafka")
def test_moldau_client_against_apache_kafka(
    tmp_path_factory: pytest.TempPathFactory, pki: Pki
) -> None:
    port, controller = free_port(), free_port()
    settings = pki.broker_settings | {
        "listeners": f"SSL://localhost:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
    }
    kafka = apache_kafka(tmp_path_factory.mktemp("kafka"), settings)
    kafka.port = port
    with kafka:
        bootstrap = f"localhost:{port}"
        assert exchange(bootstrap, pki.client_settings(pki.duke), "to-kafka") == VALUES
        with (
            Admin(bootstrap_servers=bootstrap, **_fields(pki.client_settings())) as admin,
            pytest.raises(SslAuthenticationError),
        ):
            admin.list_topics()


@pytest.mark.long("three nodes, of which one is killed; test_sasl_nodes has TLS between nodes")
@pytest.mark.slow("three nodes, one of them killed")
def test_three_nodes_encrypt_all_between_them(
    tmp_path_factory: pytest.TempPathFactory, pki: Pki
) -> None:
    settings = pki.broker_settings | {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.client.auth": "required",
    }
    cluster = ClusterUnderTest("moldau", tmp_path_factory.mktemp("nodes"), settings)
    cluster.format()
    try:
        for node in cluster.nodes.values():
            node.spawn()
        given = pki.client_settings(pki.duke)
        assert exchange(cluster.bootstrap, given, "replicated") == VALUES
        with Admin(bootstrap_servers=cluster.bootstrap, **_fields(given)) as admin:
            described = admin.describe_topics(["replicated"])["replicated"]
            leader = described.partitions[0].leader
        cluster.nodes[leader.id].kill()
        assert exchange(cluster.bootstrap, given, "after") == VALUES
    finally:
        for node in cluster.nodes.values():
            node.kill()
