"""Every kind of client pushes its metrics where the cluster subscribes to them (KIP-714)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import Admin, AlterConfigOp, ConfigResource, Consumer, Producer, ShareConsumer
from moldau.testing import Broker, wait_until


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
    with make(bootstrap_servers=broker.bootstrap_servers, client_id=make.__name__):
        wait_until(lambda: pushes.hits > 1, timeout=60)
