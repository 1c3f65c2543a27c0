"""Selectors: the language of JMS 1.1, section 3.8.1."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.messaging import InvalidSelectorError
from moldau.messaging.machine.selector import parse_selector

VALUES = {
    "colour": "red", "size": 3, "price": 2.5, "urgent": True, "quoted": "it's", "percent": "5%",
    "JMSPriority": 4, "JMSDeliveryMode": "PERSISTENT", "JMSType": None, "$x": 1, "_y": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("colour = 'red'", True),
        ("colour <> 'blue'", True),
        ("colour = 'Red'", False),
        ("size = 3 AND price > 2", True),
        ("size > 3 OR urgent", True),
        ("urgent", True),
        ("NOT urgent", False),
        ("urgent = TRUE and size=3", True),
        ("size BETWEEN 1 AND 3", True),
        ("size NOT BETWEEN 1 AND 3", False),
        ("colour IN ('red', 'blue')", True),
        ("colour NOT IN ('red')", False),
        ("colour LIKE 'r%'", True),
        ("colour LIKE 'r_d'", True),
        ("colour LIKE 'r_'", False),
        ("colour NOT LIKE 'b%'", True),
        ("percent LIKE '%!%' ESCAPE '!'", True),
        ("percent LIKE '5!_' ESCAPE '!'", False),
        ("quoted = 'it''s'", True),
        ("missing IS NULL", True),
        ("colour IS NOT NULL", True),
        ("size + 2 * 3 = 9", True),
        ("(size + 2) * 3 = 15", True),
        ("-size < 0", True),
        ("+size = 3", True),
        ("size / 2 = 1", True),
        ("price / 2 = 1.25", True),
        ("size = 3.0", True),
        ("size = 3L and price = 2.5d", True),
        ("price = 25E-1", True),
        ("JMSPriority >= 4 AND JMSDeliveryMode = 'PERSISTENT'", True),
        ("$x = 1 AND _y = 2", True),
        ("JMSReplyTo IS NULL", True),
        ("1 = 1", True),
        ("TRUE", True),
        ("not not urgent", True),
        # Unknown is not true, and neither is its negation.
        ("missing = 1", False),
        ("NOT missing = 1", False),
        ("missing > 1 OR urgent", True),
        ("missing > 1 AND urgent", False),
        ("missing LIKE '%'", False),
        ("missing BETWEEN 1 AND 2", False),
        ("missing IN ('a')", False),
        ("missing NOT IN ('a')", False),
        ("size / 0 = 1", False),
        ("JMSType = 'x'", False),
        # Values of different types are never equal, nor unequal.
        ("colour = 3", False),
        ("colour <> 3", False),
        ("urgent = 1", False),
        ("colour > size", False),
        ("size", False),
    ],
)
def test_selectors(text: str, wanted: bool) -> None:
    selector = parse_selector(text)
    assert selector is not None
    assert selector(VALUES) is wanted


@pytest.mark.parametrize(
    "text",
    [
        "=", "colour =", "colour = 'red", "colour = \"red\"", "5", "'text'", "size +", "(size = 3",
        "size = 3)", "colour IN ()", "colour IN (1)", "colour LIKE 5", "LIKE 'a'", "NULL",
        "colour IS", "colour IS 5", "colour LIKE 'a' ESCAPE 'xy'", "colour LIKE 'a!' ESCAPE '!'",
        "5 IN ('a')", "'a' < 'b'", "TRUE > FALSE", "'a' = 5", "size BETWEEN 'a' AND 'b'",
        "size BETWEEN 1", "-'a' = 1", "'a' + 1 = 2", "a b", "NOT", "AND a", "colour NOT 'a'",
        "1.5L = 1", "3x = 1", "99999999999999999999 = 1", "a = #", "'a' AND urgent",
    ],
)  # fmt: skip
def test_wrong_selectors_are_refused(text: str) -> None:
    with pytest.raises(InvalidSelectorError):
        parse_selector(text)


@pytest.mark.parametrize("text", [None, "", "  "])
def test_no_selector(text: str | None) -> None:
    assert parse_selector(text) is None


@given(st.text(st.sampled_from("ab'()=<>+-*/%._ 1AND ORNTLIKE,"), max_size=40))
def test_any_text_is_a_selector_or_an_error(text: str) -> None:
    try:
        selector = parse_selector(text)
    except InvalidSelectorError:
        return
    if selector is not None:
        assert selector(VALUES) in (True, False)


def test_length_and_nesting_are_bounded() -> None:
    with pytest.raises(InvalidSelectorError, match="nests"):
        parse_selector("(" * 5000 + "urgent" + ")" * 5000)
    with pytest.raises(InvalidSelectorError, match="characters"):
        parse_selector("urgent OR " * 10_000 + "urgent")
    parse_selector("(" * 40 + "urgent" + ")" * 40)


def test_like_takes_linear_time() -> None:
    selector = parse_selector("colour LIKE '" + "%a" * 30 + "b'")
    assert selector is not None

    def seconds(size: int) -> float:
        began = time.process_time()
        assert not selector({"colour": "a" * size})
        return time.process_time() - began

    seconds(1000)
    # A pattern that backtracks would not end.
    assert seconds(100_000) < 20


@pytest.mark.parametrize(
    "term",
    [
        pytest.param("size = 3 AND ", id="conjunction"),
        pytest.param("NOT urgent OR ", id="negation"),
        pytest.param("size + 1 - 1 * 2 > 0 AND ", id="arithmetic"),
        pytest.param("colour NOT IN ('a', 'b', 'c') AND ", id="list"),
        pytest.param("(missing IS NULL) AND ", id="parentheses"),
    ],
)
def test_parsing_and_evaluating_take_linear_time(term: str) -> None:
    def calls(size: int) -> int:
        text = term * (size // len(term)) + "urgent"
        counted = 0

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1

        # Calls are counted, not seconds, which depend on what else the machine does.
        sys.setprofile(count)
        try:
            selector = parse_selector(text)
            assert selector is not None
            selector(VALUES)
        finally:
            sys.setprofile(None)
        return counted

    # Sixteen times the length: 256 times the calls, if it were quadratic.
    assert calls(16_000) < 20 * calls(1_000)
