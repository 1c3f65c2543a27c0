"""Texts become values and back as Java does it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.config import ConfigError, ConfigType, Password, parse_value, render_value
from moldau.config.validators import AnyOf, ListOf, NonEmpty, OneOf, Range

T = ConfigType


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (T.BOOLEAN, "TRUE", True),
        (T.BOOLEAN, " false ", False),
        (T.INT, "+5", 5),
        (T.INT, " -7 ", -7),
        (T.INT, "2147483647", 2**31 - 1),
        (T.INT, "-2147483648", -(2**31)),
        (T.INT, "0000000000000000000000012", 12),
        (T.SHORT, "32767", 32767),
        (T.LONG, "-9223372036854775808", -(2**63)),
        (T.DOUBLE, "1e-1", 0.1),
        (T.DOUBLE, ".5f", 0.5),
        (T.DOUBLE, "-Infinity", float("-inf")),
        (T.STRING, "  a b ", "a b"),
        (T.LIST, "", ()),
        (T.LIST, " a , b,c ", ("a", "b", "c")),
        (T.LIST, "a,,b", ("a", "", "b")),
        (T.CLASS, "org.example.Thing", "org.example.Thing"),
        (T.PASSWORD, "secret", Password("secret")),
    ],
)
def test_accepted(kind: ConfigType, text: str, value: object) -> None:
    assert parse_value("k", kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (T.BOOLEAN, "yes"),
        (T.BOOLEAN, ""),
        (T.INT, ""),
        (T.INT, "-"),
        (T.INT, "1_0"),
        (T.INT, "5.0"),
        (T.INT, "0x10"),
        (T.INT, "2147483648"),
        (T.INT, "٣"),
        (T.INT, "9" * 5000),
        (T.SHORT, "32768"),
        (T.LONG, "9223372036854775808"),
        (T.DOUBLE, ""),
        (T.DOUBLE, "1_0"),
        (T.DOUBLE, "abc"),
        (T.DOUBLE, "--1"),
        (T.DOUBLE, "inf"),
    ],
)
def test_refused(kind: ConfigType, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("some.key", kind, text)
    assert "some.key" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.5, "0.5"),
        (100.0, "100.0"),
        (1234567.0, "1234567.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e-5, "1.0E-5"),
        (-2.5e-7, "-2.5E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.0**63, "9.223372036854776E18"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert render_value(T.DOUBLE, value) == text


@given(st.floats(allow_nan=False))
def test_a_printed_double_reads_back(value: float) -> None:
    text = render_value(T.DOUBLE, value)
    assert text is not None
    assert parse_value("k", T.DOUBLE, text) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_printed_long_reads_back(value: int) -> None:
    assert parse_value("k", T.LONG, str(value)) == value


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (T.BOOLEAN, True, "true"),
        (T.LIST, ("a", "b"), "a,b"),
        (T.LIST, (), ""),
        (T.PASSWORD, Password("secret"), "[hidden]"),
        (T.INT, None, None),
    ],
)
def test_rendered(kind: ConfigType, value: object, text: str | None) -> None:
    assert render_value(kind, value) == text


def test_a_password_never_shows() -> None:
    assert "secret" not in f"{Password('secret')} {Password('secret')!r}"


@pytest.mark.parametrize(
    ("validator", "good", "bad", "allowed"),
    [
        (Range(1), [1, 10**9], [0, None], "[1,...]"),
        (Range(0, 1), [0, 0.5, 1], [-0.1, 1.1, float("nan")], "[0,...,1]"),
        (Range(0, 0.5), [0.5], [0.6], "[0,...,0.5]"),
        (AnyOf(Range(1, 9), -1), [-1, 1, 9], [0, 10, -2], "[1,...,9] or -1"),
        (OneOf(("a", "b")), ["a"], ["A", "c", None], "[a, b]"),
        (OneOf(("A", "B"), ignore_case=True), ["a", "B"], ["c"], "(case insensitive) [A, B]"),
        (NonEmpty(), ["x", None], [""], "non-empty string"),
        (ListOf(), [(), ("a",)], [None, ("a", "")], ""),
        (ListOf(empty_allowed=False), [("a",)], [()], ""),
        (ListOf(null_allowed=True), [None], [("",)], ""),
        (ListOf(("a", "b")), [("b", "a")], [("c",)], "[a, b]"),
    ],
)
def test_validators(validator: Range, good: list[object], bad: list[object], allowed: str) -> None:
    assert validator.allowed == allowed
    for value in good:
        validator.check("k", value)
    for value in bad:
        with pytest.raises(ConfigError):
            validator.check("k", value)
