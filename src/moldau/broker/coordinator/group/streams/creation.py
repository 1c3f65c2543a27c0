"""Creates the internal topics of streams groups: the shell of one action.

Invariants: there is at most one request for a topic at a time, and every error is reported back, so
that members get it with their next heartbeats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from moldau.broker.coordinator.group.machine.streams.events import (
    CreateInternalTopics,
    InternalTopic,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse

CreateTopics = Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]]
Report = Callable[[str, Mapping[str, str]], None]
"""Group id, and by topic what went wrong: ends in `StreamsGroups.on_internal_topics`."""


class InternalTopicCreation:
    def __init__(self, create_topics: CreateTopics, report: Report) -> None:
        self._create_topics = create_topics
        self._report = report
        self._in_flight: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, action: CreateInternalTopics) -> None:
        wanted = [topic for topic in action.topics if topic.name not in self._in_flight]
        if wanted:
            self._in_flight.update(topic.name for topic in wanted)
            task = asyncio.create_task(self._run(action.group_id, wanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, group_id: str, topics: list[InternalTopic]) -> None:
        try:
            errors = await self._create(topics)
        finally:
            self._in_flight.difference_update(topic.name for topic in topics)
        if errors:
            self._report(group_id, errors)

    async def _create(self, topics: list[InternalTopic]) -> dict[str, str]:
        try:
            response = await self._create_topics(creation_request(topics))
        except ApiError as error:
            return {topic.name: error.message or error.code.name for topic in topics}
        return {
            result.name: result.error_message or ErrorCode(result.error_code).name
            for result in response.topics
            if result.error_code != ErrorCode.NONE
        }


def creation_request(topics: Iterable[InternalTopic]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=[
                    CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs
                ],
            )
            for topic in topics
        ]
    )
