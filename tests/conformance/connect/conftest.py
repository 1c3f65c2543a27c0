"""A broker (Moldau, or Apache Kafka with --against-kafka) for the workers of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.either import either_broker
from support.processes import BrokerProcess

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process
