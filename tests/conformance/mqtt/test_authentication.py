"""Enhanced authentication: SCRAM in AUTH packets, checked by the broker with its own users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from moldau.security.machine.scram import ScramClient, ScramMechanism
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.packets import V5, Auth, Connect, PacketType
from moldau.services.mqtt.machine.properties import Properties, Property
from support.http_service import running
from support.mqtt import new_name, port_of, proxy_of
from support.mqtt_raw import Raw
from support.secured import PLAIN_MODULE, secured_moldau

METHOD, DATA = Property.AUTHENTICATION_METHOD, Property.AUTHENTICATION_DATA
CONTINUE, AGAIN = 0x18, 0x19
NOT_AUTHORIZED, BAD_METHOD, PROTOCOL_ERROR = 0x87, 0x8C, 0x82


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A proxy in front of a broker where sam may write `in`, and nothing else."""
    extra = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    login = f'{PLAIN_MODULE} required username="admin" password="admin-secret";'
    with secured_moldau(tmp_path_factory.mktemp("secured"), extra) as broker:
        own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
               "sasl.jaas.config": login}  # fmt: skip
        with Admin({"bootstrap.servers": broker.bootstrap, **own}) as admin:
            admin.create_topics([NewTopic("in", 1, 1), NewTopic("other", 1, 1)])
            allowed = AccessControlEntry(
                "User:sam", "*", AclOperation.WRITE, AclPermissionType.ALLOW
            )
            topic = ResourcePattern(ResourceType.TOPIC, "in", PatternType.LITERAL)
            admin.create_acls([AclBinding(topic, allowed)])
        settings = {f"client.{name}".replace(".", "_"): value for name, value in own.items()}
        with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
            yield port_of(service.url)


def client_of(method: str, user: str = "sam", password: str = "sam-secret") -> ScramClient:
    mechanism = ScramMechanism.named(method)
    assert mechanism is not None
    return ScramClient(mechanism, username=user, password=password, nonce=new_name("nonce"))


def connect(properties: Properties) -> bytes:
    return encoding.connect(Connect(V5, new_name("dev"), True, 60, properties))


def begin(raw: Raw, scram: ScramClient, method: str) -> Auth:
    """CONNECT, and the proxy's first AUTH."""
    raw.send(connect({METHOD: method, DATA: scram.evaluate(b"") or b""}))
    return raw.auth()


def log_in(raw: Raw, method: str) -> None:
    scram = client_of(method)
    challenge = begin(raw, scram, method)
    assert (challenge.reason, challenge.properties[METHOD]) == (CONTINUE, method)
    proof = scram.evaluate(challenge.properties[DATA]) or b""
    raw.send(encoding.auth(CONTINUE, {METHOD: method, DATA: proof}))
    code, properties = raw.connack()
    assert (code, properties[METHOD]) == (0, method)
    # The server has proved that it knows the user, too.
    assert scram.evaluate(properties[DATA]) is None
    assert scram.complete


@pytest.mark.parametrize("method", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_logs_in_by_scram_and_acts_as_its_user(guarded: int, method: str) -> None:
    with Raw(guarded) as raw:
        log_in(raw, method)
        raw.send(encoding.publish(V5, "in/1", b"yes", qos=1, packet_id=1))
        assert raw.reason(PacketType.PUBACK) == 0
        raw.send(encoding.publish(V5, "other/1", b"no", qos=1, packet_id=2))
        assert raw.reason(PacketType.PUBACK) == NOT_AUTHORIZED


def test_a_client_authenticates_again(guarded: int) -> None:
    with Raw(guarded) as raw:
        log_in(raw, "SCRAM-SHA-256")
        scram = client_of("SCRAM-SHA-256")
        first: dict[int, Any] = {METHOD: "SCRAM-SHA-256", DATA: scram.evaluate(b"") or b""}
        raw.send(encoding.auth(AGAIN, first))
        # Messages flow meanwhile.
        challenge = raw.auth()
        raw.send(encoding.publish(V5, "in/1", b"meanwhile", qos=1, packet_id=7))
        assert raw.reason(PacketType.PUBACK) == 0
        proof = scram.evaluate(challenge.properties[DATA]) or b""
        raw.send(encoding.auth(CONTINUE, {METHOD: "SCRAM-SHA-256", DATA: proof}))
        answer = raw.auth()
        assert answer.reason == 0
        assert scram.evaluate(answer.properties[DATA]) is None
        # With a wrong password it is disconnected.
        scram = client_of("SCRAM-SHA-256", password="wrong")
        raw.send(encoding.auth(AGAIN, first | {DATA: scram.evaluate(b"") or b""}))
        proof = scram.evaluate(raw.auth().properties[DATA]) or b""
        raw.send(encoding.auth(CONTINUE, {METHOD: "SCRAM-SHA-256", DATA: proof}))
        assert raw.reason(PacketType.DISCONNECT) == NOT_AUTHORIZED


@pytest.mark.parametrize(
    ("user", "password"), [("sam", "wrong"), ("nobody", "sam-secret")], ids=["password", "user"]
)
def test_a_wrong_proof_is_refused(guarded: int, user: str, password: str) -> None:
    with Raw(guarded) as raw:
        scram = client_of("SCRAM-SHA-256", user, password)
        challenge = begin(raw, scram, "SCRAM-SHA-256")
        proof = scram.evaluate(challenge.properties[DATA]) or b""
        raw.send(encoding.auth(CONTINUE, {METHOD: "SCRAM-SHA-256", DATA: proof}))
        assert raw.connack()[0] == NOT_AUTHORIZED


def test_an_unknown_method_is_refused(guarded: int) -> None:
    with Raw(guarded) as raw:
        raw.send(connect({METHOD: "K5"}))
        assert raw.connack()[0] == BAD_METHOD


def test_a_message_that_is_no_login_is_refused(guarded: int) -> None:
    for data in (b"", b"n,,n=sam", b"n,,n=token,r=abc,tokenauth=true", b"\xff" * 100):
        with Raw(guarded) as raw:
            raw.send(connect({METHOD: "SCRAM-SHA-256", DATA: data}))
            assert raw.connack()[0] == NOT_AUTHORIZED


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(encoding.auth(CONTINUE, {METHOD: "SCRAM-SHA-512", DATA: b"x"}), id="method"),
        pytest.param(encoding.auth(CONTINUE, {DATA: b"x"}), id="no method"),
        pytest.param(encoding.publish(V5, "in/1", b"early"), id="publish before CONNACK"),
        pytest.param(encoding.auth(AGAIN, {METHOD: "SCRAM-SHA-256"}), id="again before CONNACK"),
    ],
)
def test_what_may_not_come_in_between_ends_the_connection(guarded: int, wrong: bytes) -> None:
    with Raw(guarded) as raw:
        begin(raw, client_of("SCRAM-SHA-256"), "SCRAM-SHA-256")
        raw.send(wrong)
        with pytest.raises(AssertionError, match="hung up"):
            raw.frame()


def test_auth_without_a_method_in_connect_is_an_error(guarded: int) -> None:
    with Raw(guarded) as raw:
        packet = Connect(V5, new_name("dev"), True, 60, {}, None, "alice", b"alice-secret")
        raw.send(encoding.connect(packet))
        code, properties = raw.connack()
        assert (code, METHOD in properties, DATA in properties) == (0, False, False)
        raw.send(encoding.auth(AGAIN, {METHOD: "SCRAM-SHA-256", DATA: b"n,,n=sam,r=abc"}))
        assert raw.reason(PacketType.DISCONNECT) == PROTOCOL_ERROR
