"""A broker and a SQL server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.either import either_broker
from support.processes import BrokerProcess
from support.sql_server import SqlServer, sql_server

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # ksqlDB's cases have records of 1970, which the first check of retention would delete.
    "log.retention.ms": "-1",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def server(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    state: Path = tmp_path_factory.mktemp("state")
    with sql_server(
        broker.bootstrap, ksql_streams_state_dir=str(state), ksql_streams_commit_interval_ms="100"
    ) as found:
        yield found
