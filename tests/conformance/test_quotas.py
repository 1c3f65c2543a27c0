"""Quotas of a running broker: throttle times in responses, muted connections, refused mutations."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin
from moldau.client.admin import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaOp,
    NewTopic,
)
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from moldau.wire.records import encode_batch
from support.processes import BrokerProcess, kafka_missing, kafka_tool, moldau
from support.raw import RawConnection
from support.repeats import mostly_long

OLDER = "the same with another version"
#: The client id of RawConnection.
RAW = {"client-id": "raw"}
BATCH = encode_batch([(None, b"x" * 10_000, int(time.time() * 1000), ())])


@pytest.fixture(scope="module")
def quota_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with moldau(tmp_path_factory.mktemp("quotas")) as running:
        with Admin(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics([NewTopic("limited", 1)])
        yield running


@pytest.fixture
def raw(quota_broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(quota_broker.port) as connection:
        yield connection


class Limit:
    """Quotas for the time of a test."""

    def __init__(self, broker: BrokerProcess, names: dict[str, str | None], **values: float):
        self._broker = broker
        self._names = names
        self._values = values

    def __enter__(self) -> None:
        self._alter(self._values)

    def __exit__(self, *_: object) -> None:
        self._alter(dict.fromkeys(self._values))

    def _alter(self, values: Any) -> None:
        ops = tuple(ClientQuotaOp(key, value) for key, value in values.items())
        entity = ClientQuotaEntity.of(self._names)
        with Admin(bootstrap_servers=self._broker.bootstrap) as admin:
            admin.alter_client_quotas([ClientQuotaAlteration(entity, ops)])


def produce(version: int = 12, acks: int = -1) -> tuple[ApiKey, int, ProduceRequest]:
    partition = ProduceRequest.PartitionProduceData(index=0, records=BATCH)
    topic = ProduceRequest.TopicProduceData(name="limited", partition_data=[partition])
    return ApiKey.PRODUCE, version, ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[topic]
    )  # fmt: skip


def fetch(
    version: int = 11, offset: int = 0, *, size: int = 1 << 20
) -> tuple[ApiKey, int, FetchRequest]:
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=size
    )
    return ApiKey.FETCH, version, FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic="limited", partitions=[partition])],
    )  # fmt: skip


@pytest.mark.parametrize("version", mostly_long([12, 3, 8, 9], OLDER, keep=2))
def test_a_producer_over_its_quota_gets_a_throttle_time_and_is_muted(
    quota_broker: BrokerProcess, raw: RawConnection, version: int
) -> None:
    with Limit(quota_broker, RAW, producer_byte_rate=2_000.0):
        throttled = 0
        for _ in range(10):
            response = raw.call(*produce(version))
            assert response.responses[0].partition_responses[0].error_code == 0
            throttled = response.throttle_time_ms
            if throttled:
                break
        assert throttled > 0
        # The response came at once; the next request is handled when the time is over.
        started = time.monotonic()
        raw.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert (time.monotonic() - started) * 1000 >= throttled - 100
    with RawConnection(quota_broker.port) as another:
        assert another.call(*produce(version)).throttle_time_ms == 0


def test_a_muted_connection_does_not_delay_others(
    quota_broker: BrokerProcess, raw: RawConnection
) -> None:
    with Limit(quota_broker, RAW, producer_byte_rate=10.0):
        # This would take an hour: nobody waits for it, not even the broker when it stops.
        assert raw.call(*produce()).throttle_time_ms > 60_000
        raw.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        with RawConnection(quota_broker.port) as another:
            for _ in range(100):
                another.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))


@pytest.mark.parametrize("version", mostly_long([12, 4, 7, 11], OLDER, keep=2))
def test_a_consumer_over_its_quota_gets_nothing_and_then_everything(
    quota_broker: BrokerProcess, raw: RawConnection, version: int
) -> None:
    raw.call(*produce())
    with Limit(quota_broker, RAW, consumer_byte_rate=11_000.0):
        sizes = []
        for _ in range(100):
            # One batch, however many there are from other tests.
            response = raw.call(*fetch(version, size=1))
            if response.throttle_time_ms:
                break
            sizes.append(len(response.responses[0].partitions[0].records))
        else:
            pytest.fail("the consumer was never throttled")
        # What is throttled is empty, and not counted.
        assert not response.responses
        assert response.error_code == 0
        assert 110_000 - 11_000 * 2 <= sum(sizes) <= 121_000


def test_a_client_with_a_small_share_of_time_is_throttled(
    quota_broker: BrokerProcess, raw: RawConnection
) -> None:
    with Limit(quota_broker, RAW, request_percentage=0.001):
        for _ in range(1000):
            response = raw.call(ApiKey.METADATA, 9, MetadataRequest(topics=None))
            if response.throttle_time_ms:
                break
        assert 0 < response.throttle_time_ms <= 1000
        assert raw.call(*fetch()).throttle_time_ms > 0


def new_topic(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_mutations_over_the_quota_are_refused_or_delayed(
    quota_broker: BrokerProcess, raw: RawConnection
) -> None:
    with Limit(quota_broker, {"user": "ANONYMOUS"}, controller_mutation_rate=1.0):
        first = raw.call(ApiKey.CREATE_TOPICS, 7, new_topic("many", 12))
        assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
        refused = raw.call(ApiKey.CREATE_TOPICS, 6, new_topic("more", 1))
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.topics[0].error_message is None
        assert 0 < refused.throttle_time_ms <= 1000
        # An older client does not know the error: it gets what it asked for, and waits.
        done = raw.call(ApiKey.CREATE_TOPICS, 5, new_topic("more", 3))
        assert done.topics[0].error_code == 0
        assert 0 < done.throttle_time_ms <= 4000
        grown = CreatePartitionsRequest.CreatePartitionsTopic(
            name="more", count=9, assignments=None
        )
        # The muted connection answers when the debt is paid.
        response = raw.call(
            ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[grown], timeout_ms=10_000)
        )
        assert response.results[0].error_code in (0, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    deleted = raw.call(
        ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["more"], timeout_ms=10_000)
    )
    assert (deleted.responses[0].error_code, deleted.throttle_time_ms) == (0, 0)


def test_the_broker_stops_while_a_connection_is_muted(tmp_path: Path) -> None:
    with moldau(tmp_path) as running, RawConnection(running.port) as raw:
        with Admin(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics([NewTopic("limited", 1)])
        Limit(running, RAW, producer_byte_rate=1.0).__enter__()
        assert raw.call(*produce()).throttle_time_ms > 60_000
        raw.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert running.stop() == 0
        assert raw.closed_by_broker()


def test_confluent_kafka_gets_throttle_times_and_slows_down(quota_broker: BrokerProcess) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    throttled: list[float] = []
    delivered: list[Any] = []

    def note(*outcome: Any) -> None:
        delivered.append(outcome)

    producer = confluent.Producer(
        {
            "bootstrap.servers": quota_broker.bootstrap,
            "client.id": "confluent",
            "linger.ms": 0,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    with Limit(quota_broker, {"client-id": "confluent"}, producer_byte_rate=20_000.0):
        started = time.monotonic()
        for _ in range(30):
            producer.produce(
                "limited", b"x" * 10_000, on_delivery=lambda *got: delivered.append(got)
            )
            producer.flush()
        seconds = time.monotonic() - started
    assert [error for error, _ in delivered] == [None] * 30
    # 300 kB, of which the window of ten seconds gives 200 at once.
    assert seconds >= 4
    assert max(throttled) > 0


def test_our_consumer_reads_everything_within_its_quota(quota_broker: BrokerProcess) -> None:
    from moldau.client import Consumer, Producer

    with Admin(bootstrap_servers=quota_broker.bootstrap) as admin:
        admin.create_topics([NewTopic("whole", 2)])
    with Producer(bootstrap_servers=quota_broker.bootstrap) as producer:
        for number in range(60):
            producer.send("whole", b"%5d" % number + b"x" * 5_000, partition=number % 2)
    with (
        Limit(quota_broker, {"client-id": "reader"}, consumer_byte_rate=25_000.0),
        Consumer(
            bootstrap_servers=quota_broker.bootstrap,
            client_id="reader",
            group_id="readers",
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=20_000,
        ) as consumer,
    ):
        consumer.subscribe(["whole"])
        started = time.monotonic()
        found: set[int] = set()
        while len(found) < 60:
            assert time.monotonic() - started < 60
            for record in consumer.poll(1000):
                found.add(int((record.value or b"")[:5]))
        # 300 kB, of which the window gives 250 at once.
        assert time.monotonic() - started >= 1.5


@pytest.mark.long("four JVMs one after the other; librdkafka honours quotas above")
@pytest.mark.slow("four runs of Java tools, one after the other")
@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_kafkas_tools_set_quotas_and_the_java_producer_honours_them(
    quota_broker: BrokerProcess,
) -> None:
    entity = ("--entity-type", "clients", "--entity-name", "perf")
    configs = ("kafka.admin.ConfigCommand", "--bootstrap-server", quota_broker.bootstrap)
    altered = kafka_tool(*configs, "--alter", "--add-config", "producer_byte_rate=20000", *entity)
    assert "Completed updating config for client perf." in altered.stdout, altered.stderr
    described = kafka_tool(*configs, "--describe", *entity)
    assert (
        "Quota configs for client-id 'perf' are producer_byte_rate=20000.0" in described.stdout
    ), described.stderr
    done = kafka_tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", "limited", "--num-records", "30",
        "--record-size", "10000", "--throughput", "-1", "--print-metrics", "--command-property",
        f"bootstrap.servers={quota_broker.bootstrap}", "client.id=perf", "batch.size=10000",
    )  # fmt: skip
    assert "30 records sent" in done.stdout, done.stdout + done.stderr
    times = re.findall(
        r"produce-throttle-time-max\S* *:? *\{client-id=perf\} *: *(\S+)", done.stdout
    )
    assert times, done.stdout
    assert float(times[0]) > 0
    kafka_tool(*configs, "--alter", "--delete-config", "producer_byte_rate", *entity)


def test_an_address_that_connects_too_often(quota_broker: BrokerProcess) -> None:
    """By the quota of that address alone, and only as long as it has one."""

    def is_served(source: str) -> bool:
        try:
            with RawConnection(quota_broker.port, source=source) as connection:
                connection.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
                return True
        except ConnectionError:
            return False

    with Limit(quota_broker, {"ip": "127.0.0.7"}, connection_creation_rate=1):
        # What eleven seconds allow, at once, and then no more.
        served = [is_served("127.0.0.7") for _ in range(14)]
        assert served[0]
        assert not all(served)
        assert all(is_served("127.0.0.8") for _ in range(20))
    assert all(is_served("127.0.0.7") for _ in range(20))
