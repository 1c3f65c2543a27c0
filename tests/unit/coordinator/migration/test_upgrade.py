"""When a classic group may become a consumer group, and what it is then."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.events import JoinTimer, SessionTimer
from moldau.wire.errors import ApiError, ErrorCode


def stable(stage: Any, size: int = 2, **options: Any) -> list[Any]:
    clients = [stage.classic_client(**options) for _ in range(size)]
    stage.settle(*clients)
    return clients


def refusal(stage: Any) -> ApiError:
    written = list(stage.written)
    with pytest.raises(ApiError) as refused:
        stage.consumer_client("consumer").step()
    assert stage.written == written
    assert stage.kind == "classic"
    return refused.value


def test_members_keep_what_they_have(stage: Any) -> None:
    clients = stable(stage)
    generation = stage.group.generation
    stage.consumer_client("consumer").step()
    group = stage.group
    assert stage.kind == "consumer"
    assert group.group_epoch == group.assignment_epoch == generation + 1
    for client in clients:
        member = group.members[client.member_id]
        assert member.member_epoch == generation
        assert {("t", partition) for each in member.assigned.values() for partition in each} == (
            client.owned
        )
        assert member.subscribed_topic_names == {"t"}
        assert member.classic.session_timeout_ms == 30_000
        assert [name for name, _ in member.classic.supported_protocols] == [
            "cooperative-sticky",
            "range",
        ]
        assert member.client_host == "/127.0.0.1"
        assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_log_forgets_the_classic_group(stage: Any) -> None:
    stable(stage)
    stage.consumer_client("consumer").step()
    stage.reload()
    assert stage.kind == "consumer"
    assert len(stage.group.members) == 3
    assert "g" not in stage.classic


def test_whoever_waits_in_a_rebalance_is_told_to_join_again(stage: Any) -> None:
    first, second = stable(stage)
    newcomer = stage.classic_client()
    newcomer.step()
    newcomer.step()
    assert newcomer.joining not in stage.answers
    stage.consumer_client("consumer").step()
    assert stage.answers[newcomer.joining].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    stage.timers.cancel(JoinTimer("g"))
    newcomer.step()
    assert newcomer.member_id in stage.group.members
    assert {first.member_id, second.member_id} <= stage.group.members.keys()


def test_a_group_in_its_first_rebalance_can_be_upgraded(Stage: Any) -> None:
    stage = Stage(group_initial_rebalance_delay_ms=3_000)
    classic = stage.classic_client()
    classic.step()
    classic.step()
    consumer = stage.consumer_client("consumer")
    stage.settle(classic, consumer)
    assert stage.kind == "consumer"


def test_silent_classic_members_are_removed_after_their_own_session(stage: Any) -> None:
    silent, other = stable(stage)
    consumer = stage.consumer_client("consumer")
    consumer.step()
    stage.advance(20_000)
    other.step()
    consumer.step()
    stage.advance(10_001)
    assert set(stage.group.members) == {other.member_id, "consumer"}
    assert silent.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_sessions_of_the_classic_group_no_longer_count(stage: Any) -> None:
    (client,) = stable(stage, 1)
    stage.consumer_client("consumer").step()
    stage.decide(lambda out: stage.classic.on_timer(SessionTimer("g", client.member_id), out))
    assert client.member_id in stage.group.members


@pytest.mark.parametrize("policy", ["disabled", "downgrade", "DISABLED"])
def test_the_policy_can_forbid_it(Stage: Any, policy: str) -> None:
    stage = Stage(group_consumer_migration_policy=policy)
    stable(stage)
    error = refusal(stage)
    assert error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert error.message == (
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    )


def test_a_group_that_is_too_large_stays_classic(Stage: Any) -> None:
    stage = Stage(group_consumer_max_size=1)
    stable(stage)
    assert "group size exceeds" in refusal(stage).message


def test_a_group_of_another_protocol_type_stays_classic(stage: Any) -> None:
    stable(stage)
    stage.group.protocol_type = "connect"
    assert "does not use the consumer embedded protocol" in refusal(stage).message


def test_a_malformed_subscription_keeps_it_classic(stage: Any) -> None:
    (client,) = stable(stage, 1)
    stage.group.members[client.member_id].protocols = (("cooperative-sticky", b"\0"),)
    assert "is malformed" in refusal(stage).message


def test_user_data_of_a_custom_assignor_keeps_it_classic(
    stage: Any, encode_assignment: Any
) -> None:
    (client,) = stable(stage, 1)
    stage.group.members[client.member_id].assignment = encode_assignment({("t", 0)}, b"mine")
    assert "custom assignor" in refusal(stage).message


def test_partitions_with_several_owners_keep_it_classic(stage: Any, encode_assignment: Any) -> None:
    for client in stable(stage):
        stage.group.members[client.member_id].assignment = encode_assignment({("t", 0)})
    error = refusal(stage)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "several members" in error.message


def test_a_heartbeat_that_is_refused_leaves_the_classic_group_as_it_was(stage: Any) -> None:
    client, other = stable(stage)
    newcomer = stage.classic_client()
    newcomer.step()
    newcomer.step()
    consumer = stage.consumer_client("consumer")
    consumer.epoch = 5
    with pytest.raises(ApiError):
        consumer.step()
    assert newcomer.joining not in stage.answers
    stage.settle(client, other, newcomer)
    assert stage.kind == "classic"


def test_a_failed_write_leaves_the_classic_group_as_it_was(stage: Any) -> None:
    clients = stable(stage)
    stage.write_error = ErrorCode.NOT_COORDINATOR
    stage.consumer_client("consumer").step()
    stage.write_error = ErrorCode.NONE
    assert stage.kind == "classic"
    stage.settle(*clients)
    # Sessions are still guarded.
    stage.advance(30_001)
    assert stage.group.state_name == "Empty"
