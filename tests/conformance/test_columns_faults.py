"""Columns while brokers die and refuse: nothing is lost, doubled or waited for without end."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow
import pytest

from moldau.client.errors import KafkaTimeoutError
from moldau.spark import client_cache
from moldau.spark.columns import RowError
from moldau.spark.columns.reading import read_range
from moldau.spark.columns.writing import ColumnWriter
from moldau.testing import Cluster

ROWS = 3000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as made:
        yield made
    client_cache.close_idle()


@pytest.fixture
def config(cluster: Cluster) -> Iterator[dict[str, str]]:
    yield {"bootstrap.servers": cluster.bootstrap_servers, "max.partition.fetch.bytes": "20000"}
    cluster.heal()


def batch_of(first: int, count: int = ROWS) -> pyarrow.RecordBatch:
    values = [b"%06d" % number + bytes(50) for number in range(first, first + count)]
    return pyarrow.RecordBatch.from_pydict({"value": pyarrow.array(values, pyarrow.binary())})


def numbers(batches: Iterator[pyarrow.RecordBatch]) -> list[int]:
    return [int(value[:6]) for batch in batches for value in batch.column("value").to_pylist()]


@pytest.mark.long("kills a node; test_client_producer_faults kills one, too")
def test_a_leader_dies_while_rows_are_written_and_read(
    cluster: Cluster, config: dict[str, str]
) -> None:
    topic = cluster.create_topic("dying", replication_factor=3)
    with ColumnWriter({**config, "batch.size": "5000"}, default_topic=str(topic)) as writer:
        writer.write(batch_of(0))
        cluster.leader("dying").kill()
        writer.write(batch_of(ROWS))
        writer.flush()
    cluster.heal()
    cluster.wait_until_whole()
    reading = read_range(config, "dying", 0, 0, 2 * ROWS, batch_rows=200)
    found = [next(reading)]
    cluster.leader("dying").kill()
    assert numbers(iter([*found, *reading])) == list(range(2 * ROWS))


def test_errors_that_pass_are_not_seen(cluster: Cluster, config: dict[str, str]) -> None:
    cluster.create_topic("passing", replication_factor=3)
    with (
        cluster.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2),
        ColumnWriter(config, transactional_id="passing", default_topic="passing") as writer,
    ):
        writer.write(batch_of(0))
        assert writer.prepared().record_count == ROWS
    with cluster.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=3):
        assert numbers(read_range(config, "passing", 0, 0, ROWS)) == list(range(ROWS))
    with cluster.disconnect("Fetch", times=3):
        assert numbers(read_range(config, "passing", 0, 0, ROWS)) == list(range(ROWS))
    # The log has the offset, whatever the broker says of it.
    with cluster.fail("Fetch", error="OFFSET_OUT_OF_RANGE", times=2):
        assert numbers(read_range(config, "passing", 0, 0, ROWS)) == list(range(ROWS))
    hasty = {**config, "default.api.timeout.ms": "700"}
    with (
        cluster.fail("Fetch", error="OFFSET_OUT_OF_RANGE"),
        pytest.raises(KafkaTimeoutError, match="offset 0 of passing-0 could not be fetched"),
    ):
        numbers(read_range(hasty, "passing", 0, 0, ROWS))


def test_errors_that_stay_name_topic_and_row(cluster: Cluster, config: dict[str, str]) -> None:
    cluster.create_topic("staying", replication_factor=3)
    writer = ColumnWriter(config, transactional_id="staying", default_topic="staying")
    writer.write(batch_of(0, 10))
    writer.flush()
    with cluster.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED"):
        writer.write(batch_of(10, 10))
        with pytest.raises(RowError, match="row 10 for topic staying: TOPIC_AUTHORIZATION_FAILED"):
            writer.flush()
        with pytest.raises(RowError, match="row 10"):
            writer.write(batch_of(20, 10))
    writer.close()
