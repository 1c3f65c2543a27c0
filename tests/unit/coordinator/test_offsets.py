"""Commits, fetches, deletions and expiry of offsets; views of groups."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

import pytest

from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    ListGroupsRequest,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from moldau.wire.record_values import decode_coordinator_record, encode_coordinator_value

DAY_MS = 86_400_000


class TestCommit:
    def test_simple_commit_makes_a_group_nobody_joined(self, stage: Any) -> None:
        assert stage.commit(42, topic="t", partition=3) is ErrorCode.NONE
        assert stage.fetch() == {("t", 3): 42}
        assert stage.state() == "Empty"
        assert stage.shard.stored["g"].protocol_type is None

    def test_record_is_kafkas(self, stage: Any) -> None:
        topic_id = uuid.uuid4()
        stage.commit(42, metadata="note", version=10, topic_id=topic_id)
        key, value = stage.written[-1]
        assert key == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x00"
        assert value is not None
        assert value[:2] == b"\x00\x04"
        _, decoded = decode_coordinator_record("group", key, value)
        assert decoded == OffsetCommitValue(
            offset=42,
            metadata="note",
            commit_timestamp=stage.now_ms,
            topic_id=topic_id,
        )

    def test_own_retention_is_written_in_the_version_that_has_it(self, stage: Any) -> None:
        stage.commit(42, retention_ms=1_000, version=2)
        key, value = stage.written[-1]
        assert value[:2] == b"\x00\x01"
        _, decoded = decode_coordinator_record("group", key, value)
        assert isinstance(decoded, OffsetCommitValue)
        assert decoded.expire_timestamp == stage.now_ms + 1_000

    @pytest.mark.parametrize(
        ("phase", "options", "expected"),
        [
            ("none", {"generation": 1, "member": "m"}, ErrorCode.ILLEGAL_GENERATION),
            (
                "none",
                {"generation": 1, "member": "m", "version": 9},
                ErrorCode.GROUP_ID_NOT_FOUND,
            ),
            ("stable", {}, ErrorCode.UNKNOWN_MEMBER_ID),
            ("stable", {"generation": 1, "member": "m"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ("stable", {"generation": 0, "member": "LEADER"}, ErrorCode.ILLEGAL_GENERATION),
            ("stable", {"generation": -1, "member": "LEADER"}, ErrorCode.ILLEGAL_GENERATION),
            ("stable", {"generation": 1, "member": "LEADER"}, ErrorCode.NONE),
            ("stable", {"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ("preparing", {"generation": 1, "member": "LEADER"}, ErrorCode.NONE),
            ("completing", {"generation": 2, "member": "LEADER"}, ErrorCode.REBALANCE_IN_PROGRESS),
            ("empty", {"generation": 1, "member": "LEADER"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ("empty", {}, ErrorCode.NONE),
        ],
    )
    def test_who_may(
        self, stage: Any, phase: str, options: dict[str, Any], expected: ErrorCode
    ) -> None:
        if phase != "none":
            leader, follower = stage.stable_group(2)
            options = {k: leader if v == "LEADER" else v for k, v in options.items()}
            if phase in ("preparing", "completing"):
                stage.join(member=leader)
            if phase == "completing":
                stage.join(member=follower)
            if phase == "empty":
                stage.leave(leader, follower)
        assert stage.commit(7, **options) is expected
        stored = {("t", 0): 7} if expected is ErrorCode.NONE else {}
        assert stage.fetch() == stored

    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            (None, ErrorCode.NONE),
            ("x" * 8, ErrorCode.NONE),
            ("x" * 9, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            ("ü" * 8, ErrorCode.NONE),
            ("😀" * 4, ErrorCode.NONE),
            ("😀" * 4 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ],
    )
    def test_metadata_limit(self, Stage: Any, metadata: str | None, expected: ErrorCode) -> None:
        stage = Stage(offset_metadata_max_bytes=8)
        assert stage.commit(7, metadata=metadata) is expected
        assert bool(stage.fetch()) is (expected is ErrorCode.NONE)


class TestFetch:
    def test_named_partitions_without_an_offset(self, stage: Any) -> None:
        stage.commit(1, topic="t", partition=0)
        wanted = {"t": [0, 1], "u": [0]}
        assert stage.fetch(topics=wanted) == {("t", 0): 1, ("t", 1): -1, ("u", 0): -1}
        assert stage.fetch("nowhere", wanted) == {("t", 0): -1, ("t", 1): -1, ("u", 0): -1}
        assert stage.fetch("nowhere") == {}

    def test_offsets_of_a_former_topic_of_that_name_are_not_told(self, stage: Any) -> None:
        former, current = uuid.uuid4(), uuid.uuid4()
        stage.commit(9, version=10, topic_id=former)

        def ask(topic_id: uuid.UUID) -> int:
            request = OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id="g",
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopics(
                        name="t", topic_id=topic_id, partition_indexes=[0]
                    )
                ],
            )
            response = stage.shard.fetch_offsets(request, False).response
            return int(response.topics[0].partitions[0].committed_offset)

        assert ask(former) == 9
        assert ask(current) == -1
        assert ask(uuid.UUID(int=0)) == 9


class TestTransactions:
    """Replay only: the log of a cluster that had transactions must load right."""

    def pending(self, stage: Any, offset: int, record_offset: int, producer_id: int = 7) -> None:
        stage.shard.replay(
            record_offset,
            producer_id,
            OffsetCommitKey(group="g", topic="t", partition=0),
            OffsetCommitValue(offset=offset, commit_timestamp=stage.now_ms),
        )

    def test_commit_makes_visible(self, stage: Any) -> None:
        self.pending(stage, 5, 100)
        assert stage.fetch(topics={"t": [0]}) == {("t", 0): -1}
        assert stage.fetch(topics={"t": [0]}, stable=True) == {
            ("t", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT
        }
        stage.shard.replay_end_transaction(7, True)
        assert stage.fetch(topics={"t": [0]}, stable=True) == {("t", 0): 5}

    def test_abort_forgets(self, stage: Any) -> None:
        stage.commit(1)
        self.pending(stage, 5, 100)
        stage.shard.replay_end_transaction(7, False)
        assert stage.fetch(stable=True) == {("t", 0): 1}

    @pytest.mark.parametrize(("record_offset", "expected"), [(100, 5), (-1, 1)])
    def test_the_later_record_wins(self, stage: Any, record_offset: int, expected: int) -> None:
        stage.commit(1)
        self.pending(stage, 5, record_offset)
        stage.shard.replay_end_transaction(7, True)
        assert stage.fetch() == {("t", 0): expected}

    def test_an_open_transaction_keeps_offsets_from_expiring(self, stage: Any) -> None:
        stage.commit(1)
        self.pending(stage, 5, 100)
        stage.advance(8 * DAY_MS)
        assert stage.fetch() == {("t", 0): 1}
        stage.shard.replay_end_transaction(7, False)
        stage.advance(600_000)
        assert stage.fetch() == {}
        assert stage.state() == "Dead"

    def test_a_tombstone_removes_the_pending_one_too(self, stage: Any) -> None:
        self.pending(stage, 5, 100)
        stage.shard.replay(
            101, NO_PRODUCER_ID, OffsetCommitKey(group="g", topic="t", partition=0), None
        )
        stage.shard.replay_end_transaction(7, True)
        assert stage.fetch() == {}


def delete_offsets(stage: Any, group: str = "g", **topics: list[int]) -> dict[str, ErrorCode]:
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )
    try:
        response = stage.perform(stage.shard.delete_offsets(request, stage.now_ms))
    except ApiError as error:
        return {"": error.code}
    return {
        f"{topic.name}-{partition.partition_index}": ErrorCode(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


class TestOffsetDelete:
    def test_in_an_empty_group(self, stage: Any) -> None:
        stage.commit(1, partition=0)
        stage.commit(1, partition=1)
        assert delete_offsets(stage, t=[0, 9]) == {"t-0": ErrorCode.NONE, "t-9": ErrorCode.NONE}
        assert stage.fetch() == {("t", 1): 1}

    def test_not_of_subscribed_topics(self, stage: Any) -> None:
        (leader,) = stage.stable_group()
        stage.commit(1, topic="t", member=leader, generation=1)
        stage.commit(1, topic="old", member=leader, generation=1)
        assert delete_offsets(stage, t=[0], old=[0]) == {
            "t-0": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            "old-0": ErrorCode.NONE,
        }
        assert stage.fetch() == {("t", 0): 1}

    def test_not_while_subscriptions_cannot_be_read(self, stage: Any) -> None:
        stage.stable_group(protocols=(("range", b"\x00"),))
        assert delete_offsets(stage, t=[0]) == {"t-0": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}

    def test_not_of_groups_of_other_kinds_with_members(self, stage: Any) -> None:
        stage.stable_group(protocol_type="connect", protocols=(("v1", b"?"),))
        assert delete_offsets(stage, t=[0]) == {"": ErrorCode.NON_EMPTY_GROUP}

    def test_of_no_group(self, stage: Any) -> None:
        assert delete_offsets(stage, t=[0]) == {"": ErrorCode.GROUP_ID_NOT_FOUND}


class TestExpiry:
    def test_simple_group_counts_from_the_last_commit(self, stage: Any) -> None:
        stage.commit(1, partition=0)
        stage.advance(6 * DAY_MS)
        stage.commit(1, partition=1)
        stage.advance(2 * DAY_MS)
        assert stage.fetch() == {("t", 1): 1}
        stage.advance(6 * DAY_MS)
        assert stage.fetch() == {}
        assert stage.state() == "Dead", "and the group is gone with its last offset"
        stage.reload()
        assert stage.state() == "Dead"

    def test_group_with_members_counts_from_when_it_became_empty(self, stage: Any) -> None:
        (leader,) = stage.stable_group(session_ms=1_800_000)
        stage.commit(1, member=leader, generation=1)
        for _ in range(30 * 48):
            stage.advance(1_800_000 - 1)
            assert stage.heartbeat(leader, 1) is ErrorCode.NONE
        assert stage.fetch() == {("t", 0): 1}, "a live group keeps what it subscribes to"
        stage.leave(leader)
        stage.advance(7 * DAY_MS - 600_000)
        assert stage.fetch() == {("t", 0): 1}
        stage.advance(1_200_000)
        assert stage.fetch() == {}

    def test_emptiness_counts_across_a_reload(self, stage: Any) -> None:
        (leader,) = stage.stable_group()
        stage.commit(1, member=leader, generation=1)
        stage.leave(leader)
        stage.advance(6 * DAY_MS)
        stage.reload()
        stage.advance(DAY_MS + 600_000)
        assert stage.fetch() == {}

    def test_topics_no_member_subscribes_to_expire_in_a_stable_group(self, stage: Any) -> None:
        (leader,) = stage.stable_group(session_ms=1_800_000)
        stage.commit(1, topic="t", member=leader, generation=1)
        stage.commit(1, topic="left", member=leader, generation=1)
        for _ in range(8 * 49):
            stage.advance(1_800_000 - 1)
            stage.heartbeat(leader, 1)
        assert stage.fetch() == {("t", 0): 1}

    def test_own_retention_of_old_clients(self, stage: Any) -> None:
        stage.commit(1, partition=0, retention_ms=3_600_000, version=2)
        stage.commit(1, partition=1)
        stage.advance(3_600_000 + 600_000)
        assert stage.fetch() == {("t", 1): 1}

    def test_an_empty_group_without_offsets_is_removed(self, stage: Any) -> None:
        (leader,) = stage.stable_group()
        stage.leave(leader)
        stage.advance(600_000)
        assert stage.state() == "Dead"
        assert stage.written[-1] == (b"\x00\x02\x00\x01g", None)

    def test_a_group_somebody_is_about_to_join_stays(self, Stage: Any) -> None:
        stage = Stage(offsets_retention_check_interval_ms=5_000)
        member = stage.answers[stage.join(session_ms=10_000)].member_id
        stage.advance(6_000)
        ticket = stage.join(member=member)
        stage.advance(0)
        assert stage.answers[ticket].error_code == ErrorCode.NONE


def test_offsets_of_deleted_topics_are_forgotten(stage: Any) -> None:
    for group in ("a", "b"):
        stage.commit(1, group=group, topic="gone", partition=0, topic_id=UUID(int=7))
        stage.commit(1, group=group, topic="gone", partition=1)
        stage.commit(1, group=group, topic="stays")
    decision = stage.shard.delete_offsets_of({"gone": UUID(int=7)}, stage.now_ms)
    assert not decision.atomic
    stage.perform(decision)
    assert stage.fetch("a") == stage.fetch("b") == {("stays", 0): 1}


def test_a_topic_created_anew_keeps_its_offsets_when_the_old_one_is_cleaned_up(stage: Any) -> None:
    stage.commit(1, topic="again", topic_id=UUID(int=8))
    stage.perform(stage.shard.delete_offsets_of({"again": UUID(int=7)}, stage.now_ms))
    assert stage.fetch() == {("again", 0): 1}


class TestViews:
    def listed(self, stage: Any, states: list[str], types: list[str]) -> dict[str, str]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return {each.group_id: each.group_state for each in stage.shard.list_groups(request)}

    @pytest.mark.parametrize(
        ("states", "types", "expected"),
        [
            ([], [], {"simple": "Empty", "live": "Stable"}),
            (["stable"], [], {"live": "Stable"}),
            (["EMPTY", "Dead"], [], {"simple": "Empty"}),
            ([], ["Classic"], {"simple": "Empty", "live": "Stable"}),
            ([], ["consumer", "nonsense"], {}),
            (["nonsense"], [], {}),
        ],
    )
    def test_list(
        self, stage: Any, states: list[str], types: list[str], expected: dict[str, str]
    ) -> None:
        stage.commit(1, group="simple")
        stage.stable_group(group="live")
        assert self.listed(stage, states, types) == expected

    def test_describe_a_stable_group(self, stage: Any, subscription: Any) -> None:
        leader, _ = stage.stable_group(2, client="app")
        group = stage.shard.describe_group("g", 5)
        assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
        assert group.protocol_data == "range"
        member = group.members[0]
        assert (member.member_id, member.client_id) == (leader, "app")
        assert member.client_host == "/127.0.0.1"
        assert member.member_assignment == leader.encode()
        assert member.member_metadata == subscription("t")

    def test_describe_hides_metadata_in_a_rebalance(self, stage: Any) -> None:
        leader, _ = stage.stable_group(2)
        stage.join(member=leader)
        group = stage.shard.describe_group("g", 5)
        assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
        assert [each.member_metadata for each in group.members] == [b"", b""]

    @pytest.mark.parametrize(
        ("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_describe_no_group(self, stage: Any, version: int, code: ErrorCode) -> None:
        group = stage.shard.describe_group("nowhere", version)
        assert (group.group_state, group.error_code) == ("Dead", code)
        assert bool(group.error_message) is (version == 6)

    def test_delete_groups(self, stage: Any) -> None:
        stage.commit(1, group="simple")
        stage.stable_group(group="live")
        decision = stage.shard.delete_groups(["simple", "live", "nowhere"], stage.now_ms)
        assert [ErrorCode(each.error_code) for each in stage.perform(decision)] == [
            ErrorCode.NONE,
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ]
        assert self.listed(stage, [], []) == {"live": "Stable"}
        assert stage.fetch("simple") == {}
        stage.reload()
        assert self.listed(stage, [], []) == {"live": "Stable"}


class TestRecordsOfOthers:
    def test_the_oldest_offset_key(self, stage: Any) -> None:
        key = LegacyOffsetCommitKey(group="g", topic="t", partition=0)
        stage.shard.replay(0, NO_PRODUCER_ID, key, OffsetCommitValue(offset=3))
        assert stage.fetch() == {("t", 0): 3}
        stage.shard.replay(1, NO_PRODUCER_ID, key, None)
        assert stage.fetch() == {}

    def test_group_records_of_version_0(self, stage: Any) -> None:
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol="range",
            leader="m",
            members=[
                GroupMetadataValue.MemberMetadata(
                    member_id="m", session_timeout=9_000, assignment=b"A"
                )
            ],
        )
        encoded = encode_coordinator_value(value, 0)
        _, decoded = decode_coordinator_record("group", b"\x00\x02\x00\x01g", encoded)
        stage.shard.replay(0, NO_PRODUCER_ID, GroupMetadataKey(group="g"), decoded)
        assert stage.shard.stored["g"].members[0].rebalance_timeout_ms == 9_000
        assert stage.answers[stage.sync("m", 3)].assignment == b"A"
