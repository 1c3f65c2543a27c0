"""Logins by SASL over SASL_PLAINTEXT: by which clients, with which errors, for how long."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer as LibrdkafkaProducer
from confluent_kafka.admin import (
    AdminClient,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import ScramCredentialInfo as LibrdkafkaInfo
from confluent_kafka.admin import ScramMechanism as LibrdkafkaMechanism
from kafka import KafkaProducer

from moldau.client import Admin, Consumer, Producer
from moldau.client.admin import (
    KafkaPrincipal,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from moldau.client.admin import UserScramCredentialUpsertion as Upsertion
from moldau.client.errors import (
    DelegationTokenNotFoundError,
    DelegationTokenRequestNotAllowedError,
    KafkaError,
    ResourceNotFoundError,
    SaslAuthenticationFailedError,
    UnacceptableCredentialError,
)
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    CreateTopicsRequest,
    DescribeDelegationTokenRequest,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from support.processes import BrokerProcess, kafka_missing, kafka_tool
from support.raw import RawConnection
from support.secured import client_settings, jaas, secured_kafka, secured_moldau

CREDENTIALS = [
    ("PLAIN", "alice", "alice-secret"),
    ("SCRAM-SHA-256", "sam", "sam-secret"),
    ("SCRAM-SHA-512", "sam", "sam-secret"),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with secured_moldau(tmp_path_factory.mktemp("secured")) as running:
        yield running


def settings(broker: BrokerProcess, *login: str, **more: str) -> dict[str, str]:
    return client_settings(broker.bootstrap, *login, **more)


def admin_of(broker: BrokerProcess) -> Admin:
    return Admin(settings(broker, "PLAIN", "admin", "admin-secret"))


@pytest.mark.parametrize("login", CREDENTIALS)
def test_moldau_client(broker: BrokerProcess, login: tuple[str, str, str]) -> None:
    topic = f"own-{login[0]}"
    with Producer(settings(broker, *login)) as producer:
        producer.send(topic, b"hello").result(30)
    config = settings(broker, *login) | {"auto.offset.reset": "earliest", "group.id": topic}
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        found: list[object] = []
        while not found and time.monotonic() < deadline:
            found = [record.value for record in consumer.poll(1.0)]
    assert found == [b"hello"]


@pytest.mark.parametrize("login", CREDENTIALS)
def test_librdkafka(broker: BrokerProcess, login: tuple[str, str, str]) -> None:
    mechanism, username, password = login
    delivered: list[object] = []
    producer = LibrdkafkaProducer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": username,
            "sasl.password": password,
        }
    )
    producer.produce("librdkafka", b"x", on_delivery=lambda error, _: delivered.append(error))
    producer.flush(30)
    assert delivered == [None]


@pytest.mark.parametrize("login", CREDENTIALS)
def test_python_clients(broker: BrokerProcess, login: tuple[str, str, str]) -> None:
    mechanism, username, password = login
    options = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": username,
        "sasl_plain_password": password,
    }
    blocking = KafkaProducer(**options)
    assert blocking.send("python", b"x").get(30).topic == "python"
    blocking.close()

    async def send() -> None:
        producer = AIOKafkaProducer(**options)
        await producer.start()
        await producer.send_and_wait("python", b"y")
        await producer.stop()

    asyncio.run(send())


@pytest.mark.parametrize(
    ("login", "message"),
    [
        (("PLAIN", "alice", "wrong"), "Authentication failed: Invalid username or password"),
        (("PLAIN", "nobody", "wrong"), "Authentication failed: Invalid username or password"),
        (("SCRAM-SHA-256", "sam", "wrong"), "due to invalid credentials with SASL mechanism"),
        (("SCRAM-SHA-512", "nobody", "wrong"), "due to invalid credentials with SASL mechanism"),
    ],
)
def test_a_failed_login_is_raised_at_once(
    broker: BrokerProcess, login: tuple[str, str, str], message: str
) -> None:
    began = time.monotonic()
    with (
        Producer(settings(broker, *login)) as producer,
        pytest.raises(SaslAuthenticationFailedError, match=message) as caught,
    ):
        producer.send("t", b"x").result(30)
    assert not caught.value.retriable
    assert "wrong" not in str(caught.value)
    with Admin(settings(broker, *login)) as admin, pytest.raises(SaslAuthenticationFailedError):
        admin.list_topics()
    config = settings(broker, *login) | {"group.id": "g"}
    with Consumer(config) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(SaslAuthenticationFailedError):
            consumer.poll(20.0)
    assert time.monotonic() - began < 20


def test_a_missing_line_is_explained(broker: BrokerProcess) -> None:
    config = settings(broker, "PLAIN", "a", "b")
    del config["sasl.jaas.config"]
    with pytest.raises(KafkaError, match=r"sasl\.jaas\.config=org.*PlainLoginModule"):
        Producer(config)


def test_large_frames_are_refused_before_the_login_only(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        connection.socket.sendall((524_289).to_bytes(4, "big"))
        assert connection.closed_by_broker()
    with RawConnection(broker.port) as connection:
        log_in(connection)
        huge = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name="x" * 200)] * 3_000,
            allow_auto_topic_creation=False,
        )
        assert len(connection.call(ApiKey.METADATA, 9, huge).topics) > 0


def log_in(connection: RawConnection, username: str = "alice", version: int = 2) -> int:
    handshake = SaslHandshakeRequest(mechanism="PLAIN")
    assert connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake).error_code == 0
    token = f"\0{username}\0{username}-secret".encode()
    request = SaslAuthenticateRequest(auth_bytes=token)
    answer = connection.call(ApiKey.SASL_AUTHENTICATE, version, request)
    assert answer.error_code == 0
    return int(answer.session_lifetime_ms)


# Users by the Admin API and the tools.


def test_users_by_the_admin_api(broker: BrokerProcess) -> None:
    with admin_of(broker) as admin:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
        admin.alter_user_scram_credentials([Upsertion("eve", info, b"eve-secret")])
        found = admin.describe_user_scram_credentials(["eve"])["eve"]
        assert found.credential_infos == (info,)
        with Producer(settings(broker, "SCRAM-SHA-256", "eve", "eve-secret")) as producer:
            producer.send("users", b"x").result(30)
        gone = UserScramCredentialDeletion("eve", ScramMechanism.SCRAM_SHA_256)
        admin.alter_user_scram_credentials([gone])
        with pytest.raises(ResourceNotFoundError):
            admin.alter_user_scram_credentials([gone])
        with pytest.raises(ResourceNotFoundError):
            admin.describe_user_scram_credentials(["eve"])
        few = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 1)
        with pytest.raises(UnacceptableCredentialError, match="Too few iterations"):
            admin.alter_user_scram_credentials([Upsertion("eve", few, b"eve-secret")])
    with (
        Producer(settings(broker, "SCRAM-SHA-256", "eve", "eve-secret")) as producer,
        pytest.raises(SaslAuthenticationFailedError),
    ):
        producer.send("users", b"x").result(30)


def test_users_by_librdkafkas_admin(broker: BrokerProcess) -> None:
    admin = AdminClient(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admin-secret",
        }
    )
    info = LibrdkafkaInfo(LibrdkafkaMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("rod", info, b"rod-secret")
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result(30)
    described = admin.describe_user_scram_credentials(["rod"])["rod"].result(30)
    assert described.scram_credential_infos[0].iterations == 4096
    with Producer(settings(broker, "SCRAM-SHA-512", "rod", "rod-secret")) as producer:
        producer.send("users", b"x").result(30)


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_users_by_kafkas_own_tool(broker: BrokerProcess, tmp_path: Path) -> None:
    config = tmp_path / "admin.properties"
    login = settings(broker, "SCRAM-SHA-256", "sam", "sam-secret")
    config.write_text("".join(f"{key}={value}\n" for key, value in login.items()))
    words = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
    words += ["--entity-type", "users", "--entity-name", "kim"]
    change = "SCRAM-SHA-512=[iterations=8192,password=kim-secret]"
    tool = "kafka.admin.ConfigCommand"
    altered = kafka_tool(tool, *words, "--alter", "--add-config", change)
    assert altered.returncode == 0, altered.stderr
    with admin_of(broker) as admin:
        found = admin.describe_user_scram_credentials(["kim"])["kim"]
    assert found.credential_infos == (ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192),)
    with Producer(settings(broker, "SCRAM-SHA-512", "kim", "kim-secret")) as producer:
        producer.send("users", b"x").result(30)


# Delegation tokens.


def test_a_delegation_token_from_its_creation_to_its_end(broker: BrokerProcess) -> None:
    alice = settings(broker, "PLAIN", "alice", "alice-secret")
    with Admin(alice) as admin:
        token = admin.create_delegation_token(
            renewers=[KafkaPrincipal("User", "bob")], max_lifetime_ms=3_600_000
        )
        mine = admin.describe_delegation_token([KafkaPrincipal("User", "alice")])
        assert [each.token_info.token_id for each in mine] == [token.token_info.token_id]
        assert mine[0].hmac == token.hmac
    password = base64.b64encode(token.hmac).decode()
    by_token = settings(
        broker, "SCRAM-SHA-256", token.token_info.token_id, password, tokenauth="true"
    )
    with Producer(by_token) as producer:
        producer.send("tokens", b"x").result(30)
    with Admin(by_token) as admin, pytest.raises(DelegationTokenRequestNotAllowedError):
        admin.create_delegation_token()
    with Admin(settings(broker, "PLAIN", "bob", "bob-secret")) as admin:
        until = admin.renew_delegation_token(token.hmac, renew_time_period_ms=1_000_000)
        assert until < token.token_info.max_timestamp
    with admin_of(broker) as admin, pytest.raises(KafkaError, match="OWNER_MISMATCH"):
        admin.expire_delegation_token(token.hmac)
    with Admin(alice) as admin:
        admin.expire_delegation_token(token.hmac)
        with pytest.raises(DelegationTokenNotFoundError):
            admin.renew_delegation_token(token.hmac)
    with Producer(by_token) as producer, pytest.raises(SaslAuthenticationFailedError):
        producer.send("tokens", b"x").result(30)


# Sessions.


def test_clients_log_in_again_while_they_produce(tmp_path: Path) -> None:
    with secured_moldau(tmp_path, {"connections.max.reauth.ms": "1500"}) as broker:
        with RawConnection(broker.port) as connection:
            assert log_in(connection) == 1500
            assert connection.call(ApiKey.METADATA, 9, MetadataRequest()).brokers
            with pytest.raises(ConnectionError):
                ask_for_seconds(connection, 10)
        delivered: list[object] = []
        other = LibrdkafkaProducer(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": "sam",
                "sasl.password": "sam-secret",
            }
        )
        with Producer(settings(broker, "SCRAM-SHA-256", "sam", "sam-secret")) as producer:
            deadline = time.monotonic() + 5
            count = 0
            while time.monotonic() < deadline:
                futures = [producer.send("sessions", b"x") for _ in range(20)]
                other.produce("sessions", b"y", on_delivery=lambda e, _: delivered.append(e))
                for future in futures:
                    future.result(10)
                count += len(futures)
        other.flush(10)
        assert count > 20
        assert set(delivered) == {None}
        opened = broker.log.read_text()
        assert "has expired" in opened  # the raw connection
        assert opened.count("has expired") == 1


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_java_logs_in_again_while_it_produces(tmp_path: Path) -> None:
    with secured_moldau(tmp_path, {"connections.max.reauth.ms": "1500"}) as broker:
        config = tmp_path / "sam.properties"
        login = settings(broker, "SCRAM-SHA-256", "sam", "sam-secret")
        config.write_text("".join(f"{key}={value}\n" for key, value in login.items()))
        words = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
        words += ["--topic", "sessions", "--num-records", "250", "--throughput", "50"]
        done = kafka_tool(
            "org.apache.kafka.tools.ProducerPerformance", *words, "--record-size", "100"
        )
        assert done.returncode == 0, done.stderr
        assert "250 records sent" in done.stdout
        assert "has expired" not in broker.log.read_text()


def ask_for_seconds(connection: RawConnection, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))


def test_logins_are_audited(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    with secured_moldau(tmp_path, {"moldau.audit.file": str(audit)}) as broker:
        for login in (("PLAIN", "alice", "alice-secret"), ("SCRAM-SHA-256", "nobody", "x")):
            with Admin(settings(broker, *login)) as admin, suppress(SaslAuthenticationFailedError):
                admin.list_topics()
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    logins = [line for line in lines if {"PLAIN", "SCRAM-SHA-256"} & set(line.values())]
    assert any("User:alice" in line.values() for line in logins)
    assert any("invalid credentials" in str(line) for line in logins)
    assert "alice-secret" not in audit.read_text()


# Apache Kafka at the other end.


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    if kafka_missing() is not None:
        pytest.skip(str(kafka_missing()))
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.mark.parametrize("login", CREDENTIALS)
def test_the_client_logs_in_to_apache_kafka(
    kafka: BrokerProcess, login: tuple[str, str, str]
) -> None:
    with Producer(settings(kafka, *login)) as producer:
        producer.send("from-moldau", b"x").result(60)
    wrong = (*login[:2], "wrong")
    with (
        Producer(settings(kafka, *wrong)) as producer,
        pytest.raises(SaslAuthenticationFailedError, match="Authentication failed"),
    ):
        producer.send("from-moldau", b"x").result(60)


def test_a_token_of_apache_kafka(kafka: BrokerProcess) -> None:
    with Admin(settings(kafka, "PLAIN", "alice", "alice-secret")) as admin:
        token = admin.create_delegation_token()
    password = base64.b64encode(token.hmac).decode()
    deadline = time.monotonic() + 30
    while True:
        try:
            with Producer(
                settings(
                    kafka, "SCRAM-SHA-512", token.token_info.token_id, password, tokenauth="true"
                )
            ) as producer:
                producer.send("from-moldau", b"x").result(60)
            break
        except SaslAuthenticationFailedError:
            # Kafka answers before its own broker knows the token.
            if time.monotonic() > deadline:
                raise


FAILED = [
    ("PLAIN", b"\0alice\0wrong"),
    ("PLAIN", b"\0nobody\0wrong"),
    ("PLAIN", b"\0alice\0"),
    ("PLAIN", b"\0\0x"),
    ("PLAIN", b"bob\0alice\0alice-secret"),
    ("PLAIN", b"x"),
    ("PLAIN", b""),
    ("SCRAM-SHA-256", b"x"),
    ("SCRAM-SHA-256", b"n,a=bob,n=sam,r=abc"),
    ("SCRAM-SHA-256", b"y,,n=sam,r=abc"),
    ("SCRAM-SHA-256", b"p=tls-unique,,n=sam,r=abc"),
]


@pytest.mark.parametrize(("mechanism", "token"), FAILED)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_failed_logins_are_answered_as_by_apache_kafka(
    broker: BrokerProcess, kafka: BrokerProcess, mechanism: str, token: bytes, version: int
) -> None:
    answers = [failed_login(each.port, mechanism, token, version) for each in (broker, kafka)]
    assert answers[0] == answers[1]


def failed_login(port: int, mechanism: str, token: bytes, version: int) -> object:
    with RawConnection(port) as connection:
        handshake = SaslHandshakeRequest(mechanism=mechanism)
        assert connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake).error_code == 0
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = connection.call(ApiKey.SASL_AUTHENTICATE, version, request)
        assert connection.closed_by_broker()
    lifetime_ms = answer.session_lifetime_ms
    return answer.error_code, answer.error_message, bytes(answer.auth_bytes), lifetime_ms


def test_requests_out_of_order_are_answered_as_by_apache_kafka(
    broker: BrokerProcess, kafka: BrokerProcess
) -> None:
    assert out_of_order(broker.port) == out_of_order(kafka.port)


def out_of_order(port: int) -> list[object]:
    found: list[object] = []
    with RawConnection(port) as connection:
        connection.send(ApiKey.METADATA, 9, MetadataRequest())
        found.append(connection.closed_by_broker())
    with RawConnection(port) as connection:
        connection.send(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"x"))
        found.append(connection.closed_by_broker())
    with RawConnection(port) as connection:
        handshake = SaslHandshakeRequest(mechanism="GSSAPI")
        answer = connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake)
        found += [answer.error_code, sorted(answer.mechanisms), connection.closed_by_broker()]
    with RawConnection(port) as connection:
        connection.call(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        create = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")])
        answer = connection.call(ApiKey.CREATE_TOPICS, 7, create)
        found += [[each.error_code for each in answer.topics], connection.closed_by_broker()]
    with RawConnection(port) as connection:
        log_in(connection)
        handshake = SaslHandshakeRequest(mechanism="PLAIN")
        answer = connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake)
        found += [answer.error_code, list(answer.mechanisms)]
        request = SaslAuthenticateRequest(auth_bytes=b"x")
        answer = connection.call(ApiKey.SASL_AUTHENTICATE, 2, request)
        found += [answer.error_code, answer.error_message]
    return found


def test_lines_are_not_printed(broker: BrokerProcess) -> None:
    assert jaas("PLAIN", "a", "b").endswith('username="a" password="b";')
    output = broker.log.read_text()
    for secret in ("admin-secret", "alice-secret", "sam-secret", "the key of all tokens"):
        assert secret not in output


def scram_change(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=b"x" * 32,
    )


def scram_deletion(name: str, mechanism: int = 1) -> Any:
    return AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alteration(deletions: Any = (), upsertions: Any = ()) -> tuple[ApiKey, int, Message]:
    request = AlterUserScramCredentialsRequest(
        deletions=list(deletions), upsertions=list(upsertions)
    )
    return ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request


def description(*users: str) -> tuple[ApiKey, int, Message]:
    name = DescribeUserScramCredentialsRequest.UserName
    request = DescribeUserScramCredentialsRequest(users=[name(name=user) for user in users])
    return ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request


RENEWER = CreateDelegationTokenRequest.CreatableRenewers(principal_type="Group", principal_name="x")
REQUESTS = [
    pytest.param(description("sam"), id="describe"),
    pytest.param(description("nobody"), id="describe unknown"),
    pytest.param(description("sam", "sam"), id="describe twice"),
    pytest.param(alteration(upsertions=[scram_change("")]), id="no name"),
    pytest.param(alteration(upsertions=[scram_change("a", 0)]), id="unknown mechanism"),
    pytest.param(alteration(upsertions=[scram_change("a", 7)]), id="no mechanism"),
    pytest.param(alteration(upsertions=[scram_change("a", 1, 1)]), id="few iterations"),
    pytest.param(alteration(upsertions=[scram_change("a", 1, 99_999)]), id="many iterations"),
    pytest.param(alteration(upsertions=[scram_change("a")] * 2), id="twice"),
    pytest.param(alteration([scram_deletion("a")], [scram_change("a")]), id="both"),
    pytest.param(alteration([scram_deletion("nobody")]), id="delete unknown"),
    pytest.param(alteration([scram_deletion("a", 9)]), id="delete no mechanism"),
    pytest.param(alteration(), id="nothing"),
    pytest.param(
        (
            ApiKey.CREATE_DELEGATION_TOKEN,
            3,
            CreateDelegationTokenRequest(owner_principal_name=None, renewers=[RENEWER]),
        ),
        id="renewer is no user",
    ),
    pytest.param(
        (ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(hmac=b"unknown")),
        id="renew unknown",
    ),
    pytest.param(
        (ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ExpireDelegationTokenRequest(hmac=b"unknown")),
        id="expire unknown",
    ),
    pytest.param(
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, DescribeDelegationTokenRequest(owners=[])),
        id="describe nobody's",
    ),
]


@pytest.mark.parametrize("asked", REQUESTS)
def test_requests_about_users_are_answered_as_by_apache_kafka(
    broker: BrokerProcess, kafka: BrokerProcess, asked: tuple[ApiKey, int, Message]
) -> None:
    answers = []
    for each in (broker, kafka):
        with RawConnection(each.port) as connection:
            log_in(connection)
            answers.append(shown(connection.call(*asked)))
    assert answers[0] == answers[1]


def shown(value: Any) -> Any:
    if isinstance(value, Message):
        names = [name for name in value.__slots__ if name != "unknown_tagged_fields"]
        return {name: shown(getattr(value, name)) for name in names}
    if isinstance(value, list):
        # Kafka's are in the order of a hash map.
        return sorted((shown(each) for each in value), key=str)
    return value
