"""Who may commit and fetch offsets, and when groups and offsets may be deleted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import (
    ClassicMemberMetadata,
    ConsumerMember,
)
from moldau.broker.coordinator.group.machine.group import CommitCaller
from moldau.broker.coordinator.group.machine.offsets import CommittedOffset
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.uuids import ZERO_UUID

T, U = UUID(int=1), UUID(int=2)
OLD = ErrorCode.STALE_MEMBER_EPOCH
CLASSIC_OLD = ErrorCode.ILLEGAL_GENERATION


def group_with_members() -> ConsumerGroup:
    group = ConsumerGroup("g")
    group.put_member(
        ConsumerMember(
            "m",
            member_epoch=5,
            assigned={T: {0: 3, 1: 5}},
            pending_revocation={U: {0: 2}},
            subscribed_topic_names=frozenset({"t"}),
        )
    )
    group.put_member(
        ConsumerMember(
            "c", member_epoch=5, assigned={T: {2: 4}}, classic=ClassicMemberMetadata(1, ())
        )
    )
    return group


def commit(
    group: ConsumerGroup,
    partition: tuple[UUID, int],
    member: str = "m",
    epoch: int = 5,
    *,
    instance: str | None = None,
    transactional: bool = False,
    version: int = 9,
) -> ErrorCode:
    caller = CommitCaller(member, instance, epoch, transactional, version)
    try:
        return group.check_commit(caller)("name", *partition)
    except ApiError as error:
        return error.code


@pytest.mark.parametrize(
    ("options", "partition", "error"),
    [
        pytest.param({}, (T, 9), ErrorCode.NONE, id="the current epoch may commit anything"),
        pytest.param({"epoch": 6}, (T, 0), OLD, id="a newer epoch nothing"),
        pytest.param({"epoch": 4}, (T, 0), ErrorCode.NONE, id="had it in that epoch"),
        pytest.param({"epoch": 3}, (T, 0), ErrorCode.NONE, id="had it just then"),
        pytest.param({"epoch": 2}, (T, 0), OLD, id="did not have it yet"),
        pytest.param({"epoch": 4}, (T, 1), OLD, id="got it later"),
        pytest.param({"epoch": 4}, (U, 0), ErrorCode.NONE, id="about to give it up"),
        pytest.param({"epoch": 4}, (U, 1), OLD, id="has not got it"),
        pytest.param({"epoch": -1}, (T, 0), OLD, id="no epoch, but a member"),
        pytest.param({"member": "x"}, (T, 0), ErrorCode.UNKNOWN_MEMBER_ID, id="unknown"),
        pytest.param(
            {"member": "", "epoch": -1}, (T, 0), ErrorCode.UNKNOWN_MEMBER_ID, id="by hand"
        ),
        pytest.param({"version": 8}, (T, 0), ErrorCode.UNSUPPORTED_VERSION, id="old request"),
        pytest.param(
            {"version": 3, "transactional": True}, (T, 0), ErrorCode.NONE, id="in a transaction"
        ),
        pytest.param(
            {"member": "", "epoch": -1, "transactional": True}, (T, 0), ErrorCode.NONE,
            id="in a transaction of nobody",
        ),
        pytest.param(
            {"member": "", "epoch": -1, "transactional": True, "instance": "i"}, (T, 0),
            ErrorCode.UNKNOWN_MEMBER_ID, id="in a transaction of a stranger",
        ),
        pytest.param({"member": "c", "version": 2}, (T, 9), ErrorCode.NONE, id="classic member"),
        pytest.param({"member": "c", "epoch": 6}, (T, 2), CLASSIC_OLD, id="classic, newer"),
        pytest.param({"member": "c", "epoch": 3}, (T, 2), CLASSIC_OLD, id="classic, older"),
        pytest.param({"member": "c", "epoch": 4}, (T, 2), ErrorCode.NONE, id="classic, had it"),
    ],
)  # fmt: skip
def test_commits(options: Any, partition: tuple[UUID, int], error: ErrorCode) -> None:
    assert commit(group_with_members(), partition, **options) is error


def test_anybody_commits_for_an_empty_group() -> None:
    assert commit(ConsumerGroup("g"), (T, 0), "", -1, version=1) is ErrorCode.NONE
    assert commit(ConsumerGroup("g"), (T, 0), "m", 3) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (None, -1, None),
        ("m", 5, None),
        ("m", 4, OLD),
        ("m", 6, OLD),
        ("c", 4, CLASSIC_OLD),
        ("x", 5, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 5, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_fetches(member: str | None, epoch: int, error: ErrorCode | None) -> None:
    group = group_with_members()
    if error is None:
        group.check_fetch(member, epoch)
        return
    with pytest.raises(ApiError) as raised:
        group.check_fetch(member, epoch)
    assert raised.value.code is error


def test_only_empty_groups_are_deleted() -> None:
    with pytest.raises(ApiError) as raised:
        group_with_members().check_delete()
    assert raised.value.code is ErrorCode.NON_EMPTY_GROUP
    ConsumerGroup("g").check_delete()


def test_retention_counts_from_the_commit() -> None:
    group = group_with_members()
    offset = CommittedOffset(1, -1, "", 123, -1, ZERO_UUID, 0)
    assert group.offsets_expire_from(offset) == 123
    assert group.is_subscribed_to("t")
    assert not group.is_subscribed_to("u")
    group.check_delete_offsets()
