"""A broker for a module's tests, started as a user would start it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against-kafka",
        action="store_true",
        help="run the client sessions against Apache Kafka instead: shows that the tests are right",
    )


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    if request.config.getoption("--against-kafka"):
        if reason := kafka_missing():
            pytest.skip(reason)
        started = apache_kafka(folder)
    else:
        started = moldau(folder, ["group.initial.rebalance.delay.ms=0"])
    with started as process:
        yield process
