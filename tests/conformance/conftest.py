"""A broker for a module's tests, started as a user would start it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.either import either_broker
from support.processes import BrokerProcess


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against-kafka",
        action="store_true",
        help="run the client sessions against Apache Kafka instead: shows that the tests are right",
    )
    parser.addoption(
        "--cluster",
        action="store_true",
        help="run scenarios on three nodes instead of one, with coordinators moving in between",
    )


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    with either_broker(request, folder, {"group.initial.rebalance.delay.ms": "0"}) as process:
        yield process
