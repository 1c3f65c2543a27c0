"""Share consumers against one node: real logs, a persister in memory, virtual time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from moldau.broker.coordinator.machine.topics import ImageTopics
from moldau.broker.coordinator.share.machine.values import (
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.broker.handlers.share_acknowledge import ShareAcknowledgeHandler
from moldau.broker.handlers.share_fetch import ShareFetchHandler
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.routes import Route
from moldau.broker.share.manager import SharePartitionManager
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.messages import ShareAcknowledgeRequest, ShareFetchRequest
from moldau.wire.records import decode_batches
from support.hosting import Host

GROUP = "g"


class MemoryPersister:
    """Keeps every write; fails or waits when told to."""

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.writes: list[list[StateBatch]] = []
        self.error: ErrorCode | None = None
        self.gate: asyncio.Event | None = None
        self.reads = 0

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        self.states[key] = ShareState(state_epoch, start_offset)

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        await self._pass()
        self.reads += 1
        return self.states.get(key, ShareState(0, UNINITIALIZED_START_OFFSET))

    async def write_state(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        await self._pass()
        self.writes.append(list(batches))
        records: dict[int, StateBatch] = {}
        former = self.states.get(key, ShareState(0, start_offset)).batches
        for batch in (*former, *batches):
            for offset in range(batch.first_offset, batch.last_offset + 1):
                if offset >= start_offset:
                    records[offset] = StateBatch(offset, offset, *batch[2:])
        self.states[key] = ShareState(
            state_epoch, start_offset, tuple(records[offset] for offset in sorted(records))
        )

    async def delete_state(self, key: SharePartitionKey) -> None:
        self.states.pop(key, None)

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = -1
    ) -> ShareStateSummary:
        return ShareStateSummary()

    async def _pass(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise ApiError(self.error, "the test says so")


class _Loop:
    """Tasks of the running loop, timers of the virtual one."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def create_task(self, work: Any) -> Any:
        return asyncio.get_running_loop().create_task(work)

    def create_future(self) -> Any:
        return asyncio.get_running_loop().create_future()

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Any:
        return asyncio.get_running_loop().call_soon(callback, *args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Any:
        return self._host.loop.call_later(delay, callback, *args)


class _Clock:
    def __init__(self, host: Host) -> None:
        self._loop = host.loop

    def now_ms(self) -> int:
        return self._loop.now_ms

    def elapsed_ms(self) -> int:
        return self._loop.now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return self._loop.call_later(delay_ms / 1000, callback)


class Settings(dict[str, Any]):
    def get(self, group_id: str, key: str) -> Any:  # type: ignore[override]
        return self[key]


class Member:
    """One share consumer on a connection of its own."""

    def __init__(self, stage: Stage, member_id: str) -> None:
        self.stage = stage
        self.id = member_id
        self.epoch = 0
        self.connection = ConnectionInfo(connection_id=member_id)

    async def ask(self, key: ApiKey, request: Any, version: int = 2) -> Any:
        api = API_BY_KEY[key]
        frame = encode_request_frame(api, version, 1, "test", request)
        reply = self.stage.dispatcher.dispatch(self.connection, memoryview(bytearray(frame[4:])))
        if isinstance(reply, Awaitable):
            reply = await reply
        assert reply is not None
        joined = reply if isinstance(reply, bytes) else b"".join(reply)
        return decode_response(api, version, joined[4:])[1]

    async def fetch(
        self,
        *topics: str,
        acks: dict[int, Sequence[tuple[int, int, int]]] | None = None,
        partitions: Sequence[int] = (0,),
        epoch: int | None = None,
        version: int = 2,
        forget: Sequence[int] = (),
        **fields: Any,
    ) -> Any:
        """A ShareFetch; `acks` are (first, last, type) by partition."""
        fields.setdefault("max_records", 500)
        fields.setdefault("batch_size", 500)
        fields.setdefault("min_bytes", 1)
        # Time stands still, so this is as long as it takes.
        fields.setdefault("max_wait_ms", 1000)
        batch = ShareFetchRequest.AcknowledgementBatch
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[
                ShareFetchRequest.FetchTopic(
                    topic_id=self.stage.ids[topic],
                    partitions=[
                        ShareFetchRequest.FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                batch(
                                    first_offset=first, last_offset=last, acknowledge_types=[kind]
                                )
                                for first, last, kind in (acks or {}).get(index, ())
                            ],
                        )
                        for index in partitions
                    ],
                )
                for topic in topics
            ],
            forgotten_topics_data=[
                ShareFetchRequest.ForgottenTopic(
                    topic_id=self.stage.ids["t"], partitions=list(forget)
                )
            ]
            if forget
            else [],
            **fields,
        )
        response = await self.ask(ApiKey.SHARE_FETCH, request, version)
        if not response.error_code and epoch is None:
            self.epoch += 1
        return response

    async def acknowledge(
        self,
        *acks: tuple[int, int, int],
        partition: int = 0,
        topic_id: uuid.UUID | None = None,
        epoch: int | None = None,
        **fields: Any,
    ) -> Any:
        batch = ShareAcknowledgeRequest.AcknowledgementBatch
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[
                ShareAcknowledgeRequest.AcknowledgeTopic(
                    topic_id=topic_id or self.stage.ids["t"],
                    partitions=[
                        ShareAcknowledgeRequest.AcknowledgePartition(
                            partition_index=partition,
                            acknowledgement_batches=[
                                batch(
                                    first_offset=first, last_offset=last, acknowledge_types=[kind]
                                )
                                for first, last, kind in acks
                            ],
                        )
                    ],
                )
            ],
            **fields,
        )
        response = await self.ask(ApiKey.SHARE_ACKNOWLEDGE, request)
        if not response.error_code and epoch is None:
            self.epoch += 1
        return response


class Stage:
    def __init__(self, folder: Path) -> None:
        self.host = Host(folder)
        self.ids: dict[str, uuid.UUID] = {"nowhere": uuid.uuid4()}
        self.persister = MemoryPersister()
        self.enabled = True
        self.settings = Settings(
            {
                "share.delivery.count.limit": 5,
                "share.partition.max.record.locks": 2000,
                "share.record.lock.duration.ms": 30_000,
                "share.renew.acknowledge.enable": True,
                "share.auto.offset.reset": "earliest",
                "share.isolation.level": "read_uncommitted",
            }
        )
        loop: Any = _Loop(self.host)
        self.manager = SharePartitionManager(
            self.host.replicas,
            self.persister,
            self.settings,
            clock=_Clock(self.host),
            loop=loop,
            sessions_max=3,
            enabled=lambda: self.enabled,
        )
        topics = ImageTopics(lambda: self.host.image)
        self.dispatcher = Dispatcher(
            {
                ApiKey.SHARE_FETCH: Route(ShareFetchHandler(self.manager, topics).handle),
                ApiKey.SHARE_ACKNOWLEDGE: Route(
                    ShareAcknowledgeHandler(self.manager, topics).handle
                ),
            }
        )
        self.create("t")

    def create(self, name: str, partitions: int = 1, **fields: Any) -> None:
        self.ids[name] = self.host.create_topic(name, partitions, **fields)

    def member(self, member_id: str = "m") -> Member:
        return Member(self, member_id)

    def append(self, *values: bytes, topic: str = "t", index: int = 0, **fields: Any) -> int:
        return self.host.append(topic, *values, index=index, **fields)

    async def settle(self) -> None:
        """Let everything happen that needs no time to pass."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def pass_ms(self, ms: int) -> None:
        await self.settle()
        self.host.loop.advance(ms)
        await self.settle()


def on_stage(scenario: Callable[[Stage], Awaitable[None]]) -> Callable[[Path], None]:
    """Make a test of a scenario."""

    async def play(folder: Path) -> None:
        stage = Stage(folder)
        try:
            async with asyncio.timeout(60):
                await scenario(stage)
        finally:
            await stage.manager.close()
            await stage.dispatcher.stop()

    def test(tmp_path: Path) -> None:
        asyncio.run(play(tmp_path))

    test.__name__ = scenario.__name__  # type: ignore[attr-defined]
    return test


def partition_of(response: Any, index: int = 0) -> Any:
    """The only answer for a partition."""
    assert response.error_code == 0, (response.error_code, response.error_message)
    [found] = [
        each
        for topic in response.responses
        for each in topic.partitions
        if each.partition_index == index
    ]
    return found


def acquired_of(response: Any, index: int = 0) -> list[tuple[int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for each in partition_of(response, index).acquired_records
    ]


def values_of(response: Any, index: int = 0) -> list[bytes | None]:
    records = partition_of(response, index).records
    return [record.value for _, batch in decode_batches(records) for record in batch]
