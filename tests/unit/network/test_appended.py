"""Produce requests that are appended and wait to be replicated: others of their kind go on."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from moldau.broker.network._connection import APPENDED_MAX
from moldau.broker.network.interface import InvalidRequest

Serving = Any
Run = Any

PRODUCE = b"\x00\x00"


class Replication:
    """Takes the place of the handler: what comes as Produce waits until it is replicated."""

    def __init__(self, receiver: Any) -> None:
        self._others = receiver.dispatch
        self.seen: list[bytes] = receiver.seen
        self.waiting: dict[bytes, asyncio.Future[Any]] = {}
        self.gate = receiver.gate
        receiver.dispatch = self.dispatch
        receiver.is_pipelined = lambda frame: bytes(frame).startswith(PRODUCE)

    def dispatch(self, connection: Any, frame: memoryview) -> Any:
        request = bytes(frame)
        if not request.startswith(PRODUCE):
            return self._others(connection, frame)
        self.seen.append(request)
        word = request[2:].split(b" ", 1)[0]
        if word == b"acks-0":
            return None
        if word == b"acks-1":
            return self._framed(request)
        if word == b"verify":
            return self._verify(request)
        future = asyncio.get_running_loop().create_future()
        self.waiting[request] = future
        return future

    async def _verify(self, request: bytes) -> bytes:
        """As a transaction that has to be asked about first: nothing is appended yet."""
        await self.gate.wait()
        return self._framed(request)

    def replicate(self, request: bytes) -> None:
        self.waiting.pop(request).set_result(self._framed(request))

    @staticmethod
    def _framed(request: bytes) -> bytes:
        return len(request).to_bytes(4, "big") + request


def produce(text: bytes) -> bytes:
    return PRODUCE + text


def test_what_is_appended_holds_up_no_other_append(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client = await server.connect()
            requests = [produce(b"%d" % number) for number in range(5)]
            await client.send(*requests)
            await server.until(lambda: len(replication.waiting) == 5)
            # Committed in whatever order, answered in that of the requests.
            for request in reversed(requests):
                replication.replicate(request)
            assert [await client.receive() for _ in requests] == requests

    run(main())


def test_answers_that_are_ready_wait_for_those_before_them(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client, other = await server.connect(), await server.connect()
            first, second = produce(b"1"), produce(b"2")
            requests = [first, produce(b"acks-1"), produce(b"acks-0"), second, produce(b"acks-1 x")]
            await client.send(b"echo before", *requests)
            assert await client.receive() == b"echo before"
            await server.until(lambda: second in replication.waiting)
            replication.replicate(second)
            assert await other.ask(b"echo meanwhile") == b"echo meanwhile"
            replication.replicate(first)
            expected = [each for each in requests if b"acks-0" not in each]
            assert [await client.receive() for _ in expected] == expected

    run(main())


@pytest.mark.parametrize("other", [b"echo other", b"wait other", b"none", b"e"])
def test_any_other_request_waits_for_all_that_is_appended(
    serving: Serving, run: Run, other: bytes
) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            server.receiver.gate.set()
            client, neighbour = await server.connect(), await server.connect()
            first, second = produce(b"1"), produce(b"2")
            await client.send(first, other, second, b"echo end")
            await server.until(lambda: first in replication.waiting)
            assert await neighbour.ask(b"echo " + b"o" * 900) == b"echo " + b"o" * 900
            assert other not in replication.seen
            replication.replicate(first)
            await server.until(lambda: second in replication.waiting)
            replication.replicate(second)
            expected = [first, *([] if other == b"none" else [other]), second, b"echo end"]
            assert [await client.receive() for _ in expected] == expected

    run(main())


def test_a_batch_that_is_not_appended_yet_holds_up_the_next(serving: Serving, run: Run) -> None:
    """Else the batches of a transaction would not stay in order."""

    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client = await server.connect()
            first, verified, last = produce(b"1"), produce(b"verify 2"), produce(b"3")
            await client.send(first, verified, last)
            await server.until(lambda: verified in replication.seen)
            replication.gate.set()
            await server.until(lambda: last in replication.waiting)
            replication.replicate(last)
            replication.replicate(first)
            assert [await client.receive() for _ in range(3)] == [first, verified, last]

    run(main())


def test_no_more_than_so_many_are_appended_and_unanswered(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client = await server.connect()
            requests = [produce(b"%d " % number + b"x" * 70_000) for number in range(40)]
            sending = asyncio.ensure_future(client.send(*requests))
            await server.until(lambda: len(replication.waiting) == APPENDED_MAX)
            await asyncio.sleep(0.05)
            assert len(replication.waiting) == APPENDED_MAX
            for request in requests:
                await server.until(lambda request=request: request in replication.waiting)
                replication.replicate(request)
                assert await client.receive() == request
            await sending

    run(main())


def test_a_client_that_goes_away_is_waited_for_by_nobody(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client = await server.connect()
            await client.send(produce(b"1"), produce(b"2"), b"echo held")
            await server.until(lambda: len(replication.waiting) == 2)
            client.close()
            futures = list(replication.waiting.values())
            await server.until(lambda: all(each.cancelled() for each in futures))
            assert b"echo held" not in replication.seen

    run(main())


def test_one_that_fails_closes_the_connection(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client = await server.connect()
            first, second = produce(b"1"), produce(b"2")
            await client.send(first, second)
            await server.until(lambda: len(replication.waiting) == 2)
            replication.waiting[second].set_exception(InvalidRequest("acks=0 and an error"))
            assert await client.closed_by_server()
            assert replication.waiting[first].cancelled()

    run(main())


def test_a_stop_answers_what_is_appended(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            replication = Replication(server.receiver)
            client = await server.connect()
            requests = [produce(b"1"), produce(b"2")]
            await client.send(*requests)
            await server.until(lambda: len(replication.waiting) == 2)
            stopping = asyncio.ensure_future(server.network.stop(10))
            await asyncio.sleep(0.02)
            await client.send(produce(b"too late"))
            for request in requests:
                replication.replicate(request)
            assert [await client.receive() for _ in requests] == requests
            assert await client.closed_by_server()
            await stopping
            assert len(replication.seen) == 2

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_answers_come_in_request_order_whatever_the_mixture(
    serving: Serving, run: Run, seed: int
) -> None:
    async def main() -> None:
        chance = random.Random(seed)
        async with serving() as server:
            replication = Replication(server.receiver)
            server.receiver.gate.set()
            client = await server.connect()
            kinds = [PRODUCE, PRODUCE, PRODUCE, PRODUCE + b"acks-1 ", PRODUCE + b"verify ",
                     b"echo ", b"wait "]  # fmt: skip
            requests = [
                chance.choice(kinds) + b"%d " % number + b"x" * chance.choice([1, 1_000, 90_000])
                for number in range(150)
            ]
            sending = asyncio.ensure_future(client.send(*requests))
            answers: list[bytes] = []

            async def receive() -> None:
                while len(answers) < len(requests):
                    answers.append(await client.receive())

            receiving = asyncio.ensure_future(receive())
            async with asyncio.timeout(60):
                while not receiving.done():
                    if replication.waiting:
                        replication.replicate(chance.choice(list(replication.waiting)))
                    await asyncio.sleep(0)
            await sending
            assert answers == requests

    run(main())
