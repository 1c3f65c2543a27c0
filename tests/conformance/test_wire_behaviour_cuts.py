"""Clients that leave, stall or lose their connections: nobody else notices, nothing is doubled.

The cuts come from a proxy that the broker advertises as its own address, so that every connection
of an unmodified client goes through it.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from moldau.wire.apis import ApiKey
from moldau.wire.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from moldau.wire.records import decode_batch, encode_batch, iterate_headers
from support.processes import BrokerProcess, free_port, moldau
from support.raw import RawConnection
from support.waiting import eventually

WAITING = 200
LOG_FILES_MAX = 10  # what a partition may open once it is written to
PRODUCED = 30_000
CUTS_MIN = 10


class CuttingProxy:
    """Forwards connections to a port and cuts each after a while, often before an answer is back.

    Cutting the answers a little before the requests is what makes a client send again something
    that the broker has already written.
    """

    def __init__(self, port: int, *, seed: int) -> None:
        self.cuts = 0
        self._target = port
        self._random = random.Random(seed)
        self._cutting = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def stop_cutting(self) -> None:
        self._cutting = False

    def close(self) -> None:
        _shut(self._listener)  # or its thread would go on accepting
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._target))
            for pair in ((client, broker), (broker, client)):
                threading.Thread(target=self._forward, args=pair, daemon=True).start()
            if self._cutting:
                delay_s = self._random.expovariate(1 / 0.15)
                threading.Timer(delay_s, self._cut, (client, broker)).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass  # cut: the other direction ends by itself
        finally:
            _shut(target)

    def _cut(self, client: socket.socket, broker: socket.socket) -> None:
        if not self._cutting:
            return
        self.cuts += 1
        _shut(client)
        _shut(broker)


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the peer may have been faster
        sock.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[BrokerProcess, CuttingProxy]]:
    port = free_port()
    proxy = CuttingProxy(port, seed=7)
    advertised = f"advertised.listeners=PLAINTEXT://127.0.0.1:{proxy.port}"
    with moldau(tmp_path, [advertised], port=port) as broker:
        proxy.start()
        yield broker, proxy
        proxy.close()


def create_topic(port: int, name: str, *, partitions: int = 1) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    with RawConnection(port) as connection:
        response = connection.call(ApiKey.CREATE_TOPICS, 7, request)
        assert response.topics[0].error_code == 0


def fetch_request(topic: str, partition: int, offset: int, *, wait_ms: int) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 24,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24
                    )
                ],
            )
        ],
    )


def produce(connection: RawConnection, topic: str, value: bytes) -> None:
    partition = ProduceRequest.PartitionProduceData(
        index=0, records=encode_batch([(None, value, int(time.time() * 1000), ())])
    )
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic_data])
    response = connection.call(ApiKey.PRODUCE, 9, request)
    assert response.responses[0].partition_responses[0].error_code == 0


def values_of(port: int, topic: str, partition: int) -> list[bytes]:
    values: list[bytes] = []
    with RawConnection(port) as connection:
        while True:
            request = fetch_request(topic, partition, len(values), wait_ms=0)
            response = connection.call(ApiKey.FETCH, 12, request)
            records = response.responses[0].partitions[0].records
            if not records:
                return values
            for position, _ in iterate_headers(records):
                values += [record.value or b"" for record in decode_batch(records, position)]


def open_files(broker: BrokerProcess) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


@pytest.mark.slow("connections break all the time")
def test_an_idempotent_producer_writes_each_record_once_over_broken_connections(
    proxied: tuple[BrokerProcess, CuttingProxy],
) -> None:
    broker, proxy = proxied
    create_topic(broker.port, "cut", partitions=2)
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{proxy.port}",
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 20,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 50,
            # Or it forgets its only broker at a cut, and looks for topics once a second.
            "metadata.recovery.strategy": "none",
            "log_level": 0,
        }
    )
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    def enqueue(index: int) -> None:
        while True:
            try:
                producer.produce(
                    "cut", str(index).encode(), partition=index % 2, on_delivery=on_delivery
                )
                return
            except BufferError:
                producer.poll(0.05)

    sent = 0
    # As many as planned, and on until there was something to survive.
    while sent < PRODUCED or proxy.cuts < CUTS_MIN:
        enqueue(sent)
        sent += 1
        producer.poll(0.002 if sent % 50 == 0 else 0)
    proxy.stop_cutting()
    assert producer.flush(60) == 0
    assert failed == []
    for partition in range(2):
        expected = [str(index).encode() for index in range(partition, sent, 2)]
        assert values_of(broker.port, "cut", partition) == expected


def test_a_record_wakes_all_who_wait_though_others_have_left(broker: BrokerProcess) -> None:
    create_topic(broker.port, "awaited")
    before = open_files(broker)
    connections = [RawConnection(broker.port) for _ in range(WAITING)]
    for connection in connections:
        connection.send(ApiKey.FETCH, 12, fetch_request("awaited", 0, 0, wait_ms=60_000))
    leaving, staying = connections[: WAITING // 2], connections[WAITING // 2 :]
    for connection in leaving:
        connection.close()
    eventually(
        lambda: open_files(broker) <= before + len(staying) + LOG_FILES_MAX,
        what="those who left are forgotten",
    )
    with RawConnection(broker.port) as producer:
        produce(producer, "awaited", b"at last")
    for connection in staying:
        records = connection.receive(ApiKey.FETCH, 12).responses[0].partitions[0].records
        assert decode_batch(records)[0].value == b"at last"
        connection.close()
    eventually(
        lambda: open_files(broker) <= before + LOG_FILES_MAX, what="no descriptor is left behind"
    )


def test_readers_who_stop_reading_keep_nobody_waiting(broker: BrokerProcess) -> None:
    create_topic(broker.port, "stalled")
    with RawConnection(broker.port) as writer:
        for _ in range(8):
            produce(writer, "stalled", b"x" * 1_000_000)
        stalled = [RawConnection(broker.port) for _ in range(20)]
        for connection in stalled:
            # Eight megabytes each, three times over, and not one byte of it read.
            for _ in range(3):
                connection.send(ApiKey.FETCH, 12, fetch_request("stalled", 0, 0, wait_ms=0))
        # Behind the others it would wait without end.
        for _ in range(50):
            produce(writer, "stalled", b"y")
        resident = Path(f"/proc/{broker.pid}/status").read_text()
        megabytes = int(resident.partition("VmRSS:")[2].split()[0]) // 1024
        assert megabytes < 200, "answers that nobody reads are piling up in memory"
        for connection in stalled:
            connection.close()
