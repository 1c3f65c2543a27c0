"""One broker for the applications of a file, whose groups notice changes soon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.either import either_broker
from support.processes import BrokerProcess
from support.streams_embedded import Stage

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "10000",
    # Tests write records of long ago, which would expire half a minute after the start.
    "log.retention.ms": "-1",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def stage(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(broker.bootstrap, tmp_path_factory.mktemp("streams"))
    yield made
    made.close()


@pytest.fixture(params=["classic", "streams"])
def protocol(request: pytest.FixtureRequest) -> str:
    """How an application is a group: by its leader's assignor, or by the broker's."""
    return str(request.param)
