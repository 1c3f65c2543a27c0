"""One step of one member, for every state it may be in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.coordinator.group.machine.consumer.member import ConsumerMember, MemberState
from moldau.broker.coordinator.group.machine.consumer.reconciliation import (
    Reconciliation,
    reconcile,
)
from moldau.wire.errors import ApiError, ErrorCode

T, U = UUID(int=1), UUID(int=2)
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS
UNKNOWN = MemberState.UNKNOWN


def member(state: MemberState, epoch: int, assigned: Any, pending: Any = None) -> ConsumerMember:
    return ConsumerMember(
        "m",
        member_epoch=epoch,
        previous_member_epoch=epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending or {},
    )


def step(
    before: ConsumerMember,
    epoch: int,
    target: dict[UUID, set[int]],
    *,
    owned: dict[UUID, set[int]] | None = None,
    taken: dict[UUID, set[int]] | None = None,
    subscribed: tuple[UUID, ...] = (T, U),
    changed: bool = False,
) -> ConsumerMember:
    owners: dict[UUID, dict[int, str]] = {}
    for part in (before.assigned, before.pending_revocation):
        for topic_id, partitions in part.items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, "m"))
    for topic_id, others in (taken or {}).items():
        owners.setdefault(topic_id, {}).update(dict.fromkeys(others, "other"))
    return reconcile(
        before,
        Reconciliation(
            target_epoch=epoch,
            target={each: frozenset(p) for each, p in target.items()},
            owned=None if owned is None else {each: frozenset(p) for each, p in owned.items()},
            owners=owners,
            subscribed=frozenset(subscribed),
            subscribes_to_nothing=not subscribed,
            subscription_changed=changed,
        ),
    )


@pytest.mark.parametrize(
    ("before", "options", "after"),
    [
        pytest.param(
            member(STABLE, 1, {}), {"epoch": 2, "target": {T: {0, 1}}},
            (STABLE, 2, {T: {0: 2, 1: 2}}, {}), id="gets free ones with the new epoch",
        ),
        pytest.param(
            member(STABLE, 2, {T: {0: 1}}), {"epoch": 2, "target": {T: {0}}},
            (STABLE, 2, {T: {0: 1}}, {}), id="nothing to do",
        ),
        pytest.param(
            member(STABLE, 2, {T: {0: 1, 1: 2}}), {"epoch": 3, "target": {T: {0, 1}}},
            (STABLE, 3, {T: {0: 1, 1: 2}}, {}), id="what it keeps keeps its epoch",
        ),
        pytest.param(
            member(STABLE, 2, {T: {0: 1, 1: 2}}), {"epoch": 3, "target": {T: {0, 5}}},
            (UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}), id="gives up before it gets",
        ),
        pytest.param(
            member(STABLE, 2, {T: {0: 1, 1: 2}}),
            {"epoch": 3, "target": {T: {0, 5}}, "owned": {T: {0}}},
            (STABLE, 3, {T: {0: 1, 5: 3}}, {}), id="has given up already",
        ),
        pytest.param(
            member(STABLE, 2, {T: {0: 1}}),
            {"epoch": 3, "target": {T: {0, 1, 2}}, "taken": {T: {1}}},
            (UNRELEASED, 3, {T: {0: 1, 2: 3}}, {}), id="waits for what another has",
        ),
        pytest.param(
            member(STABLE, 2, {}), {"epoch": 3, "target": {T: {1}}, "taken": {T: {1}}},
            (UNRELEASED, 3, {}, {}), id="waits with nothing",
        ),
        pytest.param(
            member(STABLE, 2, {T: {0: 1}}),
            {"epoch": 3, "target": {T: {0}, U: {0}}, "subscribed": (U,)},
            (UNREVOKED, 2, {}, {T: {0: 1}}), id="a target it no longer wants counts for nothing",
        ),
        pytest.param(
            member(UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}), {"epoch": 3, "target": {T: {0, 2}}},
            (UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}), id="has not said what it owns",
        ),
        pytest.param(
            member(UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}),
            {"epoch": 3, "target": {T: {0, 2}}, "owned": {T: {0, 1}}},
            (UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}), id="still owns it",
        ),
        pytest.param(
            member(UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}),
            {"epoch": 3, "target": {T: {0, 2}}, "owned": {T: {0}}},
            (STABLE, 3, {T: {0: 1, 2: 3}}, {}), id="owns it no more",
        ),
        pytest.param(
            member(UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}),
            {"epoch": 4, "target": {T: {1}}, "owned": {T: {0}}},
            (UNREVOKED, 2, {}, {T: {0: 1}}), id="then the next target takes more",
        ),
        pytest.param(
            member(UNREVOKED, 2, {T: {0: 1}}, {T: {1: 2}}),
            {"epoch": 4, "target": {T: {0, 1}}, "owned": {T: {0}}},
            (STABLE, 4, {T: {0: 1, 1: 4}}, {}), id="gets back what it gave up",
        ),
        pytest.param(
            member(UNRELEASED, 3, {T: {0: 1}}),
            {"epoch": 3, "target": {T: {0, 1}}, "taken": {T: {1}}},
            (UNRELEASED, 3, {T: {0: 1}}, {}), id="still taken",
        ),
        pytest.param(
            member(UNRELEASED, 3, {T: {0: 1}}), {"epoch": 3, "target": {T: {0, 1}}},
            (STABLE, 3, {T: {0: 1, 1: 3}}, {}), id="released",
        ),
        pytest.param(
            member(UNRELEASED, 3, {T: {0: 1}}), {"epoch": 4, "target": {}},
            (UNREVOKED, 3, {}, {T: {0: 1}}), id="while waiting loses what it has",
        ),
        pytest.param(
            member(STABLE, 3, {T: {0: 1}, U: {0: 2}}),
            {"epoch": 3, "target": {T: {0}, U: {0}}, "subscribed": (T,), "changed": True},
            (UNREVOKED, 3, {T: {0: 1}}, {U: {0: 2}}), id="unsubscribed topics go at once",
        ),
        pytest.param(
            member(STABLE, 3, {T: {0: 1}, U: {0: 2}}),
            {
                "epoch": 3, "target": {T: {0}, U: {0}}, "subscribed": (T,), "changed": True,
                "owned": {T: {0}},
            },
            (STABLE, 3, {T: {0: 1}}, {}), id="unsubscribed and given up",
        ),
        pytest.param(
            member(UNREVOKED, 3, {T: {0: 1}, U: {0: 2}}, {U: {1: 1}}),
            {"epoch": 4, "target": {}, "subscribed": (T,), "changed": True},
            (UNREVOKED, 3, {T: {0: 1}}, {U: {1: 1, 0: 2}}), id="more to give up",
        ),
        pytest.param(
            member(STABLE, 3, {T: {0: 1}}),
            {"epoch": 3, "target": {T: {0}}, "subscribed": (), "changed": True},
            (UNREVOKED, 3, {}, {T: {0: 1}}), id="unsubscribed from all",
        ),
        pytest.param(
            member(UNKNOWN, 3, {T: {0: 1}}), {"epoch": 4, "target": {T: {1}}, "owned": {}},
            (STABLE, 4, {T: {1: 4}}, {}), id="an unknown state starts over with nothing",
        ),
    ],
)  # fmt: skip
def test_step(before: ConsumerMember, options: dict[str, Any], after: tuple[Any, ...]) -> None:
    moved = step(before, **options)
    assert (moved.state, moved.member_epoch, moved.assigned, moved.pending_revocation) == after
    assert moved.previous_member_epoch == before.member_epoch
    assert (
        replace(
            moved,
            state=before.state,
            member_epoch=before.member_epoch,
            assigned=before.assigned,
            pending_revocation=before.pending_revocation,
        )
        == before
    ), "nothing else has changed"


@pytest.mark.parametrize("owned", [None, {T: {0}}])
def test_an_unknown_state_with_partitions_is_fenced(owned: Any) -> None:
    with pytest.raises(ApiError) as raised:
        step(member(UNKNOWN, 3, {T: {0: 1}}), 4, {}, owned=owned)
    assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
