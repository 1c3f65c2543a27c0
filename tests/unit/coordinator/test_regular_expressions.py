"""Subscriptions by pattern follow RE2, match whole names and take linear time."""

from __future__ import annotations

import pytest

from moldau.broker.coordinator.group.machine.regular_expressions import (
    check_pattern,
    matching_topics,
)
from moldau.wire.errors import ApiError, ErrorCode

NAMES = ["orders", "orders-eu", "my.orders", "payments", "Payments", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        (".*orders", {"orders", "my.orders"}),
        ("orders|orders-eu", {"orders", "orders-eu"}),
        ("(?i)payments", {"payments", "Payments"}),
        (r"my\.orders", {"my.orders"}),
        (r"\Qmy.orders\E", {"my.orders"}),
        (r"my.[[:alpha:]]+", {"my.orders"}),
        ("(?P<name>pay)ments", {"payments"}),
        ("__.*", {"__consumer_offsets"}),
        ("^pay", set()),
        ("", set()),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, matches: set[str]) -> None:
    check_pattern(pattern)
    assert matching_topics(pattern, NAMES) == matches


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2000}", "invalid repeat count"),
        (r"\y", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        ("(?P<n", "invalid named capture"),
        ("(?=x)", "invalid or unsupported Perl syntax"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_an_invalid_pattern_is_refused_with_kafkas_words(pattern: str, reason: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_pattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
    )
    assert matching_topics(pattern, NAMES) == frozenset()


def test_backward_references_are_refused() -> None:
    with pytest.raises(ApiError, match="invalid escape sequence"):
        check_pattern(r"(a)\1")


def test_a_pattern_that_would_take_too_much_memory_is_refused() -> None:
    with pytest.raises(ApiError, match="INVALID_REGULAR_EXPRESSION"):
        check_pattern("(?:(?:x{500}y{500}){500})")


def test_nested_repetition_does_not_explode() -> None:
    # A matcher that goes back and forth would not end in a lifetime.
    assert matching_topics("(a*)*(a*)*(a|a)*b", ["a" * 249]) == frozenset()
