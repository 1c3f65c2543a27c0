"""The controller of this same process, called as one on the network is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.channel import ChannelError, UnsupportedVersion
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError
from moldau.wire.message import Message
from moldau.wire.messages import AssignReplicasToDirsRequest, CreateTopicsRequest

logger = logging.getLogger(__name__)


class InProcessController:
    def __init__(self, metadata: MetadataShell, node_id: int) -> None:
        self._metadata = metadata
        self._node_id = node_id
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        try:
            match request:
                case CreateTopicsRequest():
                    return await self._metadata.run(lambda it: it.create_topics(request))
                case AssignReplicasToDirsRequest():
                    return await self._metadata.run(lambda it: it.assign_replicas_to_dirs(request))
        except ApiError as error:
            raise ChannelError(error.message or error.code.name) from error
        raise UnsupportedVersion(f"{key.name} is not called in process")

    def report_failed(self, directory_id: UUID) -> None:
        self._start(self._take_offline(directory_id))

    def report_cordoned(self, directory_ids: frozenset[UUID]) -> None:
        """All that are cordoned now."""
        self._start(self._cordon(directory_ids))

    async def drain(self) -> None:
        await asyncio.gather(*self._tasks)

    async def _take_offline(self, directory_id: UUID) -> None:
        await self._metadata.run(
            lambda controller: controller.take_log_dirs_offline(
                broker_id=self._node_id,
                broker_epoch=self._metadata.broker_epoch,
                directories={directory_id},
            )
        )

    async def _cordon(self, directory_ids: frozenset[UUID]) -> None:
        await self._metadata.run(
            lambda controller: controller.cordon_log_dirs(
                broker_id=self._node_id,
                broker_epoch=self._metadata.broker_epoch,
                directories=directory_ids,
            )
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._report(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ApiError as error:
            logger.warning("the controller was not told of log folders: %s", error.message)
