"""When a consumer group becomes a classic group, and what it is then."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.group import CommitCaller
from moldau.wire.errors import ErrorCode


def mixed(stage: Any, classic: int = 2, **options: Any) -> tuple[list[Any], Any]:
    """Classic members and one of the consumer protocol, settled."""
    clients = [stage.classic_client(**options) for _ in range(classic)]
    stage.settle(*clients)
    consumer = stage.consumer_client("consumer")
    stage.settle(*clients, consumer)
    return clients, consumer


def test_the_last_consumer_leaves(stage: Any) -> None:
    clients, consumer = mixed(stage)
    epoch = stage.group.group_epoch
    consumer.leave()
    group = stage.group
    assert stage.kind == "classic"
    assert group.generation == epoch
    assert group.protocol_type == "consumer"
    assert group.protocol == "cooperative-sticky"
    assert group.state_name == "PreparingRebalance"
    for client in clients:
        assert [name for name, _ in group.members[client.member_id].protocols] == [
            "cooperative-sticky",
            "range",
        ]
        assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    stage.settle(*clients)


def test_the_last_consumer_goes_silent(stage: Any) -> None:
    clients, _ = mixed(stage)
    for _ in range(5):
        stage.advance(9_500)
        for client in clients:
            client.step()
    assert stage.kind == "classic"
    stage.settle(*clients)


def test_a_coordinator_that_restarts_lets_everybody_join(stage: Any) -> None:
    """Else what the one that left had would be nobody's until somebody joins by chance."""
    clients, consumer = mixed(stage)
    consumer.leave()
    stage.reload()
    assert stage.kind == "classic"
    assert "g" not in stage.consumers.groups
    stored = {each.member_id: each.assignment for each in stage.classic.stored["g"].members}
    assert set(stored) == {client.member_id for client in clients}
    assert all(stored.values())
    stage.settle(*clients)


def test_members_go_on_while_the_change_is_not_committed_yet(stage: Any) -> None:
    clients, consumer = mixed(stage)
    stage.commits = False
    consumer.leave()
    assert stage.kind == "classic"
    caller = CommitCaller(
        clients[0].member_id, None, clients[0].generation, transactional=False, version=8
    )
    stage.group.check_commit(caller)
    assert clients[0].heartbeat() is ErrorCode.NONE
    stage.commits = True
    stage.commit()
    stage.group.check_commit(caller)
    assert clients[0].heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    stage.settle(*clients)


def test_a_static_member_that_comes_back_needs_no_rebalance(stage: Any) -> None:
    classic = stage.classic_client(instance="a")
    stage.settle(classic)
    consumer = stage.consumer_client("consumer", instance="b")
    stage.settle(classic, consumer)
    back = stage.classic_client(instance="b")
    back.step()
    stage.reload()
    assert stage.kind == "classic"
    assert stage.group.state_name == "Stable"
    assert classic.heartbeat() is ErrorCode.NONE
    stage.settle(classic, back)
    assert back.owned == consumer.owned


def test_members_that_never_come_back_are_dropped_from_the_classic_group(stage: Any) -> None:
    (stays, _), consumer = mixed(stage)
    consumer.leave()
    for _ in range(4):
        stage.advance(9_000)
        stays.step()
    stage.settle(stays)
    assert set(stage.group.members) == {stays.member_id}


def test_it_stays_a_consumer_group_while_a_consumer_stays(stage: Any) -> None:
    clients, consumer = mixed(stage)
    other = stage.consumer_client("other")
    stage.settle(*clients, consumer, other)
    consumer.leave()
    assert stage.kind == "consumer"
    stage.settle(*clients, other)


def test_it_stays_a_consumer_group_when_nobody_is_left(stage: Any) -> None:
    consumer = stage.consumer_client("consumer")
    stage.settle(consumer)
    consumer.leave()
    assert stage.kind == "consumer"
    assert stage.group.is_empty


def test_an_empty_consumer_group_gives_its_id_to_a_classic_one(stage: Any) -> None:
    consumer = stage.consumer_client("consumer")
    stage.settle(consumer)
    consumer.leave()
    client = stage.classic_client()
    stage.settle(client)
    assert stage.kind == "classic"
    stage.reload()
    assert stage.kind == "classic"


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_the_policy_can_forbid_it(Stage: Any, policy: str) -> None:
    # An upgrade has to come first, so the policy is changed afterwards as by a restart.
    stage = Stage()
    clients, consumer = mixed(stage)
    stage.config = type(stage.config)(group_consumer_migration_policy=policy)
    stage.reload()
    consumer.leave()
    assert stage.kind == "consumer"
    stage.settle(*clients)


def test_a_group_too_large_for_a_classic_one_stays(Stage: Any) -> None:
    stage = Stage()
    clients, consumer = mixed(stage)
    stage.config = type(stage.config)(group_max_size=1)
    stage.reload()
    consumer.leave()
    assert stage.kind == "consumer"
    stage.settle(*clients)


def test_an_administrator_can_remove_the_last_consumer(stage: Any) -> None:
    clients, _ = mixed(stage)
    assert stage.leave(("consumer", None), ("stranger", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert stage.kind == "classic"
    stage.settle(*clients)


def test_a_failed_write_leaves_the_consumer_group_as_it_was(stage: Any) -> None:
    clients, consumer = mixed(stage)
    owned = consumer.owned
    stage.write_error = ErrorCode.NOT_COORDINATOR
    consumer.leave()
    stage.write_error = ErrorCode.NONE
    assert stage.kind == "consumer"
    consumer.owned = owned
    stage.settle(*clients, consumer)


def test_a_static_classic_member_that_replaces_a_consumer_with_other_topics_rebalances(
    stage: Any,
) -> None:
    classic = stage.classic_client(instance="a", topics=("t", "u"))
    stage.settle(classic)
    consumer = stage.consumer_client("consumer", instance="b", topics=("t", "u"))
    stage.settle(classic, consumer)
    back = stage.classic_client(instance="b", topics=("u",))
    back.step()
    assert stage.kind == "classic"
    assert stage.group.state_name == "PreparingRebalance"
    stage.settle(classic, back)


def test_a_consumer_that_was_replaced_is_fenced(stage: Any) -> None:
    classic = stage.classic_client(instance="a")
    stage.settle(classic)
    consumer = stage.consumer_client("consumer", instance="b")
    stage.settle(classic, consumer)
    back = stage.classic_client(instance="b")
    back.step()
    with pytest.raises(Exception, match="GROUP_ID_NOT_FOUND"):
        consumer.step()
    stage.settle(classic, back)
