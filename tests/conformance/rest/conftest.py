"""A broker with ACLs (Moldau, or Apache Kafka with --against-kafka) and a proxy in front of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.either import either_broker
from support.http_service import running
from support.processes import BrokerProcess
from support.rest import Proxy, proxy_of

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def proxy(broker: BrokerProcess) -> Iterator[Proxy]:
    with running(lambda: proxy_of(broker.bootstrap)) as service:
        yield Proxy(service, broker)
