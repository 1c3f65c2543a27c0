"""Reports to the controller in which log directory each replica of this broker is (KIP-858).

Decided here: what goes into one request, and when it is sent again. One request is in flight at a
time; what is reported in the meantime waits for the next, so reports that come together, as when a
topic is created, are sent together.

Invariants: a report is kept until the controller has accepted it, has responded that there is no
such replica here any more, or a later report about the same replica has replaced it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol
from uuid import UUID

from moldau.clock import Clock, pause
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

logger = logging.getLogger(__name__)

Directory = AssignReplicasToDirsRequest.DirectoryData
Topic = AssignReplicasToDirsRequest.TopicData
Partition = AssignReplicasToDirsRequest.PartitionData
ReplicaKey = tuple[UUID, int]

#: As many as Kafka puts into one request.
ASSIGNMENTS_PER_REQUEST_MAX: Final = 2_250
REQUEST_TIMEOUT_MS: Final = 30_000
BACKOFF_MS: Final = 100
BACKOFF_MS_MAX: Final = 10_000

#: The replica is gone: deleted, or reassigned to others.
_OUTDATED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class Controller(Protocol):
    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message: ...


class DirectoryReports:
    def __init__(
        self,
        controller: Controller,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._waiting: dict[ReplicaKey, UUID] = {}
        self._sending: asyncio.Task[None] | None = None
        self._failures = 0
        self._closed = False

    def report(self, topic_id: UUID, partition: int, directory_id: UUID) -> None:
        self._waiting[topic_id, partition] = directory_id
        if self._sending is None and not self._closed:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def drain(self) -> None:
        """Wait until the controller has accepted everything reported so far."""
        while self._sending is not None:
            await asyncio.wait([self._sending])

    async def stop(self) -> None:
        """What is not sent yet is sent after the next start, which reports all replicas."""
        self._closed = True
        if self._sending is not None:
            self._sending.cancel()
            await self.drain()

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                if self._failures:
                    await pause(self._clock, _backoff_ms(self._failures))
                reports = self._take()
                refused = await self._send(reports)
                self._failures = self._failures + 1 if refused else 0
                for replica in refused:
                    self._waiting.setdefault(replica, reports[replica])
        finally:
            self._sending = None

    def _take(self) -> dict[ReplicaKey, UUID]:
        waiting = self._waiting
        if len(waiting) <= ASSIGNMENTS_PER_REQUEST_MAX:
            self._waiting = {}
            return waiting
        chosen = list(waiting)[:ASSIGNMENTS_PER_REQUEST_MAX]
        return {replica: waiting.pop(replica) for replica in chosen}

    async def _send(self, reports: dict[ReplicaKey, UUID]) -> Iterable[ReplicaKey]:
        """The reports that must be sent again."""
        request = _request(self._node_id, self._broker_epoch(), reports)
        try:
            response = await self._controller.call(
                ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, timeout_ms=REQUEST_TIMEOUT_MS
            )
        except ChannelError as error:
            return self._complain(reports, str(error))
        if not isinstance(response, AssignReplicasToDirsResponse):
            return self._complain(reports, f"unexpected {type(response).__name__}")
        if response.error_code != ErrorCode.NONE:
            return self._complain(reports, ErrorCode(response.error_code).name)
        unanswered = dict(reports)
        for directory in response.directories:
            for topic in directory.topics:
                for answer in topic.partitions:
                    code = answer.error_code
                    if code == ErrorCode.NONE or code in _OUTDATED:
                        unanswered.pop((topic.topic_id, answer.partition_index), None)
        if unanswered:
            return self._complain(unanswered, "it refused them")
        return ()

    def _complain(self, reports: dict[ReplicaKey, UUID], problem: str) -> Iterable[ReplicaKey]:
        logger.warning(
            "reporting the log directories of %d replicas failed, trying again: %s",
            len(reports),
            problem,
        )
        return reports


def _backoff_ms(failures: int) -> int:
    return min(BACKOFF_MS << min(failures - 1, 16), BACKOFF_MS_MAX)


def _request(
    node_id: int, broker_epoch: int, reports: dict[ReplicaKey, UUID]
) -> AssignReplicasToDirsRequest:
    by_directory: dict[UUID, dict[UUID, list[Partition]]] = {}
    for (topic_id, index), directory_id in reports.items():
        topics = by_directory.setdefault(directory_id, {})
        topics.setdefault(topic_id, []).append(Partition(partition_index=index))
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            Directory(
                id=directory_id,
                topics=[
                    Topic(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
            )
            for directory_id, topics in by_directory.items()
        ],
    )
