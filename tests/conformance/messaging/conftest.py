"""Connections, sessions and destinations for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.messaging import (
    Connection,
    ConnectionFactory,
    Queue,
    Session,
    Topic,
)
from support.messaging import HASTY_S, new_name
from support.processes import BrokerProcess, moldau


@pytest.fixture(scope="module")
def factory(broker: BrokerProcess) -> ConnectionFactory:
    return ConnectionFactory(bootstrap_servers=broker.bootstrap, max_deliveries=3)


@pytest.fixture
def connection(factory: ConnectionFactory) -> Iterator[Connection]:
    with factory.create_connection(client_id=new_name("client")) as made:
        made.start()
        yield made


@pytest.fixture
def session(connection: Connection) -> Session:
    return connection.create_session()


@pytest.fixture
def queue(session: Session) -> Queue:
    return session.create_queue(new_name("queue"))


@pytest.fixture
def topic(session: Session) -> Topic:
    return session.create_topic(new_name("topic"))


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that soon delivers again what a dead consumer has."""
    settings = [
        f"group.share.record.lock.duration.ms={round(HASTY_S * 1000)}",
        "group.share.min.record.lock.duration.ms=1000",
    ]
    with moldau(tmp_path_factory.mktemp("hasty"), settings) as broker:
        yield broker
