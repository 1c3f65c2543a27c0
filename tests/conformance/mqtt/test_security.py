"""Users of the broker, its ACLs, TLS, and packets that nobody should send."""

from __future__ import annotations

import random
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.packets import (
    V4,
    V5,
    Connect,
    Subscribe,
    SubscribeRequest,
    Will,
)
from support.certificates import Authority
from support.http_service import running
from support.mqtt import Device, devices, new_name, port_of, proxy_of
from support.processes import BrokerProcess
from support.secured import PLAIN_MODULE, secured_moldau
from support.waiting import eventually

ADMIN = f'{PLAIN_MODULE} required username="admin" password="admin-secret";'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A proxy in front of a broker with users, where alice may write `in` and read `out`."""
    extra = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    settings = {
        "client_security_protocol": "SASL_PLAINTEXT",
        "client_sasl_mechanism": "PLAIN",
        "client_sasl_jaas_config": ADMIN,
    }
    with secured_moldau(tmp_path_factory.mktemp("secured"), extra) as broker:
        own = {name.removeprefix("client_").replace("_", "."): value
               for name, value in settings.items()}  # fmt: skip
        with Admin({"bootstrap.servers": broker.bootstrap, **own}) as admin:
            admin.create_topics([NewTopic("in", 1, 1), NewTopic("out", 1, 1)])
            admin.create_acls(
                [
                    AclBinding(
                        ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                        AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW),
                    )
                    for topic, operation in (("in", AclOperation.WRITE), ("out", AclOperation.READ))
                ]
            )
        with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
            yield port_of(service.url)


def user(name: str, password: str, version: int = 5) -> Device:
    device = Device(new_name(name), version)
    device.client.username_pw_set(name, password)
    device.client.reconnect_delay_set(60, 60)
    return device


def test_the_broker_checks_the_password(guarded: int) -> None:
    for password in ("wrong", 'quo"te\\'):
        device = user("alice", password)
        device.connect(guarded)
        assert device.connack.getName() == "Bad user name or password"
        device.client.loop_stop()
    nobody = Device(new_name("nobody"))
    nobody.client.reconnect_delay_set(60, 60)
    nobody.connect(guarded)
    assert nobody.connack.getName() == "Not authorized"
    nobody.client.loop_stop()


def test_the_brokers_acls_decide(guarded: int) -> None:
    alice, admin = user("alice", "alice-secret"), user("admin", "admin-secret")
    with devices(guarded, alice, admin):
        assert alice.subscribe("out/#").getName() == "Granted QoS 1"
        assert alice.subscribe("in/#").getName() == "Not authorized"
        admin.subscribe("in/#")
        alice.publish("in/1", b"hello")
        assert admin.next().payload == b"hello"
        admin.publish("out/1", b"answer")
        assert alice.next().payload == b"answer"
        refused = alice.client.publish("out/1", b"not mine", 1)
        refused.wait_for_publish(20)
    # 3.1.1 cannot be refused a message: the connection is closed.
    old = user("alice", "alice-secret", 4)
    old.connect(guarded)
    old.client.publish("out/1", b"not mine", 1)
    old.wait_gone()
    old.client.loop_stop()


def test_a_session_belongs_to_its_user(guarded: int) -> None:
    alice = user("alice", "alice-secret")
    with devices(guarded, alice):
        thief = Device(alice.client._client_id.decode())
        thief.client.username_pw_set("bob", "bob-secret")
        thief.client.reconnect_delay_set(60, 60)
        thief.connect(guarded)
        assert thief.connack.getName() == "Client identifier not valid"
        thief.client.loop_stop()
        alice.publish("in/1", b"still here")


def test_tls(broker: BrokerProcess, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    identity = authority.issue("proxy", "/CN=proxy")
    settings = {
        "listeners": "mqtts://127.0.0.1:0",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(identity.pem),
    }
    with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
        assert service.url.startswith("mqtts://")
        topic = new_name("tls")
        device = Device(new_name("tls"))
        device.client.tls_set_context(ssl.create_default_context(cafile=authority.certificate))
        with devices(port_of(service.url), device):
            device.subscribe(f"{topic}/#", 2)
            device.publish(f"{topic}/a", b"secret", 2)
            assert device.next().payload == b"secret"


def test_a_new_certificate_is_used_without_a_restart(broker: BrokerProcess, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    old, new = (authority.issue(name, "/CN=proxy") for name in ("old", "new"))
    store = tmp_path / "proxy.pem"
    store.write_bytes(old.pem.read_bytes())
    settings = {
        "listeners": "mqtts://127.0.0.1:0",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(store),
    }
    trust = ssl.create_default_context(cafile=authority.certificate)

    def shown(port: int) -> str:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as raw,
            trust.wrap_socket(raw, server_hostname="127.0.0.1") as line,
        ):
            return ssl.DER_cert_to_PEM_cert(line.getpeercert(binary_form=True) or b"")

    with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
        port, topic = port_of(service.url), new_name("reload")
        device = Device(new_name("reload"))
        device.client.tls_set_context(trust)
        with devices(port, device):
            device.subscribe(f"{topic}/#", 1)
            assert shown(port) in old.certificate.read_text()

            store.write_bytes(new.pem.read_bytes())
            eventually(
                lambda: shown(port) in new.certificate.read_text(), what="the new certificate"
            )

            device.publish(f"{topic}/a", b"still connected", 1)
            assert device.next().payload == b"still connected"


# Packets that nobody should send.


def samples() -> list[bytes]:
    will = Will("fuzz/will", b"w", 1, False, {0x18: 0})
    request = SubscribeRequest("fuzz/#", 2)
    return [
        encoding.connect(Connect(V5, "fuzz", True, 10, {0x11: 5, 0x21: 9}, will, "u", b"p")),
        encoding.connect(Connect(V4, "fuzz", True, 10)),
        encoding.publish(V5, "fuzz/a", b"x", qos=2, packet_id=1, properties={0x26: [("a", "b")]}),
        encoding.publish(V4, "fuzz/a", b"x", qos=1, packet_id=2),
        encoding.subscribe(V5, Subscribe(3, (request,), {0x0B: [4]})),
        encoding.PINGREQ,
        encoding.disconnect(V5, 4, {0x11: 3}),
        b"\x40\x02\x00\x01\x50\x02\x00\x01\x62\x02\x00\x01\x70\x02\x00\x01",
    ]


def mutated(chance: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(found))
        kind = chance.randrange(4)
        if kind == 0:
            found[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[place : place + 1] = b""
        elif kind == 2:
            found[place:place] = chance.randbytes(chance.randrange(1, 5))
        else:
            found = found[: place + 1]
        if not found:
            found = bytearray(b"\x10")
    return bytes(found)


def test_fuzzed_packets_disturb_nobody(broker: BrokerProcess) -> None:
    """Connections with broken packets, while two devices talk."""
    chance = random.Random(20)
    with running(lambda: proxy_of(broker.bootstrap, connect_timeout_ms="500")) as service:
        port = port_of(service.url)
        topic = new_name("calm")
        reader, writer = Device(new_name("r")), Device(new_name("w"))
        with devices(port, reader, writer):
            reader.subscribe(f"{topic}/#", 2)
            valid = samples()
            for number in range(600):
                with socket.create_connection(("127.0.0.1", port), 5) as attacker:
                    if chance.random() < 0.7:
                        attacker.sendall(valid[number % 2])
                    parts = [mutated(chance, chance.choice(valid)) for _ in range(3)]
                    attacker.sendall(b"".join(parts))
                if number % 60 == 0:
                    writer.publish(f"{topic}/a", str(number), number // 60 % 3)
                    assert reader.next().payload == str(number).encode()
            writer.publish(f"{topic}/a", b"end", 2)
            assert reader.next().payload == b"end"
            assert reader.client.is_connected()
            assert writer.client.is_connected()


@pytest.mark.long("thousands of devices take a while to connect")
def test_five_thousand_idle_devices(broker: BrokerProcess) -> None:
    with running(lambda: proxy_of(broker.bootstrap)) as service:
        port = port_of(service.url)
        # Connected first, because paho cannot use descriptors above 1023.
        reader, writer = Device(new_name("r")), Device(new_name("w"))
        idle: list[socket.socket] = []
        with devices(port, reader, writer):
            reader.subscribe("busy/#", 1)
            try:
                for number in range(5000):
                    each = socket.create_connection(("127.0.0.1", port), 30)
                    idle.append(each)
                    each.sendall(encoding.connect(Connect(V4, f"idle-{number}", True, 0)))
                for each in idle:
                    assert each.recv(4) == b"\x20\x02\x00\x00"
                writer.publish("busy/a", b"x")
                assert reader.next().payload == b"x"
            finally:
                for each in idle:
                    each.close()
