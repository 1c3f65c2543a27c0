"""What a SQL server tells others of its service id."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

import pytest

from moldau.client.errors import KafkaError
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.peers import Peers
from moldau.streams.errors import StreamsError


class EndingQuery:
    """A query that ends while its lags are asked for."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def all_local_store_partition_lags(self) -> Any:
        raise self._error


class Host:
    address = "127.0.0.1:1"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def persistent_ids(self) -> list[str]:
        return ["CTAS_A_1"]

    def streams(self, query_id: str) -> EndingQuery:
        return EndingQuery(self._error)


@pytest.mark.parametrize(
    "error", [CancelledError(), KafkaError("the client is closed"), StreamsError("not running")]
)
def test_a_query_that_ends_meanwhile_does_not_end_the_heartbeats(error: Exception) -> None:
    host: Any = Host(error)
    config = SqlConfig.of({"bootstrap.servers": "127.0.0.1:1"})
    assert Peers(config, host).own_lags()["stateStoreLags"] == {}
