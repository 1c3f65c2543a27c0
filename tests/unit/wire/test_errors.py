"""Error codes and the exceptions that carry them."""

from __future__ import annotations

import pickle

import pytest

from moldau.wire.errors import ApiError, ErrorCode, WireError


@pytest.mark.parametrize(
    ("code", "number", "retriable", "refresh"),
    [
        (ErrorCode.UNKNOWN_SERVER_ERROR, -1, False, False),
        (ErrorCode.NONE, 0, False, False),
        (ErrorCode.CORRUPT_MESSAGE, 2, True, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 3, True, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 6, True, True),
        (ErrorCode.UNSUPPORTED_VERSION, 35, False, False),
        (ErrorCode.SHARE_SESSION_LIMIT_REACHED, 133, True, False),
    ],
)
def test_codes(code: ErrorCode, number: int, retriable: bool, refresh: bool) -> None:
    assert code == number
    assert (code.retriable, code.refresh_metadata) == (retriable, refresh)


def test_codes_have_no_gaps() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 137))


def test_api_error_tells_code_and_message() -> None:
    error = ApiError(ErrorCode.INVALID_REQUEST, "topic is empty")
    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.message == "topic is empty"
    assert str(error) == "INVALID_REQUEST: topic is empty"
    assert str(ApiError(ErrorCode.INVALID_REQUEST)) == "INVALID_REQUEST"
    assert not isinstance(error, WireError)


def test_api_error_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(ApiError(ErrorCode.NONE, "m")))
    assert (copy.code, copy.message) == (ErrorCode.NONE, "m")
