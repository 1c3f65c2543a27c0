"""The producer while brokers fail: nothing is lost, nothing comes twice, and order is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import errors
from moldau.client.producer import AsyncProducer, Producer, RecordFuture
from moldau.testing import Broker, Cluster, wait_until

# Faults are over soon, so the pauses between attempts are short as well.
QUICK = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics=["t"]) as broker:
        yield broker


def quick_producer(cluster: Cluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, **QUICK}, **settings)


def numbered(count: int) -> list[bytes]:
    return [b"%06d" % index for index in range(count)]


class Background:
    """Sends numbered records in a thread until told to stop."""

    def __init__(self, producer: Producer, topic: str, **options: Any) -> None:
        self._producer = producer
        self._topic = topic
        self._options = options
        self._stopping = threading.Event()
        self.futures: list[RecordFuture] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.0005):
            value = b"%06d" % len(self.futures)
            self.futures.append(self._producer.send(self._topic, value, **self._options))

    def wait_for(self, more: int) -> None:
        """Until so many more records were acknowledged."""
        start = len(self.futures)
        wait_until(
            lambda: len(self.futures) > start + more and self.futures[start + more].done(),
            timeout=30,
        )

    def stop(self) -> int:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(30)
        return len(self.futures)


@pytest.mark.parametrize("in_flight", [1, 5])
def test_a_broker_that_is_killed_while_records_are_sent(broker: Broker, in_flight: int) -> None:
    with quick_producer(
        broker, linger_ms=1, batch_size=200, max_in_flight_requests_per_connection=in_flight
    ) as producer:
        background = Background(producer, "t")
        background.wait_for(100)
        for _ in range(2):
            broker.restart(kill=True)
            background.wait_for(100)
        count = background.stop()
        assert [future.result().offset for future in background.futures] == list(range(count))
    assert broker.values("t") == numbered(count)


@pytest.mark.long("three nodes; test_cluster_clients moves leaders")
def test_leaders_that_move_while_records_are_sent() -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, replication_factor=3, config={"min.insync.replicas": "2"})
        with quick_producer(cluster, linger_ms=1, batch_size=200) as producer:
            background = Background(producer, "t")
            background.wait_for(100)
            for _ in range(2):
                leader = cluster.leader("t")
                leader.kill()
                background.wait_for(100)
                leader.start()
                cluster.wait_until_whole()
            count = background.stop()
            offsets = [future.result().offset for future in background.futures]
        assert offsets == list(range(count))
        assert cluster.values("t") == numbered(count)


def test_answers_that_are_lost_bring_no_duplicates(broker: Broker) -> None:
    with quick_producer(broker, linger_ms=1, batch_size=200, request_timeout_ms=500) as producer:
        producer.send("t", b"%06d" % 0).result(30)
        with broker.drop("Produce", lose="response", times=2) as dropped:
            futures = [producer.send("t", value) for value in numbered(300)[1:]]
            producer.flush(30)
            assert dropped.hits >= 1
        assert [future.result().offset for future in futures] == list(range(1, 300))
    assert broker.values("t") == numbered(300)


@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_ENOUGH_REPLICAS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "CORRUPT_MESSAGE",
        "KAFKA_STORAGE_ERROR",
    ],
)
def test_retriable_errors_are_retried_in_order(broker: Broker, error: str) -> None:
    with quick_producer(broker, linger_ms=1, batch_size=200) as producer:
        producer.send("t", b"%06d" % 0).result(30)
        with broker.fail("Produce", error=error, times=3) as fault:
            futures = [producer.send("t", value) for value in numbered(200)[1:]]
            producer.flush(30)
            assert fault.hits == 3
        assert [future.result().offset for future in futures] == list(range(1, 200))
    assert broker.values("t") == numbered(200)


def test_the_very_first_batch_fails_and_still_comes_first(broker: Broker) -> None:
    # A broker takes any sequence number from a producer that it does not know yet.
    with (
        quick_producer(broker, linger_ms=1, batch_size=200) as producer,
        broker.fail("Produce", error="NOT_ENOUGH_REPLICAS", times=1),
    ):
        for value in numbered(200):
            producer.send("t", value)
        producer.flush(30)
    assert broker.values("t") == numbered(200)


def test_order_without_idempotence_needs_one_request_at_a_time(broker: Broker) -> None:
    with quick_producer(
        broker,
        linger_ms=1,
        batch_size=200,
        enable_idempotence=False,
        max_in_flight_requests_per_connection=1,
    ) as producer:
        producer.send("t", b"%06d" % 0).result(30)
        with broker.fail("Produce", error="NOT_ENOUGH_REPLICAS", times=3, after=1):
            for value in numbered(200)[1:]:
                producer.send("t", value)
            producer.flush(30)
    assert broker.values("t") == numbered(200)


def test_a_gap_in_the_numbers_is_mended_by_another_epoch(broker: Broker) -> None:
    with quick_producer(broker, linger_ms=1, batch_size=200) as producer:
        producer.send("t", b"%06d" % 0).result(30)
        with broker.fail("Produce", error="OUT_OF_ORDER_SEQUENCE_NUMBER", times=1):
            for value in numbered(200)[1:]:
                producer.send("t", value)
            producer.flush(30)
    assert broker.values("t") == numbered(200)


def test_retries_are_counted(broker: Broker) -> None:
    with quick_producer(broker, linger_ms=1, retries=2) as producer:
        producer.send("t", b"first").result(30)
        with broker.fail("Produce", error="NOT_ENOUGH_REPLICAS") as fault:
            with pytest.raises(errors.NotEnoughReplicasError):
                producer.send("t", b"never").result(30)
            assert fault.hits == 3
        assert producer.send("t", b"second").result(30).offset == 1


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", errors.TopicAuthorizationFailedError),
        ("INVALID_RECORD", errors.InvalidRecordError),
        ("INVALID_REQUIRED_ACKS", errors.InvalidRequiredAcksError),
    ],
)
def test_other_errors_are_final_and_the_producer_goes_on(
    broker: Broker, error: str, raised: type[Exception]
) -> None:
    with quick_producer(broker, linger_ms=1) as producer:
        assert producer.send("t", b"first").result(30).offset == 0
        with broker.fail("Produce", error=error, times=1):
            failed = producer.send("t", b"refused")
            assert isinstance(failed.exception(30), raised)
        # The number of the refused record is free again, or another epoch begins.
        assert [producer.send("t", b"next").result(30).offset for _ in range(3)] == [1, 2, 3]


def test_records_that_wait_too_long_are_given_up(broker: Broker) -> None:
    with quick_producer(
        broker, linger_ms=20, request_timeout_ms=1_000, delivery_timeout_ms=2_500
    ) as producer:
        assert producer.send("t", b"first").result(30).offset == 0
        broker.pause()
        told: list[Any] = []
        futures = [
            producer.send("t", b"lost?", on_delivery=lambda meta, error: told.append(error))
            for _ in range(3)
        ]
        # Mostly in one batch: that they are sent within 20 ms is for the machine to say.
        for future in futures:
            with pytest.raises(errors.KafkaTimeoutError, match=r"Expiring \d record\(s\) for t-0"):
                future.result(30)
        wait_until(lambda: len(told) == 3)
        assert [type(error) for error in told] == [errors.KafkaTimeoutError] * 3
        broker.resume()
        # What was in flight may have arrived; what is sent now arrives once and in order.
        wait_until(lambda: producer.send("t", b"after").exception(30) is None, timeout=30)
        for index in range(3):
            producer.send("t", b"%d" % index)
        producer.flush(30)
    assert broker.values("t")[-3:] == [b"0", b"1", b"2"]
    assert broker.values("t").count(b"lost?") <= 3


def test_a_full_buffer_blocks_and_then_says_so(broker: Broker) -> None:
    with quick_producer(
        broker, buffer_memory=50_000, batch_size=10_000, max_block_ms=100, linger_ms=0
    ) as producer:
        # It may take longer to hear of the topic than a send may take.
        wait_until(lambda: producer.send("t", b"first").exception(30) is None)
        broker.pause()
        outcomes = []
        while not outcomes or outcomes[-1].done() is False:
            outcomes.append(producer.send("t", bytes(9_000)))
        error = outcomes[-1].exception()
        assert isinstance(error, errors.BufferExhaustedError)
        assert "max.block.ms, 100 ms" in str(error)
        metrics = {name.name: value.value for name, value in producer.metrics().items()}
        assert metrics["buffer-exhausted-total"] == 1
        assert metrics["waiting-threads"] == 0
        blocked = threading.Thread(target=lambda: outcomes.append(producer.send("t", bytes(9_000))))
        broker.resume()
        blocked.start()
        blocked.join()
        producer.flush(30)
        good = [future for future in outcomes if future.exception() is None]
        assert len(good) >= len(outcomes) - 2
        assert producer._core.accumulator.memory.free == 50_000
    assert broker.end_offsets("t")[0] == 1 + len(good)


def test_an_asyncio_producer_waits_for_memory_without_blocking_the_loop(broker: Broker) -> None:
    def resume_when_full(producer: AsyncProducer) -> None:
        wait_until(lambda: bool(producer._core.accumulator.memory.waiters), timeout=30)
        broker.resume()

    async def run() -> int:
        async with AsyncProducer(
            {"bootstrap.servers": broker.bootstrap_servers, **QUICK},
            buffer_memory=30_000,
            batch_size=10_000,
            linger_ms=0,
        ) as producer:
            await (await producer.send("t", b"first"))
            broker.pause()
            futures, _ = await asyncio.gather(
                _send_all(producer, [bytes(9_000) for _ in range(10)]),
                asyncio.to_thread(resume_when_full, producer),
            )
            return max([(await future).offset for future in futures])

    assert asyncio.run(run()) == 10


async def _send_all(producer: AsyncProducer, values: list[bytes]) -> list[RecordFuture]:
    return [await producer.send("t", value) for value in values]


def test_closing_in_time_fails_what_was_not_sent(broker: Broker) -> None:
    producer = quick_producer(broker, linger_ms=0)
    producer.send("t", b"first").result(30)
    broker.pause()
    try:
        told: list[Any] = []
        future = producer.send("t", b"late", on_delivery=lambda *outcome: told.append(outcome))
        producer.close(timeout=0.2)
        assert isinstance(future.exception(), errors.ClosedError)
        assert isinstance(told[0][1], errors.ClosedError)
    finally:
        broker.resume()


def test_a_topic_that_is_made_anew_is_found_again(broker: Broker) -> None:
    with quick_producer(broker, linger_ms=0) as producer:
        producer.send("t", b"old").result(30)
        broker.delete_topic("t")
        broker.create_topic("t", 1)
        assert producer.send("t", b"new").result(30).offset == 0
    assert broker.values("t") == [b"new"]


def test_partitions_that_are_added_are_used() -> None:
    with Broker(topics={"t": 1}) as broker:
        from moldau.client.admin import Admin, NewPartitions

        with quick_producer(broker, linger_ms=0, max_block_ms=10_000) as producer:
            producer.send("t", b"first").result(30)
            with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
                admin.create_partitions({"t": NewPartitions(3)})
            assert producer.send("t", b"second", partition=2).result(30).partition == 2


def test_a_slow_broker_shows_in_the_metrics(broker: Broker) -> None:
    with quick_producer(broker, linger_ms=0, request_timeout_ms=10_000) as producer:
        with broker.slow("Produce", ms=100):
            futures = [producer.send("t", b"%d" % index) for index in range(10)]
            producer.flush(30)
        metrics = {name.name: value.value for name, value in producer.metrics().items()}
        assert metrics["request-latency-max"] >= 100
    assert [future.result().offset for future in futures] == list(range(10))


def test_closing_does_not_wait_for_a_producer_id_that_no_record_needs(broker: Broker) -> None:
    """A cluster that has lost its controllers hands out none, perhaps for hours."""
    broker.fail("InitProducerId", error="COORDINATOR_LOAD_IN_PROGRESS")
    producer = quick_producer(
        broker, delivery_timeout_ms=300, request_timeout_ms=200, max_block_ms=200, linger_ms=0
    )
    with pytest.raises(errors.KafkaTimeoutError):
        producer.send("t", b"x").result(30)
    closing = threading.Thread(target=producer.close)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
