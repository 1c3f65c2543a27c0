"""What all simulated clients have in common: a name, chance of their own, patience."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

from moldau.sim.clients.history import History
from moldau.sim.clients.rpc import RETRIABLE, Lost, Wire
from moldau.sim.cluster import Cluster
from moldau.sim.world import Invariant, Violation
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.records import ControlType, decode_batches, decode_control_type

T = TypeVar("T")
TopicPartition = tuple[str, int]

FETCH_BYTES = 64 * 1024


class Refused(Exception):
    """An error in an answer that is the caller's to judge."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


def check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise Refused(ErrorCode(code))


class Actor:
    """One client. `run` ends soon after `history.stopping`, if everything goes on."""

    def __init__(self, cluster: Cluster, history: History, name: str) -> None:
        self.cluster = cluster
        self.history = history
        self.name = name
        self.random = Random(f"{cluster.world.seed}/{name}")
        self.wire = Wire(cluster, name, self.random)
        self.crash_next = False

    async def run(self) -> None:
        raise AssertionError("every client has a life of its own")

    def note(self, text: str) -> None:
        self.history.note(f"{self.name}: {text}")

    @property
    def stopping(self) -> bool:
        return self.history.stopping

    async def rest(self, seconds: float = 0.3) -> None:
        await asyncio.sleep(self.random.random() * seconds)

    async def patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until there is an answer that is not only about when and where."""
        while True:
            try:
                return await attempt()
            except Lost:
                pass
            except Refused as error:
                if error.code not in RETRIABLE:
                    raise
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self.wire.forget()
            await self.rest(0.4)

    def surprised(self, what: str, error: Exception) -> Violation:
        return Violation(Invariant.NO_SURPRISE, f"{self.name}: {what}: {error}")

    # Reading.

    async def fetch(
        self, where: TopicPartition, offset: int, *, committed: bool, max_wait_ms: int = 200
    ) -> Fetched:
        topic, partition = where
        address = await self.wire.leader(topic, partition)
        reign = self.cluster.reign(topic, partition)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=int(committed),
            topics=[
                FetchRequest.FetchTopic(
                    topic_id=await self.wire.topic_id(topic),
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=partition,
                            current_leader_epoch=self.wire.leader_epoch(topic, partition),
                            fetch_offset=offset,
                            partition_max_bytes=self.random.choice((200, FETCH_BYTES)),
                        )
                    ],
                )
            ],
        )
        response = await self.wire.call(address, request, FetchResponse)
        check(response.error_code)
        answer = response.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and (
            reign != self.cluster.reign(topic, partition) or reign[0] != address[0]
        ):
            # Who leads no more does not have what was committed since. Kafka's consumers notice by
            # the leader epochs of what they have read and committed.
            self.wire.forget()
            raise Lost("the answer may be that of a former leader")
        check(answer.error_code)
        return _read(offset, answer, committed=committed)


class Fetched:
    __slots__ = ("high_watermark", "last_stable_offset", "next_offset", "records")

    def __init__(self, next_offset: int, records: dict[int, bytes], answer: Any) -> None:
        self.next_offset = next_offset
        self.records = records
        self.high_watermark = answer.high_watermark
        self.last_stable_offset = answer.last_stable_offset


def _read(offset: int, answer: Any, *, committed: bool) -> Fetched:
    """The records that a consumer hands to its user."""
    records: dict[int, bytes] = {}
    next_offset = offset
    aborted = sorted(
        ((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()),
        reverse=True,
    )
    hidden: set[int] = set()
    for header, batch in decode_batches(answer.records or b""):
        next_offset = max(next_offset, header.next_offset)
        if committed:
            while aborted and aborted[-1][0] <= header.last_offset:
                hidden.add(aborted.pop()[1])
        if header.is_control:
            if decode_control_type(batch[0].key) == ControlType.ABORT:
                hidden.discard(header.producer_id)
            continue
        if committed and header.is_transactional and header.producer_id in hidden:
            continue
        for record in batch:
            if record.offset >= offset:
                records[record.offset] = bytes(record.value or b"")
    return Fetched(next_offset, records, answer)
