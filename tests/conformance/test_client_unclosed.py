"""Blocking clients that nobody closes: they end when they are collected, or with the process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer, ShareConsumer
from moldau.client.consumer import ConsumerRebalanceListener
from moldau.testing import Broker
from support.leaving import leave
from support.waiting import eventually

FOR_EVER_MS = 600_000


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    # Members who do not say that they leave stay for ever.
    config = {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.max.session.timeout.ms": FOR_EVER_MS,
        "group.consumer.session.timeout.ms": FOR_EVER_MS,
        "group.share.max.session.timeout.ms": FOR_EVER_MS,
        "group.share.session.timeout.ms": FOR_EVER_MS,
    }
    with Broker(config=config) as running:
        for name in ("produced", "read", "read-by-epoch", "shared"):
            running.create_topic(name)
        yield running


class Heedless(ConsumerRebalanceListener):
    """A listener does not know the consumer, so it does not keep it alive."""


def member(topic: str, **settings: Any) -> Callable[[str], Consumer]:
    def make(bootstrap: str) -> Consumer:
        consumer = Consumer(
            bootstrap_servers=bootstrap,
            group_id=topic,
            client_id="forgotten",
            auto_offset_reset="earliest",
            **settings,
        )
        consumer.subscribe([topic], Heedless())
        eventually(lambda: len(consumer.poll(0.1)) > 0, what="something was read")
        return consumer

    return make


def sharer(bootstrap: str) -> ShareConsumer:
    consumer = ShareConsumer(bootstrap_servers=bootstrap, group_id="shared", client_id="forgotten")
    consumer.subscribe(["shared"])

    def is_member() -> bool:
        # Before the first member has joined there is no such group.
        consumer.poll(0.1)
        found = admin.describe_share_groups(["shared"], check=False)
        return any(each.members for each in found.values_by_key.values())

    with Admin(bootstrap_servers=bootstrap) as admin:
        eventually(is_member, what="it is a member of its group")
    return consumer


def administrator(bootstrap: str) -> Admin:
    admin = Admin(bootstrap_servers=bootstrap)
    admin.list_topics()
    return admin


def forget(make: Callable[[], Any], words: str) -> None:
    """Make a client and drop it: its thread ends, and a warning says whose it was. Nothing that
    the client itself holds refers to it, so it needs no collector."""
    clients = [make()]
    thread: threading.Thread = clients[0]._thread._thread
    assert thread.is_alive()
    with pytest.warns(ResourceWarning, match=f"^unclosed {words}: close it"):
        clients.clear()
    eventually(lambda: not thread.is_alive(), what="the client's thread has ended")


@pytest.mark.parametrize(
    ("make", "group_id", "words"),
    [
        pytest.param(
            member("read", session_timeout_ms=FOR_EVER_MS),
            "read",
            "Consumer 'forgotten'",
            id="classic",
        ),
        pytest.param(
            member("read-by-epoch", group_protocol="consumer"),
            "read-by-epoch",
            "Consumer 'forgotten'",
            id="consumer",
        ),
        pytest.param(sharer, "shared", "ShareConsumer 'forgotten'", id="share"),
    ],
)
def test_a_forgotten_member_leaves_its_group_and_commits_nothing(
    node: Broker, make: Callable[[str], Any], group_id: str, words: str
) -> None:
    node.produce(group_id, "a", "b")
    forget(lambda: make(node.bootstrap_servers), words)
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        describe = (
            admin.describe_share_groups if group_id == "shared" else admin.describe_consumer_groups
        )
        eventually(lambda: not describe([group_id])[group_id].members, what="it left its group")
        if group_id != "shared":
            assert node.group(group_id).committed() == {}


def test_what_a_forgotten_producer_was_given_still_goes_out(node: Broker) -> None:
    futures = []

    def make() -> Producer:
        producer = Producer(
            bootstrap_servers=node.bootstrap_servers, client_id="forgotten", linger_ms=600_000
        )
        futures.append(producer.send("produced", b"kept"))
        return producer

    forget(make, "Producer 'forgotten'")
    assert futures[0].result(60).offset == 0
    assert node.values("produced") == [b"kept"]


def test_a_forgotten_admin_ends(node: Broker) -> None:
    forget(lambda: administrator(node.bootstrap_servers), "Admin")


def test_clients_that_are_closed_are_not_warned_of(
    node: Broker, recwarn: pytest.WarningsRecorder
) -> None:
    for make in (administrator, sharer):
        client = make(node.bootstrap_servers)
        client.close()
        del client
    gc.collect()
    assert [str(each.message) for each in recwarn if each.category is ResourceWarning] == []


BLOCKING = """
from moldau.client import Admin, Consumer, Producer, ShareConsumer

producer = Producer(**where)
producer.send("produced", b"x").result()
consumer = Consumer(group_id="left", **where)
consumer.subscribe(["produced"])
consumer.poll(0.1)
by_epoch = Consumer(group_id="left-by-epoch", group_protocol="consumer", **where)
by_epoch.subscribe(["produced"])
by_epoch.poll(0.1)
sharer = ShareConsumer(group_id="left-shared", **where)
sharer.subscribe(["produced"])
sharer.poll(0.1)
admin = Admin(**where)
admin.list_topics()
ready()
# Calls that wait for the cluster, in threads that do not keep the process either.
for work in (admin.list_topics, lambda: consumer.poll(600)):
    threading.Thread(target=work, daemon=True).start()
"""
ON_A_LOOP = """
import asyncio
from moldau.client import AsyncAdmin, AsyncConsumer, AsyncProducer, AsyncShareConsumer

async def main():
    producer = AsyncProducer(**where)
    await (await producer.send("produced", b"x"))
    consumer = AsyncConsumer(group_id="left-async", **where)
    consumer.subscribe(["produced"])
    await consumer.poll(0.1)
    sharer = AsyncShareConsumer(group_id="left-shared-async", **where)
    sharer.subscribe(["produced"])
    await sharer.poll(0.1)
    admin = AsyncAdmin(**where)
    await admin.list_topics()
    ready()
    calls = [asyncio.ensure_future(each) for each in (admin.list_topics(), consumer.poll(600))]
    await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.parametrize("gone", [False, True], ids=["brokers there", "brokers gone"])
@pytest.mark.parametrize("script", [BLOCKING, ON_A_LOOP], ids=["blocking", "asyncio"])
def test_a_process_ends_with_clients_that_nobody_closed(script: str, gone: bool) -> None:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("produced")
        left = leave(script, broker.bootstrap_servers, broker.close if gone else None)
    assert left.problem is None, left
