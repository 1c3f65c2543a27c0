"""Clients are restarted one by one with the other protocol, and nothing is read twice."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("eager", [False, True])
def test_a_group_goes_over_to_the_consumer_protocol_and_back(stage: Any, eager: bool) -> None:
    clients: list[Any] = [stage.classic_client(eager=eager) for _ in range(3)]
    stage.settle(*clients)
    assert stage.kind == "classic"

    for index in range(3):
        old = clients.pop(0)
        stage.leave((old.member_id, None))
        clients.append(stage.consumer_client(f"consumer-{index}"))
        stage.settle(*clients)
        assert stage.kind == "consumer"
        assert stage.group.classic_member_count == 2 - index

    for index in range(3):
        old = clients.pop(0)
        old.leave()
        clients.append(stage.classic_client(eager=eager))
        stage.settle(*clients)
        assert stage.kind == ("consumer" if index < 2 else "classic")

    assert set(stage.group.members) == {client.member_id for client in clients}


def test_the_log_tells_of_every_step(stage: Any) -> None:
    """A coordinator that restarts in the midst of it goes on as if nothing had happened."""
    classic = [stage.classic_client() for _ in range(2)]
    stage.settle(*classic)
    consumer = stage.consumer_client("consumer")
    consumer.step()
    for _ in range(8):
        stage.reload()
        consumer.step()
        for client in classic:
            client.step()
    stage.settle(*classic, consumer)
    consumer.leave()
    stage.reload()
    stage.settle(*classic)
    assert stage.kind == "classic"


def test_members_of_both_protocols_subscribe_to_different_topics(stage: Any) -> None:
    classic = stage.classic_client(topics=("t", "u"))
    stage.settle(classic)
    consumer = stage.consumer_client("consumer", topics=("t",))
    stage.settle(classic, consumer)
    assert {topic for topic, _ in classic.owned} == {"t", "u"}
    assert {topic for topic, _ in consumer.owned} == {"t"}


def test_static_members_keep_their_place_through_the_change(stage: Any) -> None:
    staying = stage.classic_client(instance="a")
    moving = stage.classic_client(instance="b")
    stage.settle(staying, moving)
    before = staying.owned
    moved = stage.consumer_client("consumer", instance="b")
    stage.settle(staying, moved)
    assert set(stage.group.members) == {staying.member_id, "consumer"}
    assert staying.owned == before
    assert moved.owned == moving.owned

    # The classic client comes back under the same instance id: nobody else speaks the new one.
    back = stage.classic_client(instance="b")
    back.step()
    assert stage.kind == "classic"
    stage.settle(staying, back)
    assert set(stage.group.members) == {staying.member_id, back.member_id}
    assert staying.owned == before
    assert back.owned == moving.owned
