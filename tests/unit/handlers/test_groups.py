"""The group APIs as a client meets them: every version, encoded and decoded on the way."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.handlers.delete_groups import DeleteGroupsHandler
from moldau.broker.handlers.describe_groups import DescribeGroupsHandler
from moldau.broker.handlers.heartbeat import HeartbeatHandler
from moldau.broker.handlers.join_group import JoinGroupHandler
from moldau.broker.handlers.leave_group import LeaveGroupHandler
from moldau.broker.handlers.list_groups import ListGroupsHandler
from moldau.broker.handlers.offset_commit import OffsetCommitHandler
from moldau.broker.handlers.offset_delete import OffsetDeleteHandler
from moldau.broker.handlers.offset_fetch import OffsetFetchHandler
from moldau.broker.handlers.sync_group import SyncGroupHandler
from moldau.broker.metadata.machine.model import Node
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from moldau.wire.records import encode_batch, read_header
from support.group_facts import FakeSettings, FakeTopics, no_actions

TOPIC_ID = uuid.UUID(int=77)


class Log:
    """A coordinator's log in memory; everything is committed at once."""

    def __init__(self) -> None:
        self.data = b""
        self.start_offset = 0
        self.end_offset = 0

    def append(
        self, records: Sequence[tuple[bytes, bytes | None]], *, now_ms: int, producer: object = None
    ) -> int:
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


class OneTopic:
    """Topic t with two partitions."""

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return "t" if topic_id == TOPIC_ID else None

    def id_of(self, name: str) -> uuid.UUID | None:
        return TOPIC_ID if name == "t" else None

    def has_partition(self, name: str, partition: int) -> bool:
        return name == "t" and partition in (0, 1)

    def partition_count(self, name: str) -> int | None:
        return 2 if name == "t" else None

    def leader(self, name: str, partition: int, listener_name: str) -> Node | None:
        return None


class Broker:
    def __init__(self) -> None:
        self.log = Log()
        self.bugs: list[Exception] = []
        self.coordinator = GroupCoordinator(
            GroupConfig(group_initial_rebalance_delay_ms=0),
            topics=FakeTopics(t=2),
            settings=FakeSettings(),
            partition_count=lambda: 1,
            report_bug=self.bugs.append,
            perform=no_actions,
        )
        topics = OneTopic()
        group = self.coordinator
        self.handlers: dict[ApiKey, Any] = {
            ApiKey.JOIN_GROUP: JoinGroupHandler(group),
            ApiKey.SYNC_GROUP: SyncGroupHandler(group),
            ApiKey.HEARTBEAT: HeartbeatHandler(group),
            ApiKey.LEAVE_GROUP: LeaveGroupHandler(group),
            ApiKey.OFFSET_COMMIT: OffsetCommitHandler(group, topics),
            ApiKey.OFFSET_FETCH: OffsetFetchHandler(group, topics),
            ApiKey.OFFSET_DELETE: OffsetDeleteHandler(group, topics),
            ApiKey.LIST_GROUPS: ListGroupsHandler(group),
            ApiKey.DESCRIBE_GROUPS: DescribeGroupsHandler(group),
            ApiKey.DELETE_GROUPS: DeleteGroupsHandler(group, self._share_groups()),
        }

    def _share_groups(self) -> ShareGroupService:
        group = self.coordinator
        return ShareGroupService(
            group.runtime,
            None,  # type: ignore[arg-type]  # no share group here has state to be deleted
            FakeTopics(t=2),
            partition_for=group.partition_for,
            section=lambda shard: shard.share,
            latest_offset=None,  # type: ignore[arg-type]  # nobody asks for a lag
        )

    async def start(self) -> None:
        self.coordinator.on_elected(0, 1, self.log)
        await self.coordinator.loaded()

    async def ask(self, request: Message, version: int) -> Any:
        api = API_BY_KEY[ApiKey(request.TYPE or 0)]
        received = decode(api.request, version, encode(request, version))
        context = RequestContext(ApiKey(api.key), version, client_id="app", client_host="10.0.0.9")
        answer = self.handlers[ApiKey(api.key)].handle(context, received)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return decode(api.response, version, encode(answer, version))

    # Requests whose fields depend on the version.

    async def commit(self, version: int, offset: int, *, topic: str = "t", **fields: Any) -> int:
        known = topic == "t"
        request = OffsetCommitRequest(group_id="g", **fields)
        request.topics.append(
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic if version < 10 else "",
                topic_id=(TOPIC_ID if known else uuid.UUID(int=5))
                if version >= 10
                else uuid.UUID(int=0),
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=offset, committed_metadata="m"
                    )
                ],
            )
        )
        response = await self.ask(request, version)
        return int(response.topics[0].partitions[0].error_code)

    async def fetch(self, version: int, *, group: str = "g", topic: str | None = "t") -> Any:
        """The group's part of the answer, whatever the version calls it."""
        if version < 8:
            request = OffsetFetchRequest(group_id=group, topics=None)
            if topic is not None:
                request.topics = [
                    OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
                ]
            return await self.ask(request, version)
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        if topic is not None:
            wanted.topics = [
                OffsetFetchRequest.OffsetFetchRequestTopics(
                    name=topic if version < 10 else "",
                    topic_id=(TOPIC_ID if topic == "t" else uuid.UUID(int=5))
                    if version >= 10
                    else uuid.UUID(int=0),
                    partition_indexes=[0],
                )
            ]
        response = await self.ask(OffsetFetchRequest(groups=[wanted]), version)
        return response.groups[0]

    async def join(self, version: int, member: str = "") -> Any:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000 if version else -1,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0")],
        )
        return await self.ask(request, version)


def versions(key: ApiKey) -> range:
    api = API_BY_KEY[key]
    return range(api.min_version, api.max_version + 1)


def play(scene: Callable[[Broker], Coroutine[Any, Any, None]], *, started: bool = True) -> None:
    async def run() -> None:
        broker = Broker()
        if started:
            await broker.start()
        await scene(broker)
        assert not broker.bugs

    asyncio.run(run())


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_life_of_a_group(version: int) -> None:
    async def scene(broker: Broker) -> None:
        joined = await broker.join(version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert joined.member_id.startswith("app-")
            joined = await broker.join(version, joined.member_id)
        assert joined.error_code == ErrorCode.NONE
        assert joined.leader == joined.member_id == joined.members[0].member_id
        member = joined.member_id
        for sync_version in versions(ApiKey.SYNC_GROUP):
            request = SyncGroupRequest(
                group_id="g",
                generation_id=1,
                member_id=member,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=b"A")
                ],
            )
            synced = await broker.ask(request, sync_version)
            assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"A")
        for beat_version in versions(ApiKey.HEARTBEAT):
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
            assert (await broker.ask(beat, beat_version)).error_code == ErrorCode.NONE
        for describe_version in versions(ApiKey.DESCRIBE_GROUPS):
            described = await broker.ask(DescribeGroupsRequest(groups=["g"]), describe_version)
            assert described.groups[0].group_state == "Stable"
            assert described.groups[0].members[0].client_host == "/10.0.0.9"

    play(scene)


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_leave(version: int) -> None:
    async def scene(broker: Broker) -> None:
        member = (await broker.join(3)).member_id
        request = LeaveGroupRequest(group_id="g")
        if version < 3:
            request.member_id = member
        else:
            request.members.append(LeaveGroupRequest.MemberIdentity(member_id=member))
        for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            response = await broker.ask(request, version)
            if version < 3:
                assert response.error_code == expected
            else:
                assert response.error_code == ErrorCode.NONE
                assert [each.error_code for each in response.members] == [expected]
        listed = await broker.ask(ListGroupsRequest(), 5)
        assert [each.group_state for each in listed.groups] == ["Empty"]

    play(scene)


def test_join_is_refused_before_it_reaches_a_group() -> None:
    async def scene(broker: Broker) -> None:
        for session_ms, group, expected in (
            (5_999, "g", ErrorCode.INVALID_SESSION_TIMEOUT),
            (1_800_001, "g", ErrorCode.INVALID_SESSION_TIMEOUT),
            (10_000, "", ErrorCode.INVALID_GROUP_ID),
        ):
            request = JoinGroupRequest(group_id=group, session_timeout_ms=session_ms, member_id="m")
            for version in (6, 7):
                response = await broker.ask(request, version)
                assert (response.error_code, response.member_id) == (expected, "m")
        assert (await broker.ask(ListGroupsRequest(), 5)).groups == []

    play(scene)


def test_sync_from_version_5_on_must_name_the_protocol() -> None:
    async def scene(broker: Broker) -> None:
        member = (await broker.join(3)).member_id
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=member)
        assert (await broker.ask(request, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await broker.ask(request, 4)).error_code == ErrorCode.NONE

    play(scene)


class TestOffsets:
    @pytest.mark.parametrize("commit_version", versions(ApiKey.OFFSET_COMMIT))
    @pytest.mark.parametrize("fetch_version", versions(ApiKey.OFFSET_FETCH))
    def test_committed_is_fetched(self, commit_version: int, fetch_version: int) -> None:
        async def scene(broker: Broker) -> None:
            assert await broker.commit(commit_version, 42) == ErrorCode.NONE
            found = await broker.fetch(fetch_version)
            assert found.error_code == ErrorCode.NONE
            topic = found.topics[0]
            assert (topic.name == "t") if fetch_version < 10 else (topic.topic_id == TOPIC_ID)
            partition = topic.partitions[0]
            assert (partition.committed_offset, partition.metadata) == (42, "m")
            if fetch_version >= 2:
                everything = await broker.fetch(fetch_version, topic=None)
                assert everything.topics == found.topics

        play(scene)

    @pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
    def test_unknown_topics_are_not_stored(self, version: int) -> None:
        async def scene(broker: Broker) -> None:
            expected = (
                ErrorCode.UNKNOWN_TOPIC_ID
                if version >= 10
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            assert await broker.commit(version, 42, topic="nowhere") == expected
            assert broker.log.end_offset == 0

        play(scene)

    def test_known_and_unknown_in_one_request_keep_their_order(self) -> None:
        async def scene(broker: Broker) -> None:
            request = OffsetCommitRequest(group_id="g")
            for name, index in (("nowhere", 0), ("t", 9), ("t", 1)):
                request.topics.append(
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=name,
                        partitions=[
                            OffsetCommitRequest.OffsetCommitRequestPartition(
                                partition_index=index, committed_offset=3
                            )
                        ],
                    )
                )
            response = await broker.ask(request, 9)
            assert [
                (topic.name, topic.partitions[0].partition_index, topic.partitions[0].error_code)
                for topic in response.topics
            ] == [
                ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                ("t", 1, ErrorCode.NONE),
            ]

        play(scene)

    def test_a_commit_the_group_refuses_tells_every_partition(self) -> None:
        async def scene(broker: Broker) -> None:
            fields = {"generation_id_or_member_epoch": 3, "member_id": "m"}
            assert await broker.commit(8, 1, **fields) == ErrorCode.ILLEGAL_GENERATION
            assert await broker.commit(9, 1, **fields) == ErrorCode.GROUP_ID_NOT_FOUND

        play(scene)

    @pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
    def test_nothing_committed(self, version: int) -> None:
        async def scene(broker: Broker) -> None:
            partition = (await broker.fetch(version)).topics[0].partitions[0]
            assert (partition.committed_offset, partition.metadata) == (-1, "")
            assert partition.error_code == ErrorCode.NONE
            unknown = (await broker.fetch(version, topic="nowhere")).topics[0].partitions[0]
            assert unknown.committed_offset == -1
            assert unknown.error_code == (
                ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.NONE
            )

        play(scene)

    @pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
    def test_wrong_coordinator(self, version: int) -> None:
        async def scene(broker: Broker) -> None:
            found = await broker.fetch(version)
            if version >= 2:
                assert found.error_code == ErrorCode.NOT_COORDINATOR
                assert found.topics == []
            else:
                assert found.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR

        play(scene, started=False)

    def test_many_groups_at_once(self) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 42)
            request = OffsetFetchRequest(
                groups=[
                    OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
                    for group in ("h", "g")
                ]
            )
            response = await broker.ask(request, 9)
            assert [(each.group_id, len(each.topics)) for each in response.groups] == [
                ("h", 0),
                ("g", 1),
            ]

        play(scene)

    def test_delete(self) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 42)

            def request(group: str, *partitions: tuple[str, int]) -> OffsetDeleteRequest:
                message = OffsetDeleteRequest(group_id=group)
                for name, index in partitions:
                    message.topics.append(
                        OffsetDeleteRequest.OffsetDeleteRequestTopic(
                            name=name,
                            partitions=[
                                OffsetDeleteRequest.OffsetDeleteRequestPartition(
                                    partition_index=index
                                )
                            ],
                        )
                    )
                return message

            assert (
                await broker.ask(request("h", ("t", 0)), 0)
            ).error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert (await broker.ask(request(""), 0)).error_code == ErrorCode.INVALID_GROUP_ID
            response = await broker.ask(request("g", ("t", 0), ("nowhere", 0)), 0)
            assert [t.partitions[0].error_code for t in response.topics] == [
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ]
            assert (await broker.fetch(8, topic=None)).topics == []

        play(scene)


class TestGroups:
    @pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
    def test_list(self, version: int) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 1)
            listed = (await broker.ask(ListGroupsRequest(), version)).groups
            assert [(each.group_id, each.protocol_type) for each in listed] == [("g", "")]
            if version >= 5:
                assert (listed[0].group_state, listed[0].group_type) == ("Empty", "classic")

        play(scene)

    @pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
    def test_delete(self, version: int) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 1)
            request = DeleteGroupsRequest(groups_names=["g", "nowhere", "g"])
            results = (await broker.ask(request, version)).results
            assert [(each.group_id, each.error_code) for each in results] == [
                ("g", ErrorCode.NONE),
                ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND),
            ]
            assert (await broker.ask(ListGroupsRequest(), 5)).groups == []

        play(scene)

    @pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
    def test_describe_missing(self, version: int) -> None:
        async def scene(broker: Broker) -> None:
            request = DescribeGroupsRequest(groups=["nowhere", ""])
            for missing in (await broker.ask(request, version)).groups:
                assert missing.group_state == "Dead"
                assert missing.error_code == (
                    ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
                )

        play(scene)

    def test_authorized_operations_only_when_asked_for(self) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 1)
            for wanted, expected in ((False, -(2**31)), (True, 3400)):
                request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=wanted)
                group = (await broker.ask(request, 5)).groups[0]
                assert group.authorized_operations == expected

        play(scene)


class TestCoordinatorAway:
    def test_not_coordinator(self) -> None:
        async def scene(broker: Broker) -> None:
            code = ErrorCode.NOT_COORDINATOR
            assert (await broker.join(9)).error_code == code
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
            assert (await broker.ask(beat, 4)).error_code == code
            assert await broker.commit(8, 1) == code
            leave = LeaveGroupRequest(group_id="g")
            assert (await broker.ask(leave, 4)).error_code == code
            described = await broker.ask(DescribeGroupsRequest(groups=["g"]), 6)
            assert described.groups[0].error_code == code
            deleted = await broker.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
            assert deleted.results[0].error_code == code
            assert (await broker.ask(ListGroupsRequest(), 5)).error_code == ErrorCode.NONE

        play(scene, started=False)

    def test_load_in_progress(self) -> None:
        async def scene(broker: Broker) -> None:
            broker.coordinator.on_elected(0, 1, broker.log)
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            # Nothing has been awaited, so loading has not ended.
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
            assert (await broker.ask(beat, 4)).error_code == ErrorCode.NONE, "keeps members calm"
            assert await broker.commit(8, 1) == code
            assert (await broker.ask(ListGroupsRequest(), 5)).error_code == code
            await broker.coordinator.loaded()
            assert await broker.commit(8, 1) == ErrorCode.NONE

        play(scene, started=False)

    def test_state_survives_a_move(self) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 42)
            broker.coordinator.on_resigned(0, 2)
            assert await broker.commit(8, 1) == ErrorCode.NOT_COORDINATOR
            broker.coordinator.on_elected(0, 3, broker.log)
            await broker.coordinator.loaded()
            assert (await broker.fetch(8)).topics[0].partitions[0].committed_offset == 42

        play(scene)

    def test_deleted_topics_take_their_offsets_along(self) -> None:
        async def scene(broker: Broker) -> None:
            await broker.commit(8, 42)
            await broker.coordinator.on_topics_deleted({"t": TOPIC_ID})
            assert (await broker.fetch(8, topic=None)).topics == []

        play(scene)
