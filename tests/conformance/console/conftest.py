"""A broker (Moldau, or Apache Kafka with --against-kafka), a console on it, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin
from support.console import Console, Tab, chromium, console_of
from support.either import either_broker
from support.processes import BrokerProcess

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
def console(broker: BrokerProcess) -> Iterator[Console]:
    with console_of(broker.bootstrap) as found:
        yield found


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": broker.bootstrap}) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: Any, console: Console) -> Iterator[Tab]:
    found = Tab(browser, console, viewport={"width": 1280, "height": 860})
    yield found
    found.close()
    assert found.problems == []
