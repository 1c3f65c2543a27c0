"""What is measured, one function a figure. Clients are confluent-kafka or a bare socket."""

from __future__ import annotations

import math
import socket
import struct
import time
import uuid
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.bare import ANSWER_SIZE, receive_frame
from bench.servers import Server
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode
from moldau.wire.framing import encode_request_frame
from moldau.wire.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
)
from moldau.wire.records import encode_batch

CHUNK = 1000
RAW_IN_FLIGHT = 5


@dataclass(frozen=True, slots=True)
class Throughput:
    messages: int
    bytes: int
    seconds: float
    broker_cpu_seconds: float

    @property
    def mb_per_second(self) -> float:
        return self.bytes / self.seconds / 1e6

    @property
    def cpu_seconds_per_gb(self) -> float:
        return self.broker_cpu_seconds / (self.bytes / 1e9)


def produce(
    server: Server, topic: str, *, message_size: int, batch_size: int, total_bytes: int
) -> Throughput:
    producer = Producer(
        {
            **server.client_config,
            "acks": 1,
            "linger.ms": 5,
            "batch.size": batch_size,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 512 * 1024,
        }
    )
    producer.list_topics(topic, timeout=30)
    chunk = [{"value": bytes(message_size)} for _ in range(CHUNK)]
    chunks = math.ceil(total_bytes / (message_size * CHUNK))
    cpu_before, started = server.cpu_seconds(), time.perf_counter()
    for _ in range(chunks):
        queued = 0
        while queued < CHUNK:
            queued += producer.produce_batch(topic, chunk[queued:], partition=0)
            producer.poll(0 if queued == CHUNK else 0.005)
    left = producer.flush(120)
    seconds = time.perf_counter() - started
    if left:
        raise RuntimeError(f"{left} messages were not delivered to {server.name}")
    count = chunks * CHUNK
    cpu = server.cpu_seconds() - cpu_before
    return Throughput(count, count * message_size, seconds, cpu)


def consume(server: Server, topic: str, *, message_size: int, count: int) -> Throughput:
    consumer = Consumer(
        {
            **server.client_config,
            "group.id": f"bench-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 4 << 20,
            "queued.max.messages.kbytes": 256 * 1024,
            # By default librdkafka pauses for a second once it is 100,000 messages ahead of the
            # program, so that a broker that fills its queue sooner is idle for longer.
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    cpu_before, started = server.cpu_seconds(), time.perf_counter()
    seen = 0
    while seen < count:
        messages = consumer.consume(10_000, timeout=1)
        if not messages:
            raise RuntimeError(f"{server.name} delivered {seen} of {count} messages, then nothing")
        seen += len(messages)
    seconds = time.perf_counter() - started
    cpu = server.cpu_seconds() - cpu_before
    consumer.close()
    return Throughput(seen, seen * message_size, seconds, cpu)


def raw_fetch(server: Server, topic: str, *, total_bytes: int) -> Throughput:
    """Fetch 1 MB at a time over one socket and throw it away, from offset 0 again and again."""
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=ANSWER_SIZE,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=ANSWER_SIZE
                    )
                ],
            )
        ],
    )
    frame = encode_request_frame(API_BY_KEY[ApiKey.FETCH], 11, 1, "bench", request)
    buffer = memoryview(bytearray(4 << 20))
    received = 0
    with server.connect() as connection:
        cpu_before, started = server.cpu_seconds(), time.perf_counter()
        while received < total_bytes:
            connection.sendall(frame)
            if not receive_frame(connection, buffer):
                raise RuntimeError(f"{server.name} closed the connection")
            size = struct.unpack_from(">i", buffer)[0]
            if received == 0:
                _check_fetched(buffer[: 4 + size])
            received += size
        seconds = time.perf_counter() - started
        cpu = server.cpu_seconds() - cpu_before
    return Throughput(0, received, seconds, cpu)


def _check_fetched(frame: memoryview) -> None:
    response = decode(FetchResponse, 11, frame, 8)
    partition = response.responses[0].partitions[0]
    if partition.error_code or len(partition.records or b"") < ANSWER_SIZE // 2:
        raise RuntimeError(f"fetch answered {partition.error_code}, too little data to measure")


def bare_send(server: Server, *, total_bytes: int) -> Throughput:
    buffer = memoryview(bytearray(4 << 20))
    received = 0
    with server.connect() as connection:
        cpu_before, started = server.cpu_seconds(), time.perf_counter()
        while received < total_bytes:
            connection.sendall(struct.pack(">i", 60) + bytes(60))
            receive_frame(connection, buffer)
            received += ANSWER_SIZE
        seconds = time.perf_counter() - started
        cpu = server.cpu_seconds() - cpu_before
    return Throughput(0, received, seconds, cpu)


def produce_frame(topic: str) -> bytes:
    batch = encode_batch([(b"key", bytes(100), 0, ())])
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)],
            )
        ],
    )
    return encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], 9, 1, "bench", request)


def fetch_frame(topic: str, partitions: int) -> bytes:
    """Asks for one record of the first partition, and all others in vain; never waits."""
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=index, fetch_offset=0, partition_max_bytes=1
                    )
                    for index in range(partitions)
                ],
            )
        ],
    )
    return encode_request_frame(API_BY_KEY[ApiKey.FETCH], 11, 1, "bench", request)


def raw_produce(server: Server, topic: str, *, total_bytes: int) -> Throughput:
    """128 KB batches over one socket, five in flight, as a client that has them at hand."""
    now_ms = int(time.time() * 1000)
    batch = encode_batch([(None, bytes(1000), now_ms, ())] * 128)
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)],
            )
        ],
    )
    frame = encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], 9, 1, "bench", request)
    buffer = memoryview(bytearray(1 << 16))
    count = math.ceil(total_bytes / len(frame))
    with server.connect() as connection:
        cpu_before, started = server.cpu_seconds(), time.perf_counter()
        sent = answered = have = 0
        while answered < count:
            while sent < min(count, answered + RAW_IN_FLIGHT):
                connection.sendall(frame)
                sent += 1
            received = connection.recv_into(buffer[have:])
            if not received:
                raise RuntimeError(f"{server.name} closed the connection")
            have += received
            while have >= 4 and have >= (size := 4 + struct.unpack_from(">i", buffer)[0]):
                have -= size
                buffer[:have] = bytes(buffer[size : size + have])
                answered += 1
        seconds = time.perf_counter() - started
        cpu = server.cpu_seconds() - cpu_before
    return Throughput(0, count * len(frame), seconds, cpu)


@dataclass(frozen=True, slots=True)
class Latency:
    p50_us: float
    p99_us: float


def round_trips(server: Server, frame: bytes, *, count: int) -> Latency:
    """One request at a time over one connection."""
    buffer = memoryview(bytearray(1 << 16))
    times = []
    with server.connect() as connection:
        for _ in range(count):
            started = time.perf_counter()
            connection.sendall(frame)
            receive_frame(connection, buffer)
            times.append(time.perf_counter() - started)
    times.sort()
    return Latency(times[count // 2] * 1e6, times[count * 99 // 100] * 1e6)


def _call(connection: socket.socket, buffer: memoryview, frame: bytes) -> memoryview:
    connection.sendall(frame)
    if not receive_frame(connection, buffer):
        raise RuntimeError("the broker closed the connection")
    return buffer[: 4 + struct.unpack_from(">i", buffer)[0]]


def first_acknowledged_seconds(server: Server, started: float) -> float:
    """Seconds from `started` (monotonic, the process's start) to one acknowledged produce."""
    buffer = memoryview(bytearray(1 << 16))
    metadata = encode_request_frame(
        API_BY_KEY[ApiKey.METADATA],
        4,
        1,
        "bench",
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="first")]),
    )
    deadline = started + 30
    with server.connect() as connection:
        while time.monotonic() < deadline:
            _call(connection, buffer, metadata)
            answer = _call(connection, buffer, produce_frame("first"))
            response = decode(ProduceResponse, 9, answer, 9)
            if response.responses[0].partition_responses[0].error_code == 0:
                return time.monotonic() - started
            time.sleep(0.001)
    raise RuntimeError(f"{server.name} acknowledged nothing within 30 s")
