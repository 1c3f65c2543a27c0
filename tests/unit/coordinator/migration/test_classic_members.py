"""What members of the classic protocol hear in a consumer group."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.migration import embedded
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.messages import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest


def consumer_group(stage: Any) -> Any:
    consumer = stage.consumer_client("consumer")
    stage.settle(consumer)
    return consumer


def join_request(client: Any, **fields: Any) -> JoinGroupRequest:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=client.subscription())
        ],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def answer(stage: Any, request: JoinGroupRequest, version: int = 9) -> Any:
    return stage.answers[stage.join(request, version)]


class TestJoin:
    def test_is_answered_at_once_and_nobody_leads(self, stage: Any) -> None:
        consumer_group(stage)
        client = stage.classic_client()
        first = answer(stage, join_request(client))
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert first.member_id not in stage.group.members
        joined = answer(stage, join_request(client, member_id=first.member_id))
        assert joined.error_code == ErrorCode.NONE
        assert joined.generation_id == stage.group.group_epoch
        assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
        assert joined.leader == ""
        assert joined.members == []

    def test_old_clients_need_no_id_first(self, stage: Any) -> None:
        consumer_group(stage)
        joined = answer(stage, join_request(stage.classic_client()), version=3)
        assert joined.error_code == ErrorCode.NONE
        assert joined.member_id in stage.group.members

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (
                {
                    "member_id": "x",
                    "protocols": [
                        JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0")
                    ],
                },
                ErrorCode.UNKNOWN_SERVER_ERROR,
            ),
            (
                {"group_instance_id": "unknown", "member_id": "x"},
                ErrorCode.UNKNOWN_MEMBER_ID,
            ),
        ],
    )
    def test_refused(self, stage: Any, fields: dict[str, Any], expected: ErrorCode) -> None:
        consumer_group(stage)
        written = list(stage.written)
        response = answer(stage, join_request(stage.classic_client(), **fields))
        assert response.error_code == expected
        assert stage.written == written

    def test_all_classic_members_have_a_protocol_in_common(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        first = stage.classic_client(protocols=("range", "roundrobin"))
        stage.settle(consumer, first)
        other = stage.classic_client()
        sticky = JoinGroupRequest.JoinGroupRequestProtocol(
            name="sticky", metadata=other.subscription()
        )
        refused = answer(stage, join_request(other, protocols=[sticky]))
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        second = stage.classic_client(protocols=("roundrobin",))
        stage.settle(consumer, first, second)

    def test_a_full_group_takes_nobody(self, Stage: Any) -> None:
        stage = Stage(group_consumer_max_size=1)
        consumer_group(stage)
        refused = answer(stage, join_request(stage.classic_client(), member_id="x"))
        assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_a_static_member_with_an_outdated_id_is_fenced(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        first = stage.classic_client(instance="i")
        stage.settle(consumer, first)
        again = stage.classic_client(instance="i")
        first.owned = set()
        stage.settle(consumer, again)
        assert again.member_id != first.member_id
        refused = answer(
            stage, join_request(first, member_id=first.member_id, group_instance_id="i")
        )
        assert refused.error_code == ErrorCode.FENCED_INSTANCE_ID
        assert first.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


class TestSync:
    def joined(self, stage: Any) -> tuple[Any, Any]:
        consumer = consumer_group(stage)
        client = stage.classic_client()
        stage.settle(consumer, client)
        return consumer, client

    def sync(self, stage: Any, client: Any, **fields: Any) -> Any:
        request = SyncGroupRequest(
            group_id="g",
            member_id=client.member_id,
            generation_id=client.generation,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return stage.answers[stage.sync(request)]

    def test_brings_the_assignment_in_the_clients_version(self, stage: Any) -> None:
        _, client = self.joined(stage)
        response = self.sync(stage, client)
        assert response.assignment[:2] == b"\0\1"
        found = embedded.read_assignment(response.assignment)
        assert {
            (each.topic, partition)
            for each in found.assigned_partitions
            for partition in each.partitions
        } == client.owned
        assert response.protocol_name == "cooperative-sticky"

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
            ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"member_id": "consumer"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"protocol_name": "range"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ],
    )
    def test_refused(self, stage: Any, fields: dict[str, Any], expected: ErrorCode) -> None:
        _, client = self.joined(stage)
        assert self.sync(stage, client, **fields) is expected

    def test_a_newer_target_asks_for_another_join(self, stage: Any) -> None:
        _, client = self.joined(stage)
        stage.consumer_client("other").step()
        response = self.sync(stage, client)
        assert response.error_code == ErrorCode.REBALANCE_IN_PROGRESS


class TestTimeouts:
    def test_a_member_that_does_not_sync_is_removed(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        client = stage.classic_client(rebalance_ms=20_000)
        request = join_request(client, member_id="lazy", rebalance_timeout_ms=20_000)
        assert answer(stage, request).error_code == ErrorCode.NONE
        stage.advance(19_000)
        consumer.step()
        assert "lazy" in stage.group.members
        stage.advance(1_001)
        assert "lazy" not in stage.group.members

    def test_repeated_heartbeats_do_not_put_off_the_join(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        client = stage.classic_client(rebalance_ms=20_000)
        stage.settle(consumer, client)
        stage.consumer_client("other").step()
        for _ in range(4):
            assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
            stage.advance(4_900)
        assert client.member_id in stage.group.members
        assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        stage.advance(500)
        assert client.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_member_that_joins_in_time_stays(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        client = stage.classic_client(rebalance_ms=20_000)
        stage.settle(consumer, client)
        other = stage.consumer_client("other")
        other.step()
        stage.settle(consumer, client, other)
        for _ in range(5):
            stage.advance(10_000)
            for each in (consumer, client, other):
                each.step()
        assert client.member_id in stage.group.members


class TestHeartbeat:
    def test_waits_silently_for_partitions_of_others(self, stage: Any) -> None:
        """It is told to join again only when that brings it something."""
        consumer = consumer_group(stage)
        client = stage.classic_client()
        client.step()
        client.step()
        client.step()
        client.step()
        assert client.heartbeat() is ErrorCode.NONE
        consumer.step()
        assert client.heartbeat() is ErrorCode.NONE
        consumer.step()
        assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS

    def test_is_not_for_members_of_the_consumer_protocol(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        request = HeartbeatRequest(group_id="g", member_id="consumer", generation_id=consumer.epoch)
        assert stage.heartbeat(request) is ErrorCode.UNKNOWN_MEMBER_ID


class TestLeave:
    def test_classic_members_leave_for_good(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        client = stage.classic_client()
        stage.settle(consumer, client)
        assert stage.leave((client.member_id, None)) == [ErrorCode.NONE]
        assert set(stage.group.members) == {"consumer"}
        stage.settle(consumer)

    def test_an_administrator_names_the_instance_only(self, stage: Any) -> None:
        consumer = consumer_group(stage)
        client = stage.classic_client(instance="i")
        stage.settle(consumer, client)
        assert stage.leave(("", "j"), ("wrong", "i"), ("", "i")) == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.NONE,
        ]
        assert set(stage.group.members) == {"consumer"}

    def test_nobody_leaves_and_nothing_is_written(self, stage: Any) -> None:
        consumer_group(stage)
        written = list(stage.written)
        assert stage.leave(("stranger", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert stage.written == written


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0", b"\0\1\0\0\0\1"])
def test_malformed_subscriptions_are_told_apart(data: bytes) -> None:
    with pytest.raises(WireError):
        embedded.read_subscription(data)


def test_a_newer_version_is_read_as_the_newest_known(stage: Any) -> None:
    data = embedded.write_assignment({stage.topics.id("t"): {3, 1}}, 3, stage.topics)
    newer = (99).to_bytes(2, "big") + data[2:]
    assert embedded.version_of(newer) == 3
    found = embedded.by_topic_id(embedded.read_assignment(newer).assigned_partitions, stage.topics)
    assert found == {stage.topics.id("t"): frozenset({1, 3})}
