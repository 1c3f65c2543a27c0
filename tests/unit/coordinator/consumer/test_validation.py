"""Requests that are wrong by themselves, and members that are not who they say they are."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire.errors import ErrorCode

JOIN: dict[str, Any] = {"owned": {}, "names": ["t"], "timeout_ms": 60_000}
INVALID = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({**JOIN, "member": ""}, INVALID, id="v1 needs a member id"),
        pytest.param({**JOIN, "member": " "}, INVALID, id="blank member id"),
        pytest.param({"member": "", "epoch": 1, "version": 0}, INVALID, id="v0 heartbeat too"),
        pytest.param({"member": "", "epoch": -1, "version": 0}, INVALID, id="v0 leave too"),
        pytest.param({**JOIN, "group": ""}, INVALID, id="no group id"),
        pytest.param({**JOIN, "instance": ""}, INVALID, id="empty instance id"),
        pytest.param({**JOIN, "rack": ""}, INVALID, id="empty rack id"),
        pytest.param({**JOIN, "timeout_ms": -1}, INVALID, id="no rebalance timeout"),
        pytest.param({**JOIN, "owned": None}, INVALID, id="joining without saying nothing owned"),
        pytest.param({**JOIN, "owned": {"t": [0]}}, INVALID, id="joining with partitions"),
        pytest.param({**JOIN, "names": None}, INVALID, id="no subscription"),
        pytest.param({"epoch": -2}, INVALID, id="static leave without instance"),
        pytest.param({"epoch": -3}, INVALID, id="no such epoch"),
        pytest.param(
            {**JOIN, "assignor": "none"}, ErrorCode.UNSUPPORTED_ASSIGNOR, id="unknown assignor"
        ),
        pytest.param(
            {**JOIN, "names": None, "regex": "(a"},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            id="bad pattern",
        ),
    ],
)
def test_bad_requests(stage: Any, options: dict[str, Any], error: ErrorCode) -> None:
    options = {"epoch": 0, **options}
    assert stage.refusal(**options) is error
    assert stage.section.groups == {}


def test_members_of_old_clients_get_an_id(stage: Any) -> None:
    assert stage.join("", version=0).member_id == "fresh"
    assert list(stage.group().members) == ["fresh"]


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        pytest.param(4, None, ErrorCode.FENCED_MEMBER_EPOCH, id="ahead"),
        pytest.param(1, None, ErrorCode.FENCED_MEMBER_EPOCH, id="far behind"),
        pytest.param(2, None, ErrorCode.FENCED_MEMBER_EPOCH, id="previous, owned not said"),
        pytest.param(
            2, {"t": [0, 1, 2, 3, 4, 5, 6]}, ErrorCode.FENCED_MEMBER_EPOCH, id="owning too much"
        ),
        pytest.param(2, {"x": [0]}, ErrorCode.FENCED_MEMBER_EPOCH, id="owning another topic"),
        pytest.param(2, {"t": [0, 1]}, None, id="previous, answer lost"),
        pytest.param(2, {}, None, id="previous, nothing owned"),
        pytest.param(3, None, None, id="current"),
        pytest.param(3, {"t": [9]}, None, id="current, whatever it owns"),
    ],
)
def test_epochs_fence(stage: Any, epoch: int, owned: Any, error: ErrorCode | None) -> None:
    stage.join("m1")
    stage.topics.create("t", 6)
    assert stage.heartbeat("m1", 2).member_epoch == 3
    if error is None:
        assert stage.heartbeat("m1", epoch, owned=owned).member_epoch == 3
    else:
        assert stage.refusal("m1", epoch, owned=owned) is error


def test_unknown_members(stage: Any) -> None:
    stage.join("m1")
    assert stage.refusal("m2", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.refusal("m2", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.refusal("m2", 2, instance="i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.refusal("m2", -2, instance="i") is ErrorCode.UNKNOWN_MEMBER_ID
