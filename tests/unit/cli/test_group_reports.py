"""What the group tools print alike."""

from __future__ import annotations

import pytest

from moldau.cli.groups.reports import (
    print_deleted_groups,
    print_deleted_offsets,
    print_reset_plan,
)
from moldau.cli.support.java_errors import UnusablePartitionsError, as_java
from moldau.client.errors import error_for
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, "GroupIdNotFoundException: words"),
        (ErrorCode.REQUEST_TIMED_OUT, "TimeoutException: words"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException: words"),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, "InvalidRegularExpression: words"),
    ],
)
def test_errors_have_javas_names(code: ErrorCode, text: str) -> None:
    assert as_java(error_for(code, "words")) == PACKAGE + text


def test_errors_without_words_get_javas() -> None:
    text = PACKAGE + "GroupNotEmptyException: The group is not empty."
    assert as_java(error_for(ErrorCode.NON_EMPTY_GROUP, "")) == text
    assert as_java(error_for(ErrorCode.NON_EMPTY_GROUP, "g"), standard=True) == text
    assert as_java(UnusablePartitionsError("what it found")) == "what it found"


def test_deleted_groups(capsys: pytest.CaptureFixture[str]) -> None:
    print_deleted_groups("share", ["a", "b"], {})
    assert capsys.readouterr().out == (
        "Deletion of requested share groups ('a', 'b') was successful.\n"
    )
    print_deleted_groups("consumer", ["a"], {"b": error_for(ErrorCode.NON_EMPTY_GROUP, "b")})
    assert capsys.readouterr().out == (
        "\nError: Deletion of some consumer groups failed:\n"
        f"* Group 'b' could not be deleted due to: {PACKAGE}GroupNotEmptyException: "
        "The group is not empty.\n"
        "\nThese consumer groups were deleted successfully: 'a'\n"
    )


def test_deleted_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    gone = TopicPartition("t", 0)
    print_deleted_offsets("g", [gone], {}, {})
    assert capsys.readouterr().out == (
        "Request succeeded for deleting offsets from group g.\n"
        "\nTOPIC           PARTITION  STATUS         \n"
        "t               0          Successful     \n"
    )
    strange = error_for(ErrorCode.UNKNOWN_SERVER_ERROR, "oops")
    print_deleted_offsets("g", [gone], {gone: strange}, {})
    assert "Error: Encountered some unknown error: UNKNOWN_SERVER_ERROR\n" in (
        capsys.readouterr().out
    )


def test_a_plan_in_order_and_none_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    print_reset_plan({"g": {TopicPartition("t", 10): 2, TopicPartition("t", 9): 1}})
    assert capsys.readouterr().out.splitlines()[1:] == [
        "GROUP           TOPIC           PARTITION  NEW-OFFSET",
        "g               t               9          1",
        "g               t               10         2",
    ]
    print_reset_plan({})
    assert capsys.readouterr().out == "\n"
