"""The controller learns where each replica lies, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from moldau.broker.controller_channel import ControllerUnavailable
from moldau.broker.directory_reports import ASSIGNMENTS_PER_REQUEST_MAX, DirectoryReports
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from tests.support.channels import HandClock

TOPIC, OTHER = UUID(int=1), UUID(int=2)
FOLDER, ELSEWHERE = UUID(int=11), UUID(int=12)


class Controller:
    """Takes every report, unless told otherwise; holds answers back while `closed`."""

    def __init__(self) -> None:
        self.requests: list[AssignReplicasToDirsRequest] = []
        self.answers: list[Exception | ErrorCode] = []
        self.refused: dict[tuple[UUID, int], ErrorCode] = {}
        self.open = asyncio.Event()
        self.open.set()
        self.known: dict[tuple[UUID, int], UUID] = {}

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        assert key is ApiKey.ASSIGN_REPLICAS_TO_DIRS
        assert isinstance(request, AssignReplicasToDirsRequest)
        self.requests.append(request)
        await self.open.wait()
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, Exception):
            raise answer
        response = AssignReplicasToDirsResponse(error_code=answer, directories=[])
        if answer is ErrorCode.NONE:
            response.directories = [self._take(each) for each in request.directories]
        return response

    def _take(
        self, directory: AssignReplicasToDirsRequest.DirectoryData
    ) -> AssignReplicasToDirsResponse.DirectoryData:
        topics = []
        for topic in directory.topics:
            answers = []
            for item in topic.partitions:
                replica = (topic.topic_id, item.partition_index)
                code = self.refused.pop(replica, ErrorCode.NONE)
                if code is ErrorCode.NONE:
                    self.known[replica] = directory.id
                answers.append(
                    AssignReplicasToDirsResponse.PartitionData(
                        partition_index=item.partition_index, error_code=code
                    )
                )
            topics.append(
                AssignReplicasToDirsResponse.TopicData(topic_id=topic.topic_id, partitions=answers)
            )
        return AssignReplicasToDirsResponse.DirectoryData(id=directory.id, topics=topics)


class World:
    def __init__(self) -> None:
        self.controller = Controller()
        self.clock = HandClock()
        self.epoch = 5
        self.reports = DirectoryReports(
            self.controller, node_id=3, broker_epoch=lambda: self.epoch, clock=self.clock
        )

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


def scenario(test: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
    async def run() -> None:
        await asyncio.wait_for(test(World()), 60)

    def wrapped() -> None:
        asyncio.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


@scenario
async def test_reports_that_come_together_go_together(world: World) -> None:
    world.reports.report(TOPIC, 0, FOLDER)
    world.reports.report(TOPIC, 1, ELSEWHERE)
    world.reports.report(OTHER, 0, FOLDER)
    await world.reports.drain()
    (request,) = world.controller.requests
    assert (request.broker_id, request.broker_epoch) == (3, 5)
    expected = {(TOPIC, 0): FOLDER, (TOPIC, 1): ELSEWHERE, (OTHER, 0): FOLDER}
    assert world.controller.known == expected


@scenario
async def test_one_request_is_under_way_and_the_rest_waits(world: World) -> None:
    world.controller.open.clear()
    world.reports.report(TOPIC, 0, FOLDER)
    await world.settle()
    world.reports.report(TOPIC, 1, FOLDER)
    world.reports.report(TOPIC, 2, FOLDER)
    await world.settle()
    assert len(world.controller.requests) == 1
    world.controller.open.set()
    await world.reports.drain()
    assert len(world.controller.requests) == 2
    assert len(world.controller.known) == 3


@scenario
async def test_no_request_is_larger_than_the_controller_allows(world: World) -> None:
    count = 2 * ASSIGNMENTS_PER_REQUEST_MAX + 1
    for index in range(count):
        world.reports.report(TOPIC, index, FOLDER)
    await world.reports.drain()
    sizes = [len(each.directories[0].topics[0].partitions) for each in world.controller.requests]
    assert sizes == [ASSIGNMENTS_PER_REQUEST_MAX, ASSIGNMENTS_PER_REQUEST_MAX, 1]
    assert len(world.controller.known) == count


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(ControllerUnavailable("nobody answers"), id="no controller"),
        pytest.param(ErrorCode.STALE_BROKER_EPOCH, id="registered anew meanwhile"),
    ],
)
def test_a_report_is_repeated_later_and_later_until_it_is_taken(
    problem: Exception | ErrorCode,
) -> None:
    async def repeated(world: World) -> None:
        world.controller.answers = [problem] * 10
        world.reports.report(TOPIC, 0, FOLDER)
        pauses = []
        for _ in range(10):
            await world.settle()
            (delay_ms,) = world.clock.pending
            pauses.append(delay_ms)
            world.epoch += 1
            world.clock.advance(delay_ms)
        await world.reports.drain()
        assert pauses == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]
        assert world.controller.known == {(TOPIC, 0): FOLDER}
        # Each try tells the epoch of its own time.
        assert [each.broker_epoch for each in world.controller.requests] == list(range(5, 16))

    scenario(repeated)()


@scenario
async def test_a_refused_replica_is_reported_again_and_the_others_are_not(world: World) -> None:
    world.controller.refused = {(TOPIC, 1): ErrorCode.KAFKA_STORAGE_ERROR}
    world.reports.report(TOPIC, 0, FOLDER)
    world.reports.report(TOPIC, 1, FOLDER)
    await world.settle()
    world.clock.advance(100)
    await world.reports.drain()
    (topic,) = world.controller.requests[1].directories[0].topics
    assert [each.partition_index for each in topic.partitions] == [1]
    assert (TOPIC, 1) in world.controller.known


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ],
)
def test_what_is_not_here_any_more_is_not_reported_again(code: ErrorCode) -> None:
    async def dropped(world: World) -> None:
        world.controller.refused = {(TOPIC, 0): code}
        world.reports.report(TOPIC, 0, FOLDER)
        await world.reports.drain()
        assert len(world.controller.requests) == 1

    scenario(dropped)()


@scenario
async def test_a_later_report_overtakes_one_that_failed(world: World) -> None:
    world.controller.open.clear()
    world.controller.answers = [ControllerUnavailable("nobody answers")]
    world.reports.report(TOPIC, 0, FOLDER)
    await world.settle()
    world.reports.report(TOPIC, 0, ELSEWHERE)
    world.controller.open.set()
    await world.settle()
    world.clock.advance(100)
    await world.reports.drain()
    assert world.controller.known == {(TOPIC, 0): ELSEWHERE}
    assert len(world.controller.requests) == 2


@scenario
async def test_stop_does_not_wait_for_a_controller_that_is_away(world: World) -> None:
    world.controller.answers = [ControllerUnavailable("nobody answers")] * 3
    world.reports.report(TOPIC, 0, FOLDER)
    await world.settle()
    await world.reports.stop()
    world.reports.report(TOPIC, 1, FOLDER)
    await world.reports.drain()
    assert len(world.controller.requests) == 1
