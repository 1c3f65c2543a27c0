"""Internal topics are created once at a time, and failures come back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from moldau.broker.coordinator.group.machine.streams.creation_errors import CreationErrors
from moldau.broker.coordinator.group.machine.streams.events import (
    CreateInternalTopics,
    InternalTopic,
)
from moldau.broker.coordinator.group.streams.creation import InternalTopicCreation
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse

LOG = InternalTopic("log", 4, -1, (("cleanup.policy", "compact"),))
AGAIN = InternalTopic("again", 2, 3, ())
_Result = CreateTopicsResponse.CreatableTopicResult


class Controller:
    def __init__(self) -> None:
        self.requests: asyncio.Queue[CreateTopicsRequest] = asyncio.Queue()
        self.answers: asyncio.Queue[CreateTopicsResponse | ApiError] = asyncio.Queue()

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        self.requests.put_nowait(request)
        answer = await self.answers.get()
        if isinstance(answer, ApiError):
            raise answer
        return answer


def test_topics_in_flight_are_not_asked_for_again() -> None:
    async def scenario() -> None:
        controller = Controller()
        reports: asyncio.Queue[tuple[str, Mapping[str, str]]] = asyncio.Queue()
        creation = InternalTopicCreation(
            controller.create_topics, lambda *report: reports.put_nowait(report)
        )
        creation.start(CreateInternalTopics("g", (LOG,)))
        creation.start(CreateInternalTopics("g", (LOG, AGAIN)))
        creation.start(CreateInternalTopics("g", (LOG, AGAIN)))
        failed = _Result(name="log", error_code=ErrorCode.INVALID_CONFIG, error_message="bad")
        controller.answers.put_nowait(CreateTopicsResponse(topics=[failed]))
        controller.answers.put_nowait(ApiError(ErrorCode.REQUEST_TIMED_OUT))
        assert await reports.get() == ("g", {"log": "bad"})
        assert await reports.get() == ("g", {"again": "REQUEST_TIMED_OUT"})
        [topic] = (await controller.requests.get()).topics
        [other] = (await controller.requests.get()).topics
        assert (topic.name, other.name) == ("log", "again")
        assert (topic.num_partitions, topic.replication_factor) == (4, -1)
        assert [(each.name, each.value) for each in topic.configs] == [
            ("cleanup.policy", "compact")
        ]
        # What failed may be asked for again.
        creation.start(CreateInternalTopics("g", (LOG,)))
        controller.answers.put_nowait(CreateTopicsResponse(topics=[_Result(name="log")]))
        await controller.requests.get()
        assert controller.requests.empty()
        await creation.close()
        assert reports.empty()

    asyncio.run(scenario())


def test_errors_are_kept_for_their_interval_whatever_the_clock_does() -> None:
    errors = CreationErrors()
    errors.note("t", "no room", WallMs(10_000), keep_ms=500)
    assert errors.of(["t", "u"], WallMs(10_499)) == {"t": "no room"}
    assert errors.of(["t"], WallMs(10_500)) == {}
    errors.note("t", "no room", WallMs(10_000), keep_ms=500)
    # The clock was set back: the topic is tried again at once, not when the clock has caught up.
    assert errors.of(["t"], WallMs(1_000)) == {}
