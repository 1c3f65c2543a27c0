"""Named attacks on a broker with all kinds of listeners: see docs/security-attacks.md."""

from __future__ import annotations

import resource
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import cramjam
import pytest
from confluent_kafka import Producer

from fuzz.target import TOPIC, Target, missing
from moldau.security.machine.scram import ScramClient, ScramMechanism
from moldau.wire.apis import ApiKey
from moldau.wire.batch_header import (
    ATTRIBUTES_POSITION,
    ATTRIBUTES_STRUCT,
    CRC_POSITION,
    CRC_STRUCT,
    HEADER_SIZE,
    LENGTH_STRUCT,
)
from moldau.wire.compression import Compression, compress
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    GetTelemetrySubscriptionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    ProduceRequest,
    PushTelemetryRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from moldau.wire.records import checksum, encode_batch
from support.raw import RawConnection
from support.waiting import eventually

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

#: Of a bomb and its checks; what a bomb holds is many times that.
MEMORY_BYTES_MAX = 400_000_000
SLOW_CONNECTIONS = 2_000


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    made = Target(tmp_path_factory.mktemp("broker"))
    made.start()
    try:
        yield made
        assert made.running
        assert " ERROR " not in made.broker.log.read_text()
    finally:
        made.broker.kill()


def admin(target: Target) -> RawConnection:
    connection = RawConnection(target.sasl)
    handshake = SaslHandshakeRequest(mechanism="PLAIN")
    assert connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake).error_code == 0
    login = SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret")
    assert connection.call(ApiKey.SASL_AUTHENTICATE, 2, login).error_code == 0
    return connection


# Decompression bombs.


def bomb(codec: Compression) -> bytes:
    """A batch under max.message.bytes with a right checksum that holds as much as it can: with
    gzip and zstd a gigabyte and more, with snappy twenty times its size."""
    chunk = bytes(1 << 24)
    if codec is Compression.GZIP:
        once = bytes(cramjam.gzip.compress(chunk, 9))
        packed = once * 60
    elif codec is Compression.ZSTD:
        packed = bytes(cramjam.zstd.compress(chunk, 3)) * 200
    elif codec is Compression.LZ4:
        # Makes data 255 times smaller at most.
        packed = compress(codec, bytes(200_000_000))
    else:
        block = bytes(cramjam.snappy.compress_raw(bytes(1 << 20)))
        head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
        packed = head + (struct.pack(">i", len(block)) + block) * 20
    batch = bytearray(encode_batch([(None, b"x", 1, [])])[:HEADER_SIZE] + packed)
    ATTRIBUTES_STRUCT.pack_into(batch, ATTRIBUTES_POSITION, codec)
    LENGTH_STRUCT.pack_into(batch, 8, len(batch) - 12)
    CRC_STRUCT.pack_into(batch, CRC_POSITION, checksum(batch, 0, len(batch)))
    return bytes(batch)


def peak_bytes(target: Target) -> int:
    status = Path(f"/proc/{target.broker.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    "codec", [each for each in Compression if each], ids=lambda each: each.name
)
def test_a_batch_that_expands_without_end_is_refused(target: Target, codec: Compression) -> None:
    data = bomb(codec)
    partition = ProduceRequest.PartitionProduceData(index=0, records=data)
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    with admin(target) as connection:
        answer = connection.call(ApiKey.PRODUCE, 9, request)
    code = answer.responses[0].partition_responses[0].error_code
    is_small = codec is Compression.SNAPPY
    assert code == (ErrorCode.INVALID_RECORD if is_small else ErrorCode.MESSAGE_TOO_LARGE)
    assert peak_bytes(target) < MEMORY_BYTES_MAX


def test_metrics_of_clients_are_not_decompressed(target: Target) -> None:
    packed = bytes(cramjam.zstd.compress(bytes(1 << 28), 3))
    with RawConnection(target.plaintext) as connection:
        granted = connection.call(
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            0,
            GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=77)),
        )
        push = PushTelemetryRequest(
            client_instance_id=UUID(int=77),
            subscription_id=granted.subscription_id,
            compression_type=4,
            metrics=packed,
        )
        connection.call(ApiKey.PUSH_TELEMETRY, 0, push)
    assert peak_bytes(target) < MEMORY_BYTES_MAX


# Slow and idle connections.


def test_slow_connections_do_not_keep_others_waiting(target: Target) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < SLOW_CONNECTIONS + 500:
        pytest.skip(f"the limit on open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SLOW_CONNECTIONS + 500), hard))
    sockets = target.descriptors()
    ports = (target.plaintext, target.ssl, target.sasl, target.controller)
    slow: list[socket.socket] = []
    failures: list[object] = []
    delivered: list[object] = []
    stopping = threading.Event()

    def work() -> None:
        producer = Producer(target.client | {"error_cb": failures.append})

        def on_delivery(error: object, _: object) -> None:
            (delivered if error is None else failures).append(error)

        while not stopping.is_set():
            producer.produce(TOPIC, b"good", partition=1, on_delivery=on_delivery)
            producer.flush(30)

    good = threading.Thread(target=work)
    good.start()
    try:
        for number in range(SLOW_CONNECTIONS):
            made = socket.create_connection(("127.0.0.1", ports[number % len(ports)]))
            slow.append(made)
            if number % 5:
                # The others say nothing at all.
                made.sendall(b"\x16" if number % len(ports) == 1 else b"\x00")
        eventually(
            lambda: target.descriptors() >= sockets + SLOW_CONNECTIONS, what="all are accepted"
        )
        before = len(delivered)
        eventually(lambda: len(delivered) >= before + 100, what="the good client goes on")
        for made in slow[::3]:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        for made in slow:
            made.close()
        stopping.set()
        good.join(60)
    assert failures == []
    eventually(lambda: target.descriptors() <= sockets + 3, what="all are closed")


# Downgrades.


def test_old_versions_of_tls_are_refused(target: Target) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    # Their names are deprecated, which is the point.
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version, context.maximum_version = (
            ssl.TLSVersion.TLSv1,
            ssl.TLSVersion.TLSv1_1,
        )
    with (
        socket.create_connection(("127.0.0.1", target.ssl)) as made,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(made)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "LOGIN", "plain", "", "SCRAM-SHA-1"])
def test_a_mechanism_that_is_not_enabled_ends_the_login(
    target: Target, mechanism: str, version: int
) -> None:
    with RawConnection(target.sasl) as connection:
        handshake = SaslHandshakeRequest(mechanism=mechanism)
        answer = connection.call(ApiKey.SASL_HANDSHAKE, version, handshake)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert connection.closed_by_broker()


def test_no_request_is_served_on_a_sasl_listener_without_a_login(target: Target) -> None:
    for port in (target.sasl, target.controller):
        with RawConnection(port) as connection:
            connection.send(ApiKey.METADATA, 12, MetadataRequest(topics=None))
            assert connection.closed_by_broker()


# Paths.

BAD_NAMES = ["../x", ".", "..", "a/b", "a\\b", "a\x00b", "/etc/passwd", "", "x" * 250, "ünïcode"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_would_leave_the_log_directory_is_refused(target: Target, name: str) -> None:
    folder = target.broker.log.parent
    before = sorted(path for path in folder.rglob("*") if path.is_dir())
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with admin(target) as connection:
        answer = connection.call(
            ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=5000)
        )
        assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        asked = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=True,
        )
        found = connection.call(ApiKey.METADATA, 9, asked)
        assert found.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        deletion = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=5000
        )
        gone = connection.call(ApiKey.DELETE_TOPICS, 6, deletion)
        assert gone.responses[0].error_code != ErrorCode.NONE
    assert sorted(path for path in folder.rglob("*") if path.is_dir()) == before


@pytest.mark.parametrize("path", ["../x", "/", "/tmp", "data/..", "\x00", ""])
def test_replicas_move_to_configured_directories_only(target: Target, path: str) -> None:
    topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=[topic])
    with admin(target) as connection:
        answer = connection.call(
            ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest(dirs=[directory])
        )
    assert answer.results[0].partitions[0].error_code == ErrorCode.LOG_DIR_NOT_FOUND


@pytest.mark.parametrize("value", ["${env:HOME}", "${file:/etc/passwd:root}", "${dir:/etc:passwd}"])
def test_variables_in_requests_are_not_resolved(target: Target, value: str) -> None:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value=value)
    altered = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2, resource_name=TOPIC, configs=[config]
    )
    with admin(target) as connection:
        answer = connection.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            IncrementalAlterConfigsRequest(resources=[altered]),
        )
    result = answer.responses[0]
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert value in result.error_message


# Replays.


def test_a_login_cannot_be_replayed(target: Target) -> None:
    """The second message of an exchange holds the server's nonce, a fresh one each time."""
    mechanism = ScramMechanism.named("SCRAM-SHA-256")
    assert mechanism is not None
    client = ScramClient(mechanism, username="sam", password="sam-secret", nonce="fixed")
    sent = [client.evaluate(b"")]
    codes = []
    for _ in range(2):
        with RawConnection(target.sasl) as connection:
            handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
            connection.call(ApiKey.SASL_HANDSHAKE, 1, handshake)
            first = SaslAuthenticateRequest(auth_bytes=sent[0] or b"")
            challenge = connection.call(ApiKey.SASL_AUTHENTICATE, 2, first).auth_bytes
            if len(sent) == 1:
                sent.append(client.evaluate(bytes(challenge)))
            final = SaslAuthenticateRequest(auth_bytes=sent[1] or b"")
            codes.append(connection.call(ApiKey.SASL_AUTHENTICATE, 2, final).error_code)
    assert codes == [ErrorCode.NONE, ErrorCode.SASL_AUTHENTICATION_FAILED]
