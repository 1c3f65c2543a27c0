"""The network of a node under test: between its sockets and its dispatcher requests may be slowed,
dropped, failed or held back.

What is cut off is silent, as with lost packets: requests and answers are held back, and when the
cut is healed they go their way, unless the other end has given up. A request that was dropped is
never answered; when the fault ends, so does its connection, and the client goes on at once.
Nothing here costs a request without a fault more than a look at its header.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Collection, Mapping
from typing import Final

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver, InvalidRequest, Network, Reply
from moldau.broker.network.settings import NetworkSettings
from moldau.testing.machine.rules import Cuts, Rule, RuleBook, Who
from moldau.testing.process.error_answers import error_answer, with_topic_errors
from moldau.wire.apis import ApiKey

#: How nodes under test name themselves in requests to each other.
NODE_PREFIX: Final = "moldau-node-"

_HEAD: Final = struct.Struct(">hhih")


class Switchboard:
    """The faults of one node, as its control sets them and its receivers ask for them."""

    def __init__(self, rules: RuleBook) -> None:
        self.rules = rules
        self._cuts = Cuts()
        self._healed: asyncio.Future[None] | None = None
        self._dropped: dict[int, asyncio.Future[Reply]] = {}

    def set_cuts(self, cuts: Cuts) -> None:
        self._cuts = cuts
        healed, self._healed = self._healed, None
        if healed is not None:
            healed.set_result(None)

    def remove(self, rule_id: int) -> None:
        self.rules.remove(rule_id)
        self._let_go(rule_id)

    def clear(self) -> None:
        self.rules.clear()
        for rule_id in tuple(self._dropped):
            self._let_go(rule_id)
        self.set_cuts(Cuts())

    def _let_go(self, rule_id: int) -> None:
        waiting = self._dropped.pop(rule_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_exception(InvalidRequest("it was dropped by a fault that has ended"))
            # Nobody may have waited any more.
            waiting.exception()

    @property
    def quiet(self) -> bool:
        """Whether nothing can happen to requests at present."""
        return not self.rules and not self._cuts

    def requests_blocked(self, who: Who) -> bool:
        return self._cuts.requests_blocked(who)

    def responses_blocked(self, who: Who) -> bool:
        return self._cuts.responses_blocked(who)

    async def until_requests_pass(self, who: Who) -> None:
        while self._cuts.requests_blocked(who):
            await self._change()

    async def until_responses_pass(self, who: Who) -> None:
        while self._cuts.responses_blocked(who):
            await self._change()

    async def never(self, rule: Rule) -> Reply:
        """Wait for the end of the fault, which then ends the connection."""
        waiting = self._dropped.get(rule.rule_id)
        if waiting is None:
            waiting = asyncio.get_running_loop().create_future()
            self._dropped[rule.rule_id] = waiting
        return await asyncio.shield(waiting)

    async def _change(self) -> None:
        if self._healed is None:
            self._healed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._healed)


class FaultyReceiver:
    """Implements `FrameReceiver` in front of another."""

    def __init__(self, inner: FrameReceiver, board: Switchboard) -> None:
        self._inner = inner
        self._board = board

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        board = self._board
        try:
            api_key, _, _, length = _HEAD.unpack_from(frame)
        except struct.error:
            return self._inner.dispatch(connection, frame)
        who = _sender(frame, length)
        if not board.quiet:
            if board.requests_blocked(who):
                return self._held(connection, memoryview(bytearray(frame)), who)
            hits = board.rules.decide(api_key, who)
            if hits:
                return self._faulty(connection, memoryview(bytearray(frame)), who, hits)
        reply = self._inner.dispatch(connection, frame)
        if reply is None or isinstance(reply, bytes | list):
            return self._sent(reply, who) if board.responses_blocked(who) else reply
        guarded = self._guarded(reply, who)
        if isinstance(reply, asyncio.Future) and self._inner.is_pipelined(frame):
            # A future says that the records are appended, and the next request need not wait.
            return asyncio.get_running_loop().create_task(guarded)
        return guarded

    def is_pipelined(self, frame: memoryview) -> bool:
        return self._inner.is_pipelined(frame)

    async def _guarded(self, reply: Awaitable[Reply], who: Who) -> Reply:
        """The answer, when it may leave."""
        return await self._sent(await reply, who)

    async def _sent(self, reply: Reply, who: Who) -> Reply:
        await self._board.until_responses_pass(who)
        return reply

    async def _held(self, connection: ConnectionInfo, frame: memoryview, who: Who) -> Reply:
        await self._board.until_requests_pass(who)
        return await self._answer(connection, frame, who)

    async def _faulty(
        self, connection: ConnectionInfo, frame: memoryview, who: Who, hits: list[Rule]
    ) -> Reply:
        delay_ms = sum(rule.delay_ms for rule in hits)
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        fatal = next((rule for rule in hits if rule.kind != "slow"), None)
        if fatal is None:
            return await self._answer(connection, frame, who)
        if fatal.carried_out:
            await self._answer(connection, frame, who)
        if fatal.kind == "drop":
            return await self._board.never(fatal)
        if fatal.kind == "disconnect":
            raise InvalidRequest("disconnected by a fault")
        return await self._error(connection, frame, who, fatal.error)

    async def _error(
        self, connection: ConnectionInfo, frame: memoryview, who: Who, error: int
    ) -> Reply:
        if int.from_bytes(frame[:2], "big") != ApiKey.METADATA:
            return error_answer(frame, error)
        reply = await self._answer(connection, frame, who)
        return (
            None
            if reply is None
            else with_topic_errors(
                frame, reply if isinstance(reply, bytes) else b"".join(reply), error
            )
        )

    async def _answer(self, connection: ConnectionInfo, frame: memoryview, who: Who) -> Reply:
        reply = self._inner.dispatch(connection, frame)
        if reply is not None and not isinstance(reply, bytes | list):
            reply = await reply
        return await self._sent(reply, who)


def _sender(frame: memoryview, length: int) -> Who:
    name = bytes(frame[_HEAD.size : _HEAD.size + max(0, length)]).decode(errors="replace")
    if name.startswith(NODE_PREFIX) and name[len(NODE_PREFIX) :].isdecimal():
        return Who(name, int(name[len(NODE_PREFIX) :]))
    return Who(name)


class FaultyNetwork:
    """Implements `Network`: another one, with a switchboard in front of every receiver."""

    def __init__(self, inner: Network, board: Switchboard) -> None:
        self._inner = inner
        self._board = board

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        return self._inner.addresses

    async def bind(self) -> None:
        await self._inner.bind()

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        await self._inner.start(FaultyReceiver(receiver, self._board), listeners)

    def update_address_rates(self, default: float | None, limits: Mapping[str, float]) -> None:
        self._inner.update_address_rates(default, limits)

    def update_settings(self, settings: NetworkSettings) -> None:
        self._inner.update_settings(settings)

    async def stop(self, grace_s: float) -> None:
        # Who is held back by a fault would hold up the stop as well.
        self._board.clear()
        await self._inner.stop(grace_s)
