"""Every kind of client pushes its metrics where the cluster subscribes to them (KIP-714)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import Admin, AlterConfigOp, ConfigResource, Consumer, Producer, ShareConsumer
from moldau.testing import Broker, wait_until
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ApiVersionsRequest,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from support.raw import RawConnection

TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        wanted = [AlterConfigOp.set("metrics", "*"), AlterConfigOp.set("interval.ms", "100")]
        admin.incremental_alter_configs({ConfigResource.client_metrics("all"): wanted})
        yield broker


def produce(**settings: Any) -> Producer:
    producer = Producer(**settings)
    producer.send("t", "v").result(60)
    return producer


def consume(**settings: Any) -> Consumer:
    consumer = Consumer(group_id="readers", **settings)
    consumer.subscribe(["t"])
    consumer.poll(0.1)
    return consumer


def share(**settings: Any) -> ShareConsumer:
    consumer = ShareConsumer(group_id="workers", **settings)
    consumer.subscribe(["t"])
    consumer.poll(0.1)
    return consumer


def administer(**settings: Any) -> Admin:
    admin = Admin(enable_metrics_push=True, **settings)
    admin.describe_cluster()
    return admin


@pytest.mark.parametrize("make", [produce, consume, share, administer])
def test_metrics_are_pushed(broker: Broker, make: Callable[..., Any]) -> None:
    pushes = broker.slow("PushTelemetry", ms=0, client_id=make.__name__)
    with make(bootstrap_servers=broker.bootstrap_servers, client_id=make.__name__) as client:
        wait_until(lambda: pushes.hits > 1, timeout=60)
        given = client.client_instance_id()
        assert given.int
        assert client.client_instance_id() == given


def test_telemetry_is_offered_while_there_is_a_subscription() -> None:
    """librdkafka's clients log a line about their instance id wherever it is offered."""
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        assert TELEMETRY.isdisjoint(offered(port))
        resource = ConfigResource.client_metrics("all")
        with RawConnection(port) as early:
            admin.incremental_alter_configs({resource: [AlterConfigOp.set("metrics", "*")]})
            wait_until(lambda: offered(port) >= TELEMETRY)
            # Whoever asked before is served as well.
            request = GetTelemetrySubscriptionsRequest()
            answer = early.call(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request)
            assert (answer.error_code, answer.requested_metrics) == (0, ["*"])
            admin.incremental_alter_configs({resource: [AlterConfigOp.delete("metrics")]})
            wait_until(lambda: TELEMETRY.isdisjoint(offered(port)))
            push = PushTelemetryRequest(
                client_instance_id=answer.client_instance_id,
                subscription_id=answer.subscription_id,
            )
            refused = early.call(ApiKey.PUSH_TELEMETRY, 0, push)
            assert refused.error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def offered(port: int) -> set[int]:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    with RawConnection(port) as to:
        return {each.api_key for each in to.call(ApiKey.API_VERSIONS, 3, request).api_keys}


def test_librdkafka_logs_nothing_of_telemetry_without_a_subscription() -> None:
    from confluent_kafka import Producer as RdKafkaProducer

    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.Logger("librdkafka")
    logger.addHandler(Lines())
    with Broker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        producer = RdKafkaProducer(settings, logger=logger)
        for _ in range(3):
            producer.produce("t", b"v")
            assert producer.flush(60) == 0
        producer.poll(0)
    assert not [line for line in lines if "elemetry" in line]
