"""A consumer group under a rebalance, on asyncio."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from shop.stock import StockKeeper

from moldau.testing import Broker, wait_until_async

ORDERS = 100


@asynccontextmanager
async def keepers(*many: StockKeeper) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(keeper.run()) for keeper in many]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def publish(broker: Broker, first: int, count: int) -> None:
    for number in range(first, first + count):
        broker.produce("orders", {"number": number}, partition=number % 4)


@pytest.mark.moldau(topics={"orders": 4})
def test_each_order_is_handled_once_in_a_rebalance(moldau_broker: Broker) -> None:
    async def run() -> None:
        handled: Counter[int] = Counter()
        address = moldau_broker.bootstrap_servers
        one, two = (
            StockKeeper(address, lambda number: handled.update([number]), client_id=name)
            for name in ("one", "two")
        )
        group = moldau_broker.aio.group("stock")
        publish(moldau_broker, 0, ORDERS)
        async with keepers(one, two):
            await group.wait_until_stable(2)
            await group.rebalance()
            publish(moldau_broker, ORDERS, ORDERS)
            await wait_until_async(lambda: len(handled) == 2 * ORDERS, what="all orders")
        assert one.events["revoked"] > 1
        assert two.events["revoked"] > 1
        assert set(handled.values()) == {1}

    asyncio.run(run())


@pytest.mark.moldau(topics={"orders": 4})
def test_no_order_is_lost_with_a_session(moldau_broker: Broker) -> None:
    async def run() -> None:
        handled: Counter[int] = Counter()
        address = moldau_broker.bootstrap_servers
        one, two = (
            StockKeeper(address, lambda number: handled.update([number]), client_id=name)
            for name in ("one", "two")
        )
        group = moldau_broker.aio.group("stock")
        async with keepers(one, two):
            await group.wait_until_stable(2)
            expired = await group.expire("one")
            publish(moldau_broker, 0, ORDERS)
            await wait_until_async(lambda: len(handled) == ORDERS, what="all orders")
            await group.wait_until_stable(2)
            assert expired.member_id not in [each.member_id for each in await group.members()]

    asyncio.run(run())


@pytest.mark.moldau(topics={"orders": 4})
def test_what_was_done_is_committed(moldau_broker: Broker) -> None:
    async def run() -> None:
        handled: Counter[int] = Counter()
        keeper = StockKeeper(
            moldau_broker.bootstrap_servers, lambda number: handled.update([number])
        )
        publish(moldau_broker, 0, ORDERS)
        group = moldau_broker.aio.group("stock")
        async with keepers(keeper):
            await wait_until_async(lambda: len(handled) == ORDERS, what="all orders")
        assert sum((await group.committed()).values()) == ORDERS

    asyncio.run(run())
