"""Patterns are Java's, as far as names of topics need them."""

from __future__ import annotations

import pickle

import pytest

from moldau.spark.source.machine.patterns import PatternError, TopicPattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        ("a|b", ["a", "b"], ["ab"]),
        (r"\Qa.b\E\d+", ["a.b1"], ["axb1", "a.b"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"\p{Alpha}+", ["ab"], ["a1"]),
        (r"[\p{Lower}\p{Digit}]+", ["a1"], ["A1"]),
        (r"\P{Punct}+", ["ab"], ["a-b"]),
        (r"(?<x>a)\k<x>\z", ["aa"], ["ab"]),
        (r"a*+b", ["aab"], ["aac"]),
        ("(?!__).*", ["a"], ["__a"]),
        (r"a\[b\]", ["a[b]"], ["ab"]),
    ],
)
def test_pattern(pattern: str, matching: list[str], other: list[str]) -> None:
    made = TopicPattern(pattern)
    assert all(made.matches(each) for each in matching)
    assert not any(made.matches(each) for each in other)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("pattern", ["(", "[a-z&&[^b]]", r"\p{Thai}", r"[\P{Alpha}]", "*a"])
def test_what_only_java_understands_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        TopicPattern(pattern)
