"""Columns out of topics and into them, against a running broker (with --against-kafka Apache's)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

from moldau.client import Admin, NewTopic, OffsetSpec
from moldau.client.admin import FeatureUpdate, RecordsToDelete, UpgradeType
from moldau.client.cluster import ClusterClient
from moldau.client.config import CONSUMER_KEYS, parse_settings
from moldau.client.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    KafkaError,
    ProducerFencedError,
)
from moldau.client.loop_thread import LoopThread
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.network_settings import NetworkSettings
from moldau.client.producer import Producer
from moldau.client.producer._murmur2 import partition_for_key
from moldau.client.topics import TopicPartition
from moldau.spark import client_cache
from moldau.spark.columns import DataLossError, OpenTransactionError, RowError
from moldau.spark.columns.clients import IDLE_MAX, clients
from moldau.spark.columns.reading import read_range
from moldau.spark.columns.writing import (
    PRODUCERS_IDLE_MAX,
    ColumnWriter,
    Prepared,
    producers,
    transactional_producers,
)
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import EndTxnRequest
from support.processes import BrokerProcess
from support.waiting import eventually

_numbers = itertools.count()
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    client_cache.close_idle()


@pytest.fixture
def config(broker: BrokerProcess) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


def new_topic(config: dict[str, str], partitions: int = 1, **settings: str) -> str:
    name = f"columns-{next(_numbers)}"
    named = {key.replace("_", "."): value for key, value in settings.items()}
    with Admin(config) as admin:
        admin.create_topics([NewTopic(name, partitions, 1, configs=named)])
        eventually(lambda: name in admin.list_topics(), what=f"{name} is known")
    return name


def end_of(config: dict[str, str], topic: str, partition: int = 0) -> int:
    with Admin(config) as admin:
        key = TopicPartition(topic, partition)
        return admin.list_offsets({key: OffsetSpec.latest()})[key].offset


def rows(config: dict[str, str], topic: str, start: int, end: int, **options: Any) -> list[Any]:
    found = []
    for batch in read_range(config, topic, options.pop("partition", 0), start, end, **options):
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def values(config: dict[str, str], topic: str, start: int, end: int, **options: Any) -> list[Any]:
    return [row["value"] for row in rows(config, topic, start, end, **options)]


def table(values_: list[Any], **columns: list[Any]) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({"value": values_, **columns})


def write(config: dict[str, str], topic: str, *batches: pyarrow.RecordBatch) -> None:
    with ColumnWriter(config, default_topic=topic) as writer:
        for batch in batches:
            writer.write(batch)
        writer.flush()


# There and back.


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_is_read(config: dict[str, str], codec: str) -> None:
    topic = new_topic(config)
    count = 20_000
    batch = table(
        [b"value-%d" % index if index % 7 else None for index in range(count)],
        key=[b"key-%d" % index if index % 5 else None for index in range(count)],
        headers=[
            [{"key": "n", "value": b"%d" % index}] if index % 3 == 0 else None
            for index in range(count)
        ],
        timestamp=pyarrow.array(
            [1_700_000_000_000_000 + 1000 * index for index in range(count)],
            pyarrow.timestamp("us", tz="UTC"),
        ),
    )
    write({**config, "compression.type": codec}, topic, batch)
    found = rows(config, topic, 0, count, include_headers=True, batch_rows=3000)
    assert [row["offset"] for row in found] == list(range(count))
    for name in ("key", "value", "headers", "timestamp"):
        assert [row[name] for row in found] == batch.column(name).to_pylist()


def test_keys_decide_partitions_as_for_every_producer(config: dict[str, str]) -> None:
    topic = new_topic(config, 3)
    keys = [b"key %d" % index for index in range(200)]
    write(config, topic, table([b"v"] * 200, key=keys), table([b"x"], partition=[2]))
    for partition in range(3):
        mine = [key for key in keys if partition_for_key(key, 3) == partition]
        end = len(mine) + (partition == 2)
        found = rows(config, topic, 0, end, partition=partition)
        assert [row["key"] for row in found] == mine + [None] * (partition == 2)


def test_rows_without_keys_use_every_partition(config: dict[str, str]) -> None:
    topic = new_topic(config, 3)
    batch = table([b"x" * 100] * 10_000)
    write({**config, "batch.size": "4096"}, topic, *[batch] * 3)
    counts = [end_of(config, topic, each) for each in range(3)]
    assert sum(counts) == 30_000
    assert min(counts) > 3_000


def test_a_partitioner_of_the_users_own_is_asked(config: dict[str, str]) -> None:
    topic = new_topic(config, 2)
    settings = {**config, "partitioner.class": "round-robin"}
    write(settings, topic, table([b"0", b"1", b"2", b"3"], key=[b"k"] * 4))
    assert values(config, topic, 0, 2) == [b"0", b"2"]
    assert values(config, topic, 0, 2, partition=1) == [b"1", b"3"]


def test_memory_is_bounded_and_waited_for(config: dict[str, str]) -> None:
    topic = new_topic(config)
    small = {**config, "buffer.memory": "300000", "batch.size": "100000", "linger.ms": "1000"}
    batch = table([os.urandom(1000) for _ in range(3000)])
    write(small, topic, batch)
    assert values(config, topic, 0, 3000) == batch.column("value").to_pylist()


def test_records_larger_than_a_batch(config: dict[str, str]) -> None:
    topic = new_topic(config)
    wide = [os.urandom(size) for size in (10, 700_000, 20, 500_000)]
    write(config, topic, table(wide))
    assert values(config, topic, 0, 4) == wide


# Where a range ends.


def test_ranges_inside_batches(config: dict[str, str]) -> None:
    topic = new_topic(config)
    write(config, topic, table([b"%d" % index for index in range(100)]))
    assert values(config, topic, 37, 61) == [b"%d" % index for index in range(37, 61)]
    assert values(config, topic, 50, 50) == []
    iterator = read_range(config, topic, 0, 0, 100, batch_rows=10)
    assert next(iterator).num_rows == 10
    # Whoever stops early gives the client back.
    iterator.close()  # type: ignore[attr-defined]
    assert values(config, topic, 99, 100) == [b"99"]


def test_a_client_is_kept_and_not_too_many(config: dict[str, str]) -> None:
    topic = new_topic(config)
    write(config, topic, table([b"v"]))
    for number in range(IDLE_MAX + 3):
        assert values({**config, "client.id": f"c{number}"}, topic, 0, 1) == [b"v"]
    assert len(clients.clients) == IDLE_MAX
    kept = clients.clients[-1]
    number = IDLE_MAX + 2
    assert values({**config, "client.id": f"c{number}"}, topic, 0, 1) == [b"v"]
    assert clients.clients[-1] is kept


def test_a_forked_child_makes_its_own_client(config: dict[str, str]) -> None:
    topic = new_topic(config)
    write(config, topic, table([b"v"]))
    assert values(config, topic, 0, 1) == [b"v"]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if values(config, topic, 0, 1) == [b"v"] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert values(config, topic, 0, 1) == [b"v"]


def test_a_producer_is_kept_unless_it_failed(config: dict[str, str]) -> None:
    producers.close_idle()
    topic = new_topic(config)
    write(config, topic, table([b"a"]))
    (kept,) = producers.clients
    with ColumnWriter(config, default_topic=topic) as writer:
        assert writer._producer is kept
        # Who writes meanwhile has another one.
        write(config, topic, table([b"b"]))
        writer.write(table([b"c"]))
        writer.flush()
    assert values(config, topic, 0, 3) == [b"a", b"b", b"c"]
    strict = new_topic(config, max_message_bytes="2000")
    with pytest.raises(RowError, match="row 0"):
        write(config, strict, table([bytes(9000)]))
    for number in range(PRODUCERS_IDLE_MAX + 2):
        write({**config, "client.id": f"c{number}"}, topic, table([b"d"]))
    assert len(producers.clients) == PRODUCERS_IDLE_MAX
    child = os.fork()
    if child == 0:
        code = 1
        try:
            last = {**config, "client.id": f"c{PRODUCERS_IDLE_MAX + 1}"}
            write(last, topic, table([b"e"]))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert values(config, topic, 3, 3 + PRODUCERS_IDLE_MAX + 3)[-1] == b"e"


def end_transaction(config: dict[str, str], prepared: Prepared, *, committed: bool) -> None:
    """As whoever was told of a prepared transaction does."""
    network = NetworkSettings.of(parse_settings(CONSUMER_KEYS, config))
    thread = LoopThread("end")

    async def end() -> int:
        cluster = ClusterClient(network)
        try:
            response = await cluster.call_coordinator(
                CoordinatorType.TRANSACTION,
                prepared.transactional_id,
                EndTxnRequest(
                    transactional_id=prepared.transactional_id,
                    producer_id=prepared.producer_id,
                    producer_epoch=prepared.producer_epoch,
                    committed=committed,
                ),
                max_version=None if prepared.transaction_version == 2 else 4,
            )
            return int(response.error_code)
        finally:
            await cluster.close()

    try:
        assert thread.call(end()) == ErrorCode.NONE
    finally:
        thread.stop()


def test_control_records_at_the_end_of_a_range(config: dict[str, str]) -> None:
    topic = new_topic(config)
    with Producer({**config, "transactional.id": f"{topic}-p"}) as producer:
        producer.init_transactions()
        for value in (b"a", b"b"):
            producer.begin_transaction()
            producer.send(topic, value)
            producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"gone")
        producer.flush()
        producer.abort_transaction()
    for level, shown in (
        ("read_committed", [b"a", b"b"]),
        ("read_uncommitted", [b"a", b"b", b"gone"]),
    ):
        eventually(
            lambda level=level, shown=shown: values(
                config, topic, 0, 6, isolation_level=level
            ) == shown,
            what=f"{level} sees {shown}",
        )  # fmt: skip
    assert values(config, topic, 1, 2) == []


def test_records_that_are_gone(config: dict[str, str]) -> None:
    topic = new_topic(config)
    write(config, topic, table([b"%d" % index for index in range(10)]))
    with Admin(config) as admin:
        admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(4)})
    with pytest.raises(DataLossError, match=r"offsets 2 to 10 were asked for, but the log has 4"):
        rows(config, topic, 2, 10)
    left = values(config, topic, 2, 10, fail_on_data_loss=False)
    assert left == [b"%d" % index for index in range(4, 10)]
    assert values(config, topic, 0, 3, fail_on_data_loss=False) == []
    # Beyond the end: the topic was deleted and created again, for one.
    with pytest.raises(DataLossError):
        rows(config, topic, 20, 30)
    assert values(config, topic, 20, 30, fail_on_data_loss=False) == []
    # It is waited out, and yet enough for a machine that is slow once.
    hasty = {**config, "default.api.timeout.ms": "3000", "fetch.max.wait.ms": "100"}
    with pytest.raises(DataLossError):
        rows(hasty, topic, 8, 30)
    assert values(hasty, topic, 8, 30, fail_on_data_loss=False) == [b"8", b"9"]


def test_topics_that_are_not_there(config: dict[str, str]) -> None:
    hasty = {**config, "default.api.timeout.ms": "700", "max.block.ms": "700"}
    with pytest.raises(KafkaError, match="no-such-topic-0"):
        rows(hasty, "no-such-topic", 0, 1)
    topic = new_topic(config)
    with pytest.raises(KafkaError, match=f"{topic}-7"):
        rows(hasty, topic, 0, 1, partition=7)
    with pytest.raises(ValueError, match="are no range"):
        rows(config, topic, 5, 1)


# Writers.


def test_a_prepared_transaction_is_ended_by_somebody_else(config: dict[str, str]) -> None:
    topic = new_topic(config)
    batch = table([b"%d" % index for index in range(5000)])
    with ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic) as writer:
        writer.write(batch)
        prepared = writer.prepared()
        with pytest.raises(IllegalStateError):
            writer.write(batch)
    assert (prepared.record_count, prepared.transactional_id) == (5000, f"{topic}-w")
    hasty = {**config, "default.api.timeout.ms": "3000", "fetch.max.wait.ms": "100"}
    with pytest.raises(OpenTransactionError, match="a transaction is open"):
        rows(hasty, topic, 0, 5000, isolation_level="read_committed")
    end_transaction(config, prepared, committed=True)
    found = values(config, topic, 0, 5001, isolation_level="read_committed")
    assert found == batch.column("value").to_pylist()
    with ColumnWriter(config, transactional_id=f"{topic}-x", default_topic=topic) as other:
        other.write(batch.slice(0, 2000))
        other.write(batch.slice(2000))
        assert other.prepared().digest == prepared.digest
        other.abort()


def test_the_next_transaction_uses_the_connections_of_the_one_before(
    config: dict[str, str],
) -> None:
    topic = new_topic(config)
    batch = table([b"%d" % index for index in range(100)])
    transactional_producers.close_idle()
    prepared = []
    for name in ("w", "w", "x", "w"):
        with ColumnWriter(config, transactional_id=f"{topic}-{name}", default_topic=topic) as each:
            each.write(batch)
            prepared.append(each.prepared())
        end_transaction(config, prepared[-1], committed=True)
        assert transactional_producers.clients == [each._producer]
    assert len({id(each) for each in transactional_producers.clients}) == 1
    assert len({(each.producer_id, each.producer_epoch) for each in prepared}) == 4
    assert {each.digest for each in prepared} == {prepared[0].digest}
    end = end_of(config, topic)
    found = values(config, topic, 0, end, isolation_level="read_committed")
    assert found == batch.column("value").to_pylist() * 4


def test_a_producer_that_met_an_error_is_not_used_again(config: dict[str, str]) -> None:
    topic = new_topic(config)
    transactional_producers.close_idle()
    with ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic) as writer:
        writer.write(table([b"gone"]))
    with ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic) as first:
        first.write(table([b"fenced"]))
        first.flush()
        with ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic) as second:
            second.write(table([b"kept"]))
            prepared = second.prepared()
        first.write(table([b"late"]))
        with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
            first.prepared()
    assert transactional_producers.clients == [second._producer]
    end_transaction(config, prepared, committed=True)
    found = values(config, topic, 0, end_of(config, topic), isolation_level="read_committed")
    assert found == [b"kept"]


def test_closing_aborts_what_is_not_prepared(config: dict[str, str]) -> None:
    topic = new_topic(config)
    with ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic) as writer:
        writer.write(table([b"gone"] * 100))
        writer.flush()
    write(config, topic, table([b"kept"]))
    found = values(config, topic, 0, 102, isolation_level="read_committed")
    assert found == [b"kept"]


def test_a_later_attempt_fences_the_earlier_one(config: dict[str, str]) -> None:
    topic = new_topic(config)
    first = ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic)
    first.write(table([b"first"]))
    first.flush()
    with ColumnWriter(config, transactional_id=f"{topic}-w", default_topic=topic) as second:
        second.write(table([b"second"]))
        prepared = second.prepared()
    first.write(table([b"late"]))
    with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
        first.flush()
    first.close()
    end_transaction(config, prepared, committed=True)
    end = end_of(config, topic)
    assert values(config, topic, 0, end, isolation_level="read_committed") == [b"second"]


def test_a_transaction_without_rows_leaves_nothing_open(config: dict[str, str]) -> None:
    with ColumnWriter(config, transactional_id="empty", default_topic="none") as writer:
        assert writer.prepared().record_count == 0
    with ColumnWriter(config, transactional_id="empty", default_topic="none") as writer:
        assert writer.prepared().digest == 0


def test_errors_name_topic_and_row(config: dict[str, str]) -> None:
    topic = new_topic(config)
    strict = new_topic(config, max_message_bytes="20000")
    hasty = {**config, "max.block.ms": "3000", "batch.size": "1000"}
    with ColumnWriter(hasty, default_topic=topic) as writer:
        writer.write(table([b"fine"] * 3))
        with pytest.raises(RowError, match=rf"row 4 for topic {topic}: .*the message is 2000"):
            writer.write(table([b"fine", bytes(2_000_000)]))
    for name, batch, problem in (
        ("not a topic!", table([b"v"]), "row 0 for topic not a topic!"),
        (topic, table([b"v", b"v"], partition=[0, 9]), f"row 1 for topic {topic}: .*partition 9"),
        (strict, table([b"v", b"v", bytes(50_000), b"v"]), f"row 2 for topic {strict}"),
    ):
        with pytest.raises(RowError, match=problem):
            write(hasty, name, batch)


def test_a_batch_that_the_broker_finds_too_large_is_split(config: dict[str, str]) -> None:
    topic = new_topic(config, max_message_bytes="20000")
    batch = table([os.urandom(1000) for _ in range(100)])
    write({**config, "batch.size": "60000"}, topic, batch)
    assert values(config, topic, 0, 100) == batch.column("value").to_pylist()


def test_transactions_of_the_older_version(config: dict[str, str]) -> None:
    topic = new_topic(config, 2)
    batch = table(
        [b"%d" % index for index in range(100)], key=[b"%d" % (i % 9) for i in range(100)]
    )
    with Admin(config) as admin:
        older = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
        admin.update_features({"transaction.version": older})
        # A producer learns of it when it connects; one with the newer version goes on with that.
        transactional_producers.close_idle()
        try:
            name = f"{topic}-w"
            with ColumnWriter(config, transactional_id=name, default_topic=topic) as writer:
                writer.write(batch)
                prepared = writer.prepared()
            assert prepared.transaction_version == 1
            end_transaction(config, prepared, committed=True)
            with ColumnWriter(config, transactional_id=name, default_topic=topic) as writer:
                writer.write(batch)
                writer.flush()
        finally:
            admin.update_features({"transaction.version": FeatureUpdate(2)})
            transactional_producers.close_idle()
    found: list[bytes] = []
    for partition in range(2):
        end = end_of(config, topic, partition)
        found += values(
            config, topic, 0, end, partition=partition, isolation_level="read_committed"
        )
    assert sorted(found) == sorted(batch.column("value").to_pylist())
