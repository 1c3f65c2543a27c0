"""The files in config/ are read by what they are for, with nothing unknown in them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moldau.client.config.consumer_keys import CONSUMER_KEYS
from moldau.client.config.producer_keys import PRODUCER_KEYS
from moldau.config.properties import load_properties
from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.services.registry.config import RegistryConfig
from moldau.services.rest.config import RestConfig
from moldau.services.sql.config import SqlConfig

CONFIG = Path(__file__).parents[3] / "config"
READERS: dict[str, Callable[[dict[str, str]], Any]] = {
    "connect-distributed.properties": partial(WorkerConfig.of, distributed=True),
    "connect-standalone.properties": partial(WorkerConfig.of, distributed=False),
    "schema-registry.properties": RegistryConfig.of,
    "kafka-rest.properties": RestConfig.of,
    "ksql-server.properties": SqlConfig.of,
    "producer.properties": PRODUCER_KEYS.parse,
    "consumer.properties": CONSUMER_KEYS.parse,
}


@pytest.mark.parametrize("name", READERS)
def test_a_shipped_file_is_read(name: str, caplog: pytest.LogCaptureFixture) -> None:
    properties = load_properties((CONFIG / name).read_text())

    with caplog.at_level(logging.WARNING):
        assert READERS[name](properties) is not None

    assert caplog.messages == []
    servers = properties.get("bootstrap.servers") or properties["kafkastore.bootstrap.servers"]
    assert servers.endswith("localhost:9092")
