"""A broker that does not know a topic yet, such as one that has just started, says that there is
none: a mirror must not take what is in it for nothing, and copy everything again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from moldau.client import AsyncAdmin, NewTopic, Producer
from moldau.client.errors import UnknownTopicOrPartitionError
from moldau.mirror.machine.settings import FlowName
from moldau.mirror.topic_store import TopicReader
from moldau.testing import Broker
from support.mirrors import create, exactly_once, mirroring, properties, read
from support.waiting import eventually

UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


def send(broker: Broker, topic: str, first: int, count: int) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, partition=0)


def caught_up(broker: Broker, topic: str, *, must_exist: bool) -> list[bytes | None]:
    found: list[bytes | None] = []

    async def catch_up() -> None:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AsyncAdmin(settings)
        reader = TopicReader(
            topic, lambda key, value: found.append(value), settings, admin, must_exist=must_exist
        )
        try:
            await reader.catch_up()
        finally:
            await reader.close()
            await admin.close()

    asyncio.run(catch_up())
    return found


def test_a_topic_that_must_exist_is_never_read_as_empty(two: tuple[Broker, Broker]) -> None:
    broker = two[1]
    create(broker.bootstrap_servers, NewTopic("internal", 1, 1))
    send(broker, "internal", 0, 3)
    with broker.fail("Metadata", error=UNKNOWN, client_id="consumer*"):
        assert caught_up(broker, "internal", must_exist=False) == []
        with pytest.raises(UnknownTopicOrPartitionError, match="internal"):
            caught_up(broker, "internal", must_exist=True)
    assert caught_up(broker, "internal", must_exist=True) == [b"0", b"1", b"2"]


def test_a_mirror_waits_until_it_knows_where_it_was(two: tuple[Broker, Broker]) -> None:
    source, target = (each.bootstrap_servers for each in two)
    for each in (source, target):
        create(each, NewTopic("waits", 1, 1))
    made = exactly_once(properties({"A": source, "B": target}, "A->B", topics="waits")) | {
        "replication.policy.class": "IdentityReplicationPolicy",
        "consumer.client.id": "mirror-reader",
    }
    send(two[0], "waits", 0, 50)
    with mirroring(made):
        read(target, "waits", 50)
    fault = two[1].fail("Metadata", error=UNKNOWN, client_id="mirror-reader*")
    with mirroring(made) as running:
        flow = running.service.flows[FlowName("A", "B")]
        copier = eventually(lambda: flow.copiers.get(0), what="a task")
        eventually(lambda: copier.failures or copier.commits, what="a session")
        fault.remove()
        send(two[0], "waits", 50, 50)
        found = read(target, "waits", 100)
    assert [int(each.value) for each in found] == list(range(100)), "each record once"
