"""Transactions of the producer while brokers fail: all or nothing, and it is known which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import errors
from moldau.client.admin import Admin, FeatureUpdate, UpgradeType
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.producer import Producer
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.testing import Broker, Cluster, wait_until

QUICK = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "linger.ms": 0,
}

# Transactions before version 2; an upgrade from it is always tried.
OLDER = pytest.mark.long("the older version; the broker's part is in test_same_transaction_answers")
VERSIONS = [pytest.param(2, id="version 2"), pytest.param(1, id="version 1", marks=OLDER)]


@pytest.fixture(params=VERSIONS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(topics=["t"]) as broker:
        if request.param == 1:
            update = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
            with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
                admin.update_features({"transaction.version": update})
        yield broker


def transactional(cluster: Cluster, **settings: Any) -> Producer:
    return Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, **QUICK},
        transactional_id="id",
        **settings,
    )


def again(call: Callable[[], object]) -> None:
    """As an application does that does not give up: what timed out is called again."""

    def succeeds() -> bool:
        try:
            call()
        except errors.KafkaTimeoutError:
            return False
        return True

    wait_until(succeeds, timeout=30)


def committed(cluster: Cluster) -> list[bytes | None]:
    return cluster.values("t", isolation_level="read_committed")


def test_a_broker_that_is_killed_inside_a_transaction(broker: Broker) -> None:
    with transactional(broker) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"before").result(30)
        broker.restart(kill=True)
        producer.send("t", b"after").result(30)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("t", b"aborted").result(30)
        broker.restart(kill=True)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"last")
        producer.commit_transaction()
    assert committed(broker) == [b"before", b"after", b"last"]


@pytest.mark.long("three nodes; test_cluster_clients stops a coordinator in a transaction")
def test_leaders_and_coordinators_that_move_inside_transactions() -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, replication_factor=3)
        with transactional(cluster) as producer:
            producer.init_transactions()
            for index, victim in enumerate(
                (cluster.leader("t"), cluster.transaction_coordinator("id"))
            ):
                producer.begin_transaction()
                producer.send("t", b"%d" % (2 * index)).result(30)
                victim.kill()
                producer.send("t", b"%d" % (2 * index + 1))
                producer.commit_transaction()
                victim.start()
                cluster.wait_until_whole()
        assert committed(cluster) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("api", ["InitProducerId", "EndTxn", "TxnOffsetCommit"])
@pytest.mark.parametrize(
    "error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"]
)
def test_what_passes_is_retried(broker: Broker, api: str, error: str) -> None:
    with broker.fail(api, error=error, times=2) as fault, transactional(broker) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"value")
        producer.send_offsets_to_transaction(
            {TopicPartition("t", 0): OffsetAndMetadata(3)}, ConsumerGroupMetadata("g")
        )
        producer.commit_transaction()
        assert fault.hits == 2
    assert committed(broker) == [b"value"]
    assert broker.group("g").committed() == {("t", 0): 3}


def test_answers_that_are_lost_end_no_transaction_twice(broker: Broker) -> None:
    with transactional(broker, request_timeout_ms=300) as producer:
        producer.init_transactions()
        for index in range(2):
            producer.begin_transaction()
            producer.send("t", b"%d" % index)
            with broker.drop("EndTxn", lose="response", times=1) as dropped:
                producer.commit_transaction()
                assert dropped.hits == 1
    assert committed(broker) == [b"0", b"1"]


@pytest.mark.parametrize("api", ["Produce", "EndTxn"])
def test_an_abortable_error_leaves_only_the_abort(broker: Broker, api: str) -> None:
    with transactional(broker) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with broker.fail(api, error="TRANSACTION_ABORTABLE", times=1) as fault:
            future = producer.send("t", b"lost")
            with pytest.raises(errors.TransactionAbortableError):
                producer.commit_transaction()
            assert fault.hits == 1
        assert (future.exception() is None) is (api == "EndTxn")
        with pytest.raises(errors.KafkaError, match="abort the transaction"):
            producer.send("t", b"more")
        with pytest.raises(errors.KafkaError, match="abort the transaction"):
            producer.begin_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"kept")
        producer.commit_transaction()
    assert committed(broker) == [b"kept"]


def test_a_commit_that_times_out_is_called_again(broker: Broker) -> None:
    with transactional(broker, max_block_ms=300) as producer:
        again(producer.init_transactions)
        again(lambda: producer.partitions_for("t"))
        producer.begin_transaction()
        producer.send("t", b"value").result(30)
        broker.pause()
        with pytest.raises(errors.KafkaTimeoutError, match="call it again"):
            producer.commit_transaction()
        with pytest.raises(errors.IllegalStateError, match="commit_transaction timed out"):
            producer.abort_transaction()
        with pytest.raises(errors.IllegalStateError, match="commit_transaction timed out"):
            producer.begin_transaction()
        broker.resume()
        again(producer.commit_transaction)
        producer.begin_transaction()
        producer.send("t", b"next")
        again(producer.commit_transaction)
    assert committed(broker) == [b"value", b"next"]


def test_init_transactions_may_be_tried_again(broker: Broker) -> None:
    with transactional(broker, max_block_ms=300) as producer:
        with (
            broker.fail("InitProducerId", error="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
            pytest.raises(errors.TransactionalIdAuthorizationFailedError),
        ):
            again(producer.init_transactions)
        with (
            broker.fail("InitProducerId", error="COORDINATOR_LOAD_IN_PROGRESS"),
            pytest.raises(errors.KafkaTimeoutError),
        ):
            producer.init_transactions()
        again(producer.init_transactions)
        again(lambda: producer.partitions_for("t"))
        producer.begin_transaction()
        producer.send("t", b"value").result(30)
        again(producer.commit_transaction)
    assert committed(broker) == [b"value"]


def test_records_that_are_given_up_spoil_the_transaction(broker: Broker) -> None:
    with transactional(broker, request_timeout_ms=1_000, delivery_timeout_ms=2_500) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"arrived").result(30)
        broker.pause()
        future = producer.send("t", b"given up")
        assert isinstance(future.exception(30), errors.KafkaTimeoutError)
        broker.resume()
        with pytest.raises(errors.KafkaError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"kept").result(30)
        producer.commit_transaction()
    assert committed(broker) == [b"kept"]


def test_a_producer_without_transactions_may_be_refused_and_go_on() -> None:
    with (
        Broker(topics=["t"]) as broker,
        Producer({"bootstrap.servers": broker.bootstrap_servers, **QUICK}) as producer,
    ):
        with broker.fail("InitProducerId", error="CLUSTER_AUTHORIZATION_FAILED", times=1):
            future = producer.send("t", b"refused")
            assert isinstance(future.exception(30), errors.ClusterAuthorizationFailedError)
        wait_until(lambda: producer.send("t", b"allowed").exception(30) is None, timeout=30)


@pytest.mark.parametrize("error", ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"])
def test_a_fenced_producer_can_only_be_closed(broker: Broker, error: str) -> None:
    with transactional(broker) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"lost").result(30)
        with (
            broker.fail("EndTxn", error=error, times=1),
            pytest.raises(errors.ProducerFencedError),
        ):
            producer.commit_transaction()
        for call in (producer.begin_transaction, producer.abort_transaction):
            with pytest.raises(errors.ProducerFencedError):
                call()
        assert isinstance(producer.send("t", b"no").exception(), errors.ProducerFencedError)


def test_an_upgrade_to_version_2_takes_effect_with_the_next_transaction() -> None:
    with Broker(topics=["t"]) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            down = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
            admin.update_features({"transaction.version": down})
            with transactional(broker) as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send("t", b"version 1")
                producer.commit_transaction()
                admin.update_features({"transaction.version": FeatureUpdate(2)})
                # A client learns of it when it connects.
                broker.restart()
                for index in range(3):
                    producer.begin_transaction()
                    producer.send("t", b"%d" % index)
                    producer.commit_transaction()
                manager = producer._core.transactions
                assert manager is not None
                assert manager.status.is_v2
        assert committed(broker) == [b"version 1", b"0", b"1", b"2"]
