"""Share groups and the share coordinator together, as clients and brokers meet them: through their
handlers, with every message encoded and decoded on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import ExpiryTimer
from moldau.broker.coordinator.group.machine.shard import GroupShard
from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.broker.coordinator.share.coordinator import ShareCoordinator
from moldau.broker.coordinator.share.machine.config import ShareCoordinatorConfig
from moldau.broker.coordinator.share.machine.values import SharePartitionKey, ShareState, StateBatch
from moldau.broker.handlers.alter_share_group_offsets import AlterShareGroupOffsetsHandler
from moldau.broker.handlers.delete_share_group_offsets import DeleteShareGroupOffsetsHandler
from moldau.broker.handlers.delete_share_group_state import DeleteShareGroupStateHandler
from moldau.broker.handlers.describe_share_group_offsets import DescribeShareGroupOffsetsHandler
from moldau.broker.handlers.initialize_share_group_state import InitializeShareGroupStateHandler
from moldau.broker.handlers.read_share_group_state import ReadShareGroupStateHandler
from moldau.broker.handlers.read_share_group_state_summary import ReadShareGroupStateSummaryHandler
from moldau.broker.handlers.share_group_describe import ShareGroupDescribeHandler
from moldau.broker.handlers.share_group_heartbeat import ShareGroupHeartbeatHandler
from moldau.broker.handlers.write_share_group_state import WriteShareGroupStateHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.share.persister import RetryingPersister
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DescribeShareGroupOffsetsRequest,
    InitializeShareGroupStateRequest,
    Message,
    OffsetCommitKey,
    OffsetCommitValue,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from moldau.wire.record_values import encode_coordinator_key, encode_coordinator_value
from moldau.wire.records import encode_batch, read_header
from moldau.wire.uuids import uuid_from_text

LATEST_OFFSET = 100


class Log:
    """A coordinator's log in memory; everything is committed at once."""

    def __init__(self) -> None:
        self.data = b""
        self.start_offset = 0
        self.end_offset = 0
        self.append_error: ErrorCode | None = None

    def append(
        self, records: Sequence[tuple[bytes, bytes | None]], *, now_ms: int, producer: object = None
    ) -> int:
        if self.append_error is not None:
            raise ApiError(self.append_error, "as told")
        base = self.end_offset
        batch = encode_batch([(k, v, now_ms, ()) for k, v in records], base_offset=base)
        self.data += batch
        self.end_offset = read_header(batch).next_offset
        return base

    def append_marker(self, ending: object, *, now_ms: int) -> int:
        raise AssertionError("no transactions here")

    def read(self, offset: int, max_bytes: int) -> bytes:
        return self.data

    def is_committed(self, next_offset: int) -> bool:
        return True

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        waiter(ErrorCode.NONE)

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None: ...


class Alarm:
    def cancel(self) -> None: ...


class StillClock:
    """Time passes when it is told to; nothing rings by itself."""

    def __init__(self) -> None:
        self.time_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.time_ms

    def elapsed_ms(self) -> int:
        return self.time_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        return Alarm()


class Broker:
    """Both coordinators, one partition each."""

    def __init__(self, topics: Any, settings: Any) -> None:
        self.topics = topics
        self.clock = StillClock()
        self.bugs: list[Exception] = []
        self.states_log, self.groups_log = Log(), Log()
        self.naps: list[int] = []
        self.on_nap: Callable[[], None] = lambda: None
        self.topic_creations = 0
        self.enabled = True
        self.states = ShareCoordinator(
            ShareCoordinatorConfig(),
            partition_count=lambda: 1,
            topics=topics,
            delete_records=lambda partition, offset: None,
            report_bug=self.bugs.append,
            clock=self.clock,
        )
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            family="group",
            make_shard=lambda: GroupShard(GroupConfig(), topics, settings),
            clock=self.clock,
            write_timeout_ms=5_000,
            load_buffer_size=1 << 20,
            report_bug=self.bugs.append,
            perform=lambda partition, action: self.service.perform(action),  # type: ignore[arg-type]
        )
        self.persister = RetryingPersister(self.states, self._create_topic, self._wait)
        self.service = ShareGroupService(
            self.runtime,
            self.persister,
            topics,
            partition_for=lambda group_id: 0,
            section=lambda shard: shard.share,
            latest_offset=self._latest_offset,
            enabled=lambda: self.enabled,
        )

    async def start(self) -> None:
        self.states.on_elected(0, 1, self.states_log)
        self.runtime.load(0, 1, self.groups_log)
        await self.states.loaded()
        await self.runtime.loaded()

    async def _create_topic(self) -> None:
        self.topic_creations += 1

    async def _wait(self, delay_ms: int) -> None:
        self.naps.append(delay_ms)
        self.on_nap()
        await asyncio.sleep(0)

    async def _latest_offset(self, topic: str, partition: int) -> int:
        return LATEST_OFFSET

    async def ask(self, handler: Any, key: ApiKey, request: Message, version: int = -1) -> Any:
        """Send a request through its encoded form, in the newest version or the one given."""
        version = type(request).HIGHEST_VERSION if version < 0 else version
        decoded = decode(type(request), version, encode(request, version))
        context = RequestContext(key, version, client_id="client")
        response = handler.handle(context, decoded)
        if isinstance(response, Coroutine):
            response = await response
        return decode(type(response), version, encode(response, version))

    async def heartbeat(self, member: str, epoch: int, group: str = "g") -> Any:
        self.clock.time_ms += 5_000
        response = await self.ask(
            ShareGroupHeartbeatHandler(self.service),
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ShareGroupHeartbeatRequest(
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                subscribed_topic_names=["t"] if epoch == 0 else None,
            ),
        )
        await self.service.settled()
        return response

    async def member_with_partitions(self, group: str = "g") -> None:
        joined = await self.heartbeat("m", 0, group)
        assert (await self.heartbeat("m", joined.member_epoch, group)).assignment is not None

    async def describe_offsets(
        self, topics: dict[str, list[int]] | None, version: int = 1
    ) -> dict[tuple[str, int], tuple[int, int]]:
        request = DescribeShareGroupOffsetsRequest
        group = request.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
        if topics is not None:
            group.topics = [
                request.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=each)
                for name, each in topics.items()
            ]
        response = await self.ask(
            DescribeShareGroupOffsetsHandler(self.service),
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            request(groups=[group]),
            version,
        )
        (described,) = response.groups
        assert described.error_code == ErrorCode.NONE
        return {
            (topic.topic_name, each.partition_index): (each.start_offset, each.lag)
            for topic in described.topics
            for each in topic.partitions
        }

    async def alter(self, offsets: dict[int, int], group: str = "g") -> Any:
        request = AlterShareGroupOffsetsRequest
        return await self.ask(
            AlterShareGroupOffsetsHandler(self.service),
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            request(
                group_id=group,
                topics=[
                    request.AlterShareGroupOffsetsRequestTopic(
                        topic_name="t",
                        partitions=[
                            request.AlterShareGroupOffsetsRequestPartition(
                                partition_index=index, start_offset=offset
                            )
                            for index, offset in offsets.items()
                        ],
                    )
                ],
            ),
        )

    async def delete_offsets(self, *names: str, group: str = "g") -> Any:
        request = DeleteShareGroupOffsetsRequest
        return await self.ask(
            DeleteShareGroupOffsetsHandler(self.service),
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            request(
                group_id=group,
                topics=[
                    request.DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in names
                ],
            ),
        )

    def key(self, partition: int = 0) -> SharePartitionKey:
        return SharePartitionKey("g", self.topics.id("t"), partition)


@pytest.fixture
def broker(FakeTopics: Any, FakeSettings: Any) -> Broker:
    return Broker(FakeTopics(t=2), FakeSettings())


def play(broker: Broker, script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def started() -> None:
        await broker.start()
        await script()
        broker.service.close()
        assert broker.bugs == []

    asyncio.run(started())


def test_a_group_consumes_from_state_that_its_first_heartbeat_made(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        state = await broker.persister.read_state(broker.key(1), leader_epoch=0)
        assert state == ShareState(2, -1, ())

    play(broker, script)


def test_offsets_and_lag_are_described(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        assert await broker.describe_offsets(None) == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}
        await broker.persister.read_state(broker.key(), leader_epoch=3)
        await broker.persister.write_state(
            broker.key(),
            state_epoch=2,
            leader_epoch=3,
            start_offset=40,
            delivery_complete_count=5,
            batches=[StateBatch(41, 45, 2, 1)],
        )
        wanted = {"t": [0, 1, 9], "missing": [0]}
        assert await broker.describe_offsets(wanted) == {
            ("t", 0): (40, LATEST_OFFSET - 40 - 5),
            ("t", 1): (-1, -1),
            ("t", 9): (-1, -1),
            ("missing", 0): (-1, -1),
        }
        assert (await broker.describe_offsets({"t": [0]}, version=0))["t", 0][0] == 40
        assert broker.naps == [], "nobody waits for what does not exist"

    play(broker, script)


def test_offsets_of_an_empty_group_are_altered(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        refused = await broker.alter({0: 7})
        assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
        await broker.heartbeat("m", -1)

        altered = await broker.alter({0: 7, 5: 1})
        assert altered.error_code == ErrorCode.NONE
        (topic,) = altered.responses
        assert topic.topic_id == broker.topics.id("t")
        assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
            (0, ErrorCode.NONE),
            (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert (await broker.describe_offsets({"t": [0]}))["t", 0] == (7, LATEST_OFFSET - 7)
        state = await broker.persister.read_state(broker.key(), leader_epoch=0)
        assert state.start_offset == 7

    play(broker, script)


def test_altered_offsets_await_the_first_member(broker: Broker) -> None:
    async def script() -> None:
        await broker.alter({0: 7})
        await broker.member_with_partitions()
        assert await broker.describe_offsets(None) == {
            ("t", 0): (7, LATEST_OFFSET - 7),
            ("t", 1): (-1, -1),
        }

    play(broker, script)


def test_offsets_of_an_empty_group_are_deleted(broker: Broker) -> None:
    async def script() -> None:
        missing = await broker.delete_offsets("t")
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        await broker.member_with_partitions()
        assert (await broker.delete_offsets("t")).error_code == ErrorCode.NON_EMPTY_GROUP
        await broker.heartbeat("m", -1)
        for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            response = await broker.delete_offsets("t", "missing")
            codes = {each.topic_name: each.error_code for each in response.responses}
            assert codes == {"t": expected, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        with pytest.raises(ApiError, match="uninitialized"):
            await broker.persister.read_state(broker.key(), leader_epoch=0)
        assert await broker.describe_offsets(None) == {}

    play(broker, script)


def test_a_share_group_is_deleted_with_its_state(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        groups = ["g", "unknown"]
        assert await broker.service.delete_state_of_groups(groups) == {
            "g": ErrorCode.NON_EMPTY_GROUP
        }
        await broker.heartbeat("m", -1)
        assert await broker.service.delete_state_of_groups(groups) == {}
        results = await broker.runtime.run(
            0, lambda shard, now_ms: shard.delete_groups(["g"], now_ms)
        )
        assert [each.error_code for each in results] == [ErrorCode.NONE]
        with pytest.raises(ApiError):
            await broker.states.read_state(broker.key(), leader_epoch=0)
        described = await broker.ask(
            ShareGroupDescribeHandler(broker.service),
            ApiKey.SHARE_GROUP_DESCRIBE,
            ShareGroupDescribeRequest(group_ids=["g", ""]),
        )
        assert [each.error_code for each in described.groups] == [
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.INVALID_GROUP_ID,
        ]

    play(broker, script)


def test_what_the_share_coordinator_refuses_to_delete_keeps_the_group(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        await broker.heartbeat("m", -1)
        broker.states_log.append_error = ErrorCode.KAFKA_STORAGE_ERROR
        refused = await broker.service.delete_state_of_groups(["g"])
        assert refused == {"g": ErrorCode.NOT_COORDINATOR}
        broker.states_log.append_error = None
        assert await broker.service.delete_state_of_groups(["g"]) == {}

    play(broker, script)


def test_a_group_of_another_kind_is_none_of_ours(broker: Broker) -> None:
    committed = OffsetCommitKey(group="other", topic="t", partition=0)
    broker.groups_log.append(
        [(encode_coordinator_key(committed), encode_coordinator_value(OffsetCommitValue(), 3))],
        now_ms=0,
    )

    async def script() -> None:
        assert (await broker.heartbeat("m", 0, "other")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (await broker.alter({0: 1}, "other")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        response = await broker.delete_offsets("t", group="other")
        assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (await broker.service.describe("other")).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    play(broker, script)


def test_malformed_heartbeats_are_answered(broker: Broker) -> None:
    async def script() -> None:
        response = await broker.heartbeat("", 0)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.error_message
        assert (await broker.alter({0: 1}, "")).error_code == ErrorCode.INVALID_GROUP_ID

    play(broker, script)


def test_a_described_group_shows_its_operations_when_asked(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        response = await broker.ask(
            ShareGroupDescribeHandler(broker.service),
            ApiKey.SHARE_GROUP_DESCRIBE,
            ShareGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True),
        )
        (group,) = response.groups
        assert group.authorized_operations > 0
        assert group.members[0].assignment.topic_partitions[0].topic_name == "t"

    play(broker, script)


def test_without_the_feature_there_are_no_share_groups(broker: Broker) -> None:
    broker.enabled = False

    async def script() -> None:
        offsets = await broker.service.describe_offsets(
            DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="g")
        )
        for answer in (
            await broker.heartbeat("m", 0),
            await broker.alter({0: 1}),
            await broker.delete_offsets("t"),
            await broker.service.describe("g"),
            offsets,
        ):
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION

    play(broker, script)


def test_an_empty_share_group_does_not_expire(broker: Broker) -> None:
    async def script() -> None:
        await broker.member_with_partitions()
        await broker.heartbeat("m", -1)
        await broker.runtime.run(
            0, lambda shard, now_ms: shard.on_timer(ExpiryTimer(), now_ms + 10**12)
        )
        assert (await broker.service.describe("g")).group_state == "Empty"

    play(broker, script)


# The persister.


def test_the_persister_waits_for_a_coordinator_and_makes_its_topic(broker: Broker) -> None:
    broker.on_nap = lambda: broker.states.on_elected(0, 1, broker.states_log)

    async def script() -> None:
        await broker.persister.initialize_state(broker.key(), state_epoch=1, start_offset=3)
        state = await broker.persister.read_state(broker.key(), leader_epoch=0)
        assert state.start_offset == 3
        assert broker.topic_creations >= 1
        assert broker.naps

    asyncio.run(script())


def test_the_persister_gives_up_in_the_end(broker: Broker) -> None:
    async def script() -> None:
        with pytest.raises(ApiError) as caught:
            await broker.persister.read_state(broker.key(), leader_epoch=0)
        assert caught.value.code is ErrorCode.NOT_COORDINATOR
        assert 10_000 <= sum(broker.naps) <= 60_000
        assert broker.naps == sorted(broker.naps)

    asyncio.run(script())


def test_refusals_are_final(broker: Broker) -> None:
    async def script() -> None:
        with pytest.raises(ApiError) as caught:
            await broker.persister.read_state(broker.key(), leader_epoch=0)
        assert caught.value.code is ErrorCode.INVALID_REQUEST
        assert broker.naps == []

    play(broker, script)


def test_share_partitions_are_placed_as_kafka_does(broker: Broker) -> None:
    coordinator = ShareCoordinator(
        ShareCoordinatorConfig(),
        partition_count=lambda: 50,
        topics=broker.topics,
        delete_records=lambda partition, offset: None,
        report_bug=broker.bugs.append,
    )
    key = SharePartitionKey("grüppe:x", uuid_from_text("EYsRDXNQTjKV3DJfQl2XPw"), 1)
    assert coordinator.partition_for(key) == 47
    assert coordinator.partition_for("group:EYsRDXNQTjKV3DJfQl2XPw:0") == 27


# The five APIs between brokers.


def test_state_goes_through_the_apis(broker: Broker) -> None:
    topic_id = broker.topics.id("t")

    async def script() -> None:
        initialize = InitializeShareGroupStateRequest
        response = await broker.ask(
            InitializeShareGroupStateHandler(broker.states),
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            initialize(
                group_id="g",
                topics=[
                    initialize.InitializeStateData(
                        topic_id=topic_id,
                        partitions=[
                            initialize.PartitionData(partition=0, state_epoch=1, start_offset=5),
                            initialize.PartitionData(partition=9, state_epoch=1, start_offset=5),
                        ],
                    )
                ],
            ),
        )
        assert [each.error_code for each in response.results[0].partitions] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

        write = WriteShareGroupStateRequest
        for version in (0, 1):
            data = write.PartitionData(
                partition=0,
                state_epoch=1,
                leader_epoch=0,
                start_offset=5,
                state_batches=[write.StateBatch(first_offset=6, last_offset=8, delivery_state=2)],
            )
            if version:
                data.delivery_complete_count = 3
            response = await broker.ask(
                WriteShareGroupStateHandler(broker.states),
                ApiKey.WRITE_SHARE_GROUP_STATE,
                write(
                    group_id="g",
                    topics=[write.WriteStateData(topic_id=topic_id, partitions=[data])],
                ),
                version,
            )
            assert response.results[0].partitions[0].error_code == ErrorCode.NONE

        read = ReadShareGroupStateRequest
        response = await broker.ask(
            ReadShareGroupStateHandler(broker.states),
            ApiKey.READ_SHARE_GROUP_STATE,
            read(
                group_id="g",
                topics=[
                    read.ReadStateData(
                        topic_id=topic_id,
                        partitions=[read.PartitionData(partition=0, leader_epoch=2)],
                    )
                ],
            ),
        )
        (found,) = response.results[0].partitions
        assert (found.error_code, found.state_epoch, found.start_offset) == (0, 1, 5)
        assert [(each.first_offset, each.last_offset) for each in found.state_batches] == [(6, 8)]

        summary = ReadShareGroupStateSummaryRequest
        response = await broker.ask(
            ReadShareGroupStateSummaryHandler(broker.states),
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
            summary(
                group_id="g",
                topics=[
                    summary.ReadStateSummaryData(
                        topic_id=topic_id, partitions=[summary.PartitionData(partition=0)]
                    )
                ],
            ),
        )
        (found,) = response.results[0].partitions
        assert (found.leader_epoch, found.start_offset, found.delivery_complete_count) == (2, 5, 3)

        delete = DeleteShareGroupStateRequest
        for topics, count in (
            ([delete.DeleteStateData(topic_id=topic_id, partitions=[])], 0),
            (
                [
                    delete.DeleteStateData(
                        topic_id=topic_id, partitions=[delete.PartitionData(partition=0)]
                    )
                ],
                1,
            ),
        ):
            response = await broker.ask(
                DeleteShareGroupStateHandler(broker.states),
                ApiKey.DELETE_SHARE_GROUP_STATE,
                delete(group_id="g", topics=topics),
            )
            assert len(response.results) == count
        assert response.results[0].partitions[0].error_code == ErrorCode.NONE
        with pytest.raises(ApiError):
            await broker.states.read_state(broker.key(), leader_epoch=2)

    play(broker, script)
