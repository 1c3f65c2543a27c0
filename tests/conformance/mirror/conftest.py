"""Two clusters of Moldau and two of Apache Kafka, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "auto.create.topics.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

Servers = Callable[[str], BrokerProcess]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """By name, "moldau 1" or "kafka 2"; each is started when it is first asked for."""
    found: dict[str, BrokerProcess] = {}
    with ExitStack() as stack:

        def server(name: str) -> BrokerProcess:
            if name not in found:
                folder = tmp_path_factory.mktemp(name.replace(" ", ""))
                if name.startswith("kafka"):
                    if reason := kafka_missing():
                        pytest.skip(reason)
                    process = apache_kafka(folder, SETTINGS)
                else:
                    process = moldau(folder, [f"{key}={each}" for key, each in SETTINGS.items()])
                found[name] = stack.enter_context(process)
            return found[name]

        yield server
