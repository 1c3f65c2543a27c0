"""Changed configs take effect in a running broker, by Kafka's precedence, and survive a restart.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.messages import DescribeProducersRequest
from moldau.wire.records import encode_batch, iterate_headers
from support import asking
from support.asking import BROKER_CONFIG, TOPIC_CONFIG
from support.either import create_and_wait, either_broker
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

NONE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_CONFIG, INVALID_RECORD = 0, 10, 32, 40, 87
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER, FROM_FILE, FROM_DEFAULT = 1, 2, 3, 4, 5
CLUSTER = ""
LONG_AGO_MS = 1_500_000_000_000

# Regular work is done often, so that its effect can be waited for.
OVERRIDES = {
    "log.retention.check.interval.ms": "50",
    "log.initial.task.delay.ms": "0",
    "producer.id.expiration.check.interval.ms": "50",
    "message.max.bytes": "500000",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), OVERRIDES) as process:
        yield process


@pytest.fixture
def to(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port) as connection:
        yield connection


_numbers = itertools.count()


@pytest.fixture
def topic(to: RawConnection) -> str:
    name = f"topic-{next(_numbers)}"
    # Old timestamps are used below, so nothing may expire unless a test asks for it.
    create_and_wait(to, name, 1, {"retention.ms": "-1"})
    return name


def one_record(size: int = 10, *, timestamp: int | None = None, key: bytes | None = b"k") -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return encode_batch([(key, bytes(size), now_ms if timestamp is None else timestamp, ())])


def set_config(to: RawConnection, kind: int, name: str, key: str, value: str | None) -> None:
    assert asking.alter_config(to, kind, name, {key: value}) == (0, None)


def error_of(to: RawConnection, topic: str, batch: bytes, *, acks: int = -1) -> int:
    return int(asking.produce(to, topic, 0, batch, acks=acks).error_code)


def becomes(probe: Callable[[], Any], expected: object, what: str) -> None:
    eventually(lambda: probe() == expected, what=what)


@pytest.mark.parametrize(
    ("key", "value", "batch", "error"),
    [
        ("max.message.bytes", "1000", one_record(2000), MESSAGE_TOO_LARGE),
        ("cleanup.policy", "compact", one_record(key=None), INVALID_RECORD),
        ("message.timestamp.before.max.ms", "1000", one_record(timestamp=LONG_AGO_MS),
         INVALID_TIMESTAMP),
        ("message.timestamp.after.max.ms", "1000", one_record(timestamp=10**13),
         INVALID_TIMESTAMP),
    ],
    ids=["size", "key", "past", "future"],
)  # fmt: skip
def test_a_topic_config_refuses_what_it_forbids(
    to: RawConnection, topic: str, key: str, value: str, batch: bytes, error: int
) -> None:
    before = error_of(to, topic, batch)
    # A time far ahead is refused by default; any other of these batches is fine.
    assert before == (NONE if key != "message.timestamp.after.max.ms" else INVALID_TIMESTAMP)
    if before:
        set_config(to, TOPIC_CONFIG, topic, key, str(2**63 - 1))
        becomes(lambda: error_of(to, topic, batch), NONE, "a far future is allowed")
    set_config(to, TOPIC_CONFIG, topic, key, value)
    becomes(lambda: error_of(to, topic, batch), error, f"{key}={value} is in force")
    set_config(to, TOPIC_CONFIG, topic, key, None)
    becomes(lambda: error_of(to, topic, batch), before, f"{key} is the default again")


def last_header(to: RawConnection, topic: str) -> Any:
    """Append a batch and give back the header that it is stored with."""
    answer = asking.produce(to, topic, 0, one_record(5000, timestamp=LONG_AGO_MS))
    assert answer.error_code == 0, answer
    ((_, header),) = iterate_headers(asking.fetch(to, topic, 0, answer.base_offset).records)
    return header


def test_the_timestamp_type_changes(to: RawConnection, topic: str) -> None:
    header = last_header(to, topic)
    assert (header.is_log_append_time, header.max_timestamp) == (False, LONG_AGO_MS)
    set_config(to, TOPIC_CONFIG, topic, "message.timestamp.type", "LogAppendTime")
    becomes(lambda: last_header(to, topic).is_log_append_time, True, "LogAppendTime")
    assert last_header(to, topic).max_timestamp > LONG_AGO_MS
    assert asking.produce(to, topic, 0, one_record()).log_append_time_ms > LONG_AGO_MS


@pytest.mark.parametrize(("codec", "number"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_the_compression_changes(to: RawConnection, topic: str, codec: str, number: int) -> None:
    assert last_header(to, topic).compression == 0
    set_config(to, TOPIC_CONFIG, topic, "compression.type", codec)
    becomes(lambda: int(last_header(to, topic).compression), number, f"stored as {codec}")
    set_config(to, TOPIC_CONFIG, topic, "compression.type", "producer")
    becomes(lambda: int(last_header(to, topic).compression), 0, "stored as sent")


def segments(broker: BrokerProcess, topic: str) -> int:
    return len(list(broker.folder_of(topic).glob("*.log")))


def test_segments_get_smaller(broker: BrokerProcess, to: RawConnection, topic: str) -> None:
    for _ in range(4):
        assert error_of(to, topic, one_record(400_000)) == 0
    assert segments(broker, topic) == 1
    set_config(to, TOPIC_CONFIG, topic, "segment.bytes", "1048576")

    def rolls() -> bool:
        assert error_of(to, topic, one_record(400_000)) == 0
        return segments(broker, topic) >= 3

    eventually(rolls, what="segments of a megabyte")


def earliest(to: RawConnection, topic: str) -> int:
    return int(asking.list_offset(to, topic, 0, asking.EARLIEST).offset)


def test_retention_of_a_topic(to: RawConnection, topic: str) -> None:
    assert error_of(to, topic, one_record(timestamp=LONG_AGO_MS)) == 0
    assert earliest(to, topic) == 0
    set_config(to, TOPIC_CONFIG, topic, "retention.ms", "1000")
    becomes(lambda: earliest(to, topic), 1, "the old record is gone")


def test_retention_for_the_cluster(to: RawConnection, topic: str) -> None:
    """The default reaches topics without a value of their own, and no others."""
    create_and_wait(to, f"{topic}-plain")
    key = "log.retention.ms"
    # For as long as it is in force here, other tests in this module have -1 on their topics.
    set_config(to, BROKER_CONFIG, CLUSTER, key, "-1")
    becomes(
        lambda: asking.config(to, TOPIC_CONFIG, f"{topic}-plain", "retention.ms"),
        ("-1", FROM_CLUSTER),
        "the new default is seen",
    )
    for name in (topic, f"{topic}-plain"):
        assert error_of(to, name, one_record(timestamp=LONG_AGO_MS)) == 0
        assert earliest(to, name) == 0
    set_config(to, BROKER_CONFIG, CLUSTER, key, "1000")
    becomes(lambda: earliest(to, f"{topic}-plain"), 1, "the old record is gone")
    assert earliest(to, topic) == 0
    set_config(to, BROKER_CONFIG, CLUSTER, key, None)


def limit(to: RawConnection, topic: str) -> int:
    """The largest record out of some sizes that is taken."""
    sizes = (50_000, 150_000, 250_000, 350_000, 450_000)
    return max(size for size in sizes if error_of(to, topic, one_record(size)) == 0)


def test_precedence(to: RawConnection, topic: str) -> None:
    """Topic over this broker over all brokers over the file."""
    own = "1"
    seen: Callable[[], Any] = lambda: asking.config(  # noqa: E731
        to, TOPIC_CONFIG, topic, "max.message.bytes"
    )

    def check(value: str, source: int, largest: int) -> None:
        becomes(seen, (value, source), f"max.message.bytes is {value}")
        becomes(lambda: limit(to, topic), largest, f"records of {largest} bytes are taken")

    check("500000", FROM_FILE, 450_000)
    set_config(to, BROKER_CONFIG, CLUSTER, "message.max.bytes", "400000")
    check("400000", FROM_CLUSTER, 350_000)
    set_config(to, BROKER_CONFIG, own, "message.max.bytes", "300000")
    check("300000", FROM_BROKER, 250_000)
    set_config(to, TOPIC_CONFIG, topic, "max.message.bytes", "200000")
    check("200000", FROM_TOPIC, 150_000)
    set_config(to, BROKER_CONFIG, own, "message.max.bytes", None)
    check("200000", FROM_TOPIC, 150_000)
    set_config(to, TOPIC_CONFIG, topic, "max.message.bytes", None)
    check("400000", FROM_CLUSTER, 350_000)
    set_config(to, BROKER_CONFIG, CLUSTER, "message.max.bytes", None)
    check("500000", FROM_FILE, 450_000)


def accepted(broker: BrokerProcess) -> bool:
    with RawConnection(broker.port) as connection:
        try:
            asking.describe_topic(connection, "nothing")
        except ConnectionError:
            return False
        return True


def test_connections_per_address(broker: BrokerProcess, to: RawConnection) -> None:
    assert accepted(broker)
    set_config(to, BROKER_CONFIG, CLUSTER, "max.connections.per.ip", "1")
    becomes(lambda: accepted(broker), False, "a second connection is closed")
    # The one that is there goes on.
    set_config(to, BROKER_CONFIG, CLUSTER, "max.connections.per.ip", None)
    becomes(lambda: accepted(broker), True, "connections are taken again")


def producers(to: RawConnection, topic: str) -> list[int]:
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])]
    )
    answer = to.call(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions[0]
    return [producer.producer_id for producer in answer.active_producers]


def test_idle_producers_are_forgotten_sooner(to: RawConnection, topic: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    batch = encode_batch(
        [(b"k", b"v", now_ms, ())], producer_id=77, producer_epoch=0, base_sequence=0
    )
    assert error_of(to, topic, batch) == 0
    assert producers(to, topic) == [77]
    set_config(to, BROKER_CONFIG, CLUSTER, "producer.id.expiration.ms", "1")
    becomes(lambda: producers(to, topic), [], "the producer is forgotten")
    set_config(to, BROKER_CONFIG, CLUSTER, "producer.id.expiration.ms", None)


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (BROKER_CONFIG, CLUSTER, "message.max.bytes", "-1"),
        (BROKER_CONFIG, CLUSTER, "log.retention.ms", "soon"),
        (BROKER_CONFIG, "1", "node.id", "5"),
        (BROKER_CONFIG, "1", "log.dirs", "/tmp"),
    ],
)
def test_a_wrong_change_changes_nothing(
    to: RawConnection, kind: int, name: str, key: str, value: str
) -> None:
    code, message = asking.alter_config(to, kind, name, {key: value})
    assert code in (INVALID_CONFIG, 42)
    assert message is not None
    assert key in message


def test_configs_survive_a_restart(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    changes = [
        (TOPIC_CONFIG, "t", "max.message.bytes", "1000", FROM_TOPIC),
        (TOPIC_CONFIG, "t", "compression.type", "zstd", FROM_TOPIC),
        (BROKER_CONFIG, "1", "log.retention.ms", "123456", FROM_BROKER),
    ]
    with either_broker(request, tmp_path, OVERRIDES) as broker:
        with RawConnection(broker.port) as to:
            create_and_wait(to, "t")
            for kind, name, key, value, _ in changes:
                set_config(to, kind, name, key, value)
            set_config(to, BROKER_CONFIG, CLUSTER, "log.retention.ms", "654321")
            set_config(to, BROKER_CONFIG, CLUSTER, "message.max.bytes", "2000")
        broker.stop()
        broker.start()
        with RawConnection(broker.port) as to:
            becomes(lambda: error_of(to, "t", one_record(1500)), MESSAGE_TOO_LARGE, "t is limited")
            for kind, name, key, value, source in changes:
                assert asking.config(to, kind, name, key) == (value, source)
            assert asking.config(to, TOPIC_CONFIG, "t", "retention.ms") == ("123456", FROM_BROKER)
            assert last_header_of_small(to) == 4
            create_and_wait(to, "u")
            assert error_of(to, "u", one_record(2500)) == MESSAGE_TOO_LARGE
            assert error_of(to, "u", one_record(1500)) == NONE


def last_header_of_small(to: RawConnection) -> int:
    answer = asking.produce(to, "t", 0, one_record(100))
    assert answer.error_code == 0, answer
    ((_, header),) = iterate_headers(asking.fetch(to, "t", 0, answer.base_offset).records)
    return int(header.compression)
