"""Transition tables: every machine makes the moves of its table and no others, and the READMEs show
the same tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.coordinator.group.machine import classic
from moldau.broker.coordinator.group.machine.consumer import member as consumer
from moldau.broker.coordinator.group.machine.members import ClassicMember
from moldau.broker.coordinator.group.machine.share.member import ShareMember
from moldau.broker.coordinator.group.machine.streams import members as streams
from moldau.broker.coordinator.group.machine.streams.tasks import NOTHING_ASSIGNED, AssignedTasks
from moldau.broker.coordinator.machine.decision import Ticket
from moldau.broker.coordinator.transaction.machine import metadata as transaction
from moldau.broker.machine.transitions import Transitions
from moldau.broker.metadata.machine import heartbeats
from moldau.broker.metadata.machine.elections import check_change
from moldau.broker.metadata.machine.model import Partition
from moldau.invariant import InvariantError

BROKER = Path(__file__).parents[3] / "src" / "moldau" / "broker"
TOPIC = UUID(int=1)


def move_classic_group(before: classic.Phase, after: classic.Phase) -> None:
    group = classic.ClassicGroup("g", phase=before)
    if after in (classic.Phase.COMPLETING_REBALANCE, classic.Phase.STABLE):
        group.add(classic_member("m"), "consumer")
    group.move_to(after, 0)
    assert group.phase is after


def classic_member(member_id: str, instance_id: str | None = None) -> ClassicMember:
    return ClassicMember(member_id, instance_id, "client", "/host", 1, 1, (("range", b""),))


def move_transaction(
    before: transaction.TransactionState, after: transaction.TransactionState
) -> None:
    metadata = transaction_in(before)
    assert metadata._to(after, 1, partitions=frozenset()).state is after


def transaction_in(state: transaction.TransactionState) -> transaction.TransactionMetadata:
    return transaction.TransactionMetadata(
        transactional_id="id",
        producer_id=7,
        producer_epoch=3,
        timeout_ms=1,
        state=state,
        last_update_timestamp_ms=0,
    )


def move_consumer(before: consumer.MemberState, after: consumer.MemberState) -> None:
    unrevoked = after is consumer.MemberState.UNREVOKED_PARTITIONS
    pending = {TOPIC: {0: 1}} if unrevoked else {}
    member = consumer.ConsumerMember("m", state=before)
    assert member.reconciled(after, 1, {}, pending).state is after


def move_streams(before: streams.MemberState, after: streams.MemberState) -> None:
    unrevoked = after is streams.MemberState.UNREVOKED_TASKS
    pending = AssignedTasks({"0": {0: 1}}, {}, {}) if unrevoked else NOTHING_ASSIGNED
    member = streams.StreamsMember(member_id="m", state=before)
    assert member.reconciled(after, 1, NOTHING_ASSIGNED, pending).state is after


Move = Callable[[Any, Any], None]
MACHINES: dict[str, tuple[Transitions[Any], type[Enum], Move]] = {
    "classic group": (classic.TRANSITIONS, classic.Phase, move_classic_group),
    "transaction": (transaction.TRANSITIONS, transaction.TransactionState, move_transaction),
    "consumer member": (consumer.TRANSITIONS, consumer.MemberState, move_consumer),
    "streams member": (streams.TRANSITIONS, streams.MemberState, move_streams),
}


@pytest.mark.parametrize(
    ("machine", "before", "after"),
    [
        pytest.param(name, before, after, id=f"{name}: {before.name} to {after.name}")
        for name, (_, states, _) in MACHINES.items()
        for before, after in itertools.product(states, repeat=2)
    ],
)
def test_a_machine_makes_the_moves_of_its_table_and_no_others(
    machine: str, before: Enum, after: Enum
) -> None:
    table, _, move = MACHINES[machine]
    if table.allows(before, after):
        move(before, after)
    else:
        with pytest.raises(InvariantError, match="cannot go from"):
            move(before, after)


# A broker's state follows from its heartbeats: all of them, in all states.


def broker_in(state: heartbeats.BrokerState) -> heartbeats.BrokerHeartbeats:
    brokers = heartbeats.BrokerHeartbeats(session_timeout_ms=9_000)
    brokers.register(1, fenced=state is heartbeats.BrokerState.FENCED)
    # Another one, that has not read the metadata yet.
    brokers.register(2, fenced=False)
    if state is heartbeats.BrokerState.CONTROLLED_SHUTDOWN:
        brokers.begin_shutdown(1, 10)
    return brokers


def test_heartbeats_make_every_move_of_the_table_and_no_others() -> None:
    made = set()
    # A broker that was shut down sends none.
    for state in heartbeats.BrokerState:
        if state is heartbeats.BrokerState.SHUTDOWN_NOW:
            continue
        for fence, shut_down, caught_up, leads, read in itertools.product((False, True), repeat=5):
            brokers = broker_in(state)
            brokers.touch(2, 1, now_ms=0, fenced=False, metadata_offset=10 if read else 0)
            after = brokers.next_state(
                1,
                want_fence=fence,
                want_shut_down=shut_down,
                caught_up=caught_up,
                has_leaderships=leads,
            )
            made.add((state, after))
    table = heartbeats.TRANSITIONS
    assert made == {
        (before, after)
        for before, after in itertools.product(heartbeats.BrokerState, repeat=2)
        if table.allows(before, after)
    }


# What must hold beside the states.


def test_a_classic_group_moves_only_if_it_is_consistent() -> None:
    group = classic.ClassicGroup("g", phase=classic.Phase.PREPARING_REBALANCE)
    with pytest.raises(InvariantError, match="CompletingRebalance with 0 members"):
        group.move_to(classic.Phase.COMPLETING_REBALANCE, 0)
    member = classic_member("m", "i")
    group.add(member, "consumer")
    with pytest.raises(InvariantError, match="Empty with 1 members"):
        group.move_to(classic.Phase.EMPTY, 0)
    group.leader = "stranger"
    with pytest.raises(InvariantError, match="stranger of group g is no member"):
        group.move_to(classic.Phase.COMPLETING_REBALANCE, 0)
    group.leader = "m"
    member.awaiting_join = Ticket(1)
    with pytest.raises(InvariantError, match="counts 0 members in JoinGroup where there are 1"):
        group.move_to(classic.Phase.COMPLETING_REBALANCE, 0)
    member.awaiting_join = None
    member.instance_id = "j"
    with pytest.raises(InvariantError, match="static members"):
        group.move_to(classic.Phase.COMPLETING_REBALANCE, 0)


def test_epochs_of_members_never_decrease() -> None:
    consumer_member = consumer.ConsumerMember("m", member_epoch=5)
    streams_member = streams.StreamsMember(member_id="m", member_epoch=5)
    moves: list[Callable[[], object]] = [
        lambda: consumer_member.reconciled(consumer.MemberState.STABLE, 4, {}, {}),
        lambda: streams_member.reconciled(
            streams.MemberState.STABLE, 4, NOTHING_ASSIGNED, NOTHING_ASSIGNED
        ),
        lambda: ShareMember("m", member_epoch=5).at_epoch(4),
    ]
    for move in moves:
        with pytest.raises(InvariantError, match="go back from epoch 5"):
            move()


@pytest.mark.parametrize(
    ("state", "assigned", "pending"),
    [
        pytest.param(consumer.MemberState.UNREVOKED_PARTITIONS, {}, {}, id="nothing to revoke"),
        pytest.param(
            consumer.MemberState.UNRELEASED_PARTITIONS, {}, {TOPIC: {0: 1}}, id="not yet revoked"
        ),
        pytest.param(
            consumer.MemberState.UNREVOKED_PARTITIONS,
            {TOPIC: {0: 1, 1: 1}},
            {TOPIC: {1: 1}},
            id="kept and revoked",
        ),
    ],
)
def test_a_member_has_partitions_to_revoke_in_one_state_only(
    state: consumer.MemberState,
    assigned: dict[UUID, dict[int, int]],
    pending: dict[UUID, dict[int, int]],
) -> None:
    with pytest.raises(InvariantError, match="revoke"):
        consumer.ConsumerMember("m").reconciled(state, 1, assigned, pending)


def test_a_transaction_never_goes_back_in_epochs_nor_is_idle_with_partitions() -> None:
    ongoing = transaction_in(transaction.ONGOING)
    with pytest.raises(InvariantError, match="back from epoch 3 to 2"):
        ongoing._to(transaction.PREPARE_ABORT, 1, producer_epoch=2)
    with pytest.raises(InvariantError, match="CompleteAbort with partitions"):
        transaction_in(transaction.PREPARE_ABORT)._to(
            transaction.COMPLETE_ABORT, 1, partitions=frozenset({("t", 0)})
        )


GOOD = Partition(
    replicas=(1, 2, 3),
    directories=(UUID(int=500),) * 3,
    isr=(1, 2),
    elr=(3,),
    leader=1,
    leader_epoch=4,
    partition_epoch=9,
)


def partition(**fields: Any) -> Partition:
    return GOOD._replace(**({"partition_epoch": 10} | fields))


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({"leader": 3}, "a leader outside the ISR"),
        ({"isr": (1, 4)}, "other brokers than its replicas"),
        ({"adding_replicas": (4,)}, "a reassignment of other brokers"),
        ({"removing_replicas": (4,)}, "a reassignment of other brokers"),
        ({"elr": (2,)}, "an eligible leader replica in the ISR"),
        ({"leader_epoch": 3}, "go back from epoch 4, 9 to 3, 10"),
        ({"partition_epoch": 9}, "go back from epoch 4, 9 to 4, 9"),
    ],
)
def test_a_change_of_a_partition_that_breaks_a_rule_is_refused(
    fields: dict[str, Any], broken: str
) -> None:
    check_change("t-0", GOOD, partition())
    with pytest.raises(InvariantError, match=broken):
        check_change("t-0", GOOD, partition(**fields))


def test_a_partition_that_came_in_a_bad_state_can_be_changed() -> None:
    bad = partition(leader=3, partition_epoch=9)
    check_change("t-0", bad, partition(leader=3, isr=(1,)))
    check_change("t-0", bad, partition(leader=1))


# Documents.


@pytest.mark.parametrize(
    ("table", "readme"),
    [
        (classic.TRANSITIONS, "coordinator/group"),
        (consumer.TRANSITIONS, "coordinator/group/machine/consumer"),
        (streams.TRANSITIONS, "coordinator/group/streams"),
        (transaction.TRANSITIONS, "coordinator/transaction"),
        (heartbeats.TRANSITIONS, "metadata"),
    ],
)
def test_the_readme_shows_the_table(table: Transitions[Any], readme: str) -> None:
    assert table.markdown() in (BROKER / readme / "README.md").read_text()


def test_a_table_without_a_row_for_a_state_is_refused() -> None:
    with pytest.raises(InvariantError, match="follows EMPTY has no row"):
        Transitions({classic.Phase.EMPTY: {classic.Phase.STABLE}})
