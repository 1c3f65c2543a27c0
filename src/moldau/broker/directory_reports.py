"""Tells the controller about log folders: which replica lies where and which failed (KIP-858),
and which take no new replicas (KIP-1066).

Reports that come together, as when a topic is created, go in one request. A failure goes first:
whoever leads in that folder cannot.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from moldau.broker.metadata.shell import MetadataShell
from moldau.wire.errors import ApiError
from moldau.wire.messages import AssignReplicasToDirsRequest

logger = logging.getLogger(__name__)

Directory = AssignReplicasToDirsRequest.DirectoryData
Topic = AssignReplicasToDirsRequest.TopicData
Partition = AssignReplicasToDirsRequest.PartitionData


class DirectoryReports:
    def __init__(self, metadata: MetadataShell, *, node_id: int) -> None:
        self._metadata = metadata
        self._node_id = node_id
        self._waiting: dict[tuple[UUID, int], UUID] = {}
        self._failed: set[UUID] = set()
        self._cordoned: frozenset[UUID] | None = None
        self._sending: asyncio.Task[None] | None = None

    def report(self, topic_id: UUID, partition: int, directory_id: UUID) -> None:
        self._waiting[topic_id, partition] = directory_id
        self._start_sending()

    def report_failed(self, directory_id: UUID) -> None:
        self._failed.add(directory_id)
        self._start_sending()

    def report_cordoned(self, directory_ids: frozenset[UUID]) -> None:
        """All that are cordoned now."""
        self._cordoned = directory_ids
        self._start_sending()

    def _start_sending(self) -> None:
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def drain(self) -> None:
        """Wait until everything reported so far is known to the controller."""
        if self._sending is not None:
            await self._sending

    async def _send(self) -> None:
        try:
            while self._waiting or self._failed or self._cordoned is not None:
                if self._failed:
                    failed, self._failed = self._failed, set()
                    await self._take_offline(failed)
                if self._cordoned is not None:
                    cordoned, self._cordoned = self._cordoned, None
                    await self._cordon(cordoned)
                reports, self._waiting = self._waiting, {}
                if reports:
                    await self._assign(self._request(reports))
        except ApiError as error:
            # It is told again with the next start; nothing is served differently meanwhile.
            logger.warning("the controller was not told of log folders: %s", error.message)
        finally:
            self._sending = None

    async def _take_offline(self, directories: set[UUID]) -> None:
        await self._metadata.run(
            lambda controller: controller.take_log_dirs_offline(
                broker_id=self._node_id,
                broker_epoch=self._metadata.broker_epoch,
                directories=directories,
            )
        )

    async def _cordon(self, directories: frozenset[UUID]) -> None:
        await self._metadata.run(
            lambda controller: controller.cordon_log_dirs(
                broker_id=self._node_id,
                broker_epoch=self._metadata.broker_epoch,
                directories=directories,
            )
        )

    async def _assign(self, request: AssignReplicasToDirsRequest) -> None:
        await self._metadata.run(lambda controller: controller.assign_replicas_to_dirs(request))

    def _request(self, reports: dict[tuple[UUID, int], UUID]) -> AssignReplicasToDirsRequest:
        by_directory: dict[UUID, dict[UUID, list[Partition]]] = {}
        for (topic_id, index), directory_id in reports.items():
            topics = by_directory.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(Partition(partition_index=index))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._metadata.broker_epoch,
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
