"""Paging, resets, masks, sessions, series, dead letters and places, by table."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.services.console.machine.dead_letters import reason_of, redriven_headers
from moldau.services.console.machine.decoding import decode_plain, encode_plain, fitted
from moldau.services.console.machine.explanations import explanation
from moldau.services.console.machine.flows import flow_picture
from moldau.services.console.machine.graph import Node
from moldau.services.console.machine.masks import (
    hides_less,
    masked,
    parse_mask_rules,
    rules_for,
)
from moldau.services.console.machine.paging import Paging, page_of
from moldau.services.console.machine.places import newest_starts
from moldau.services.console.machine.resets import planned_changes
from moldau.services.console.machine.series import Series
from moldau.services.console.machine.sessions import FailedLogins, Session, Sessions


def test_a_page_is_searched_sorted_and_cut() -> None:
    names = ["orders", "payments", "orders-dlq", "clicks"]
    sizes = {"orders": 5, "orders-dlq": 9, "clicks": 1}
    columns = {"size": sizes.get}

    def shown(**how: Any) -> list[str]:
        paging = Paging.of(**{"search": None, "page": None, "size": None, "sort": None, **how})
        return page_of(names, paging, name=str, columns=columns)[0]

    assert shown() == ["clicks", "orders", "orders-dlq", "payments"]
    assert shown(search="ORD dlq") == ["orders-dlq"]
    assert shown(sort="-size") == ["orders-dlq", "orders", "clicks", "payments"]
    assert shown(sort="-name", size=2, page=1) == ["orders", "clicks"]
    assert shown(page=9) == []


@pytest.mark.parametrize(
    ("target", "value", "new"),
    [
        ("earliest", 0, 10),
        ("latest", 0, 100),
        ("offset", 50, 50),
        ("offset", 5, 10),
        ("offset", 500, 100),
        ("shift", -20, 40),
        ("shift", -99, 10),
        ("time", 0, 77),
        ("current", 0, 60),
    ],
)
def test_a_reset_stays_within_the_partition(target: str, value: int, new: int) -> None:
    place = ("t", 0)
    (change,) = planned_changes(
        target, value, current={place: 60}, firsts={place: 10}, ends={place: 100},
        at_time={place: 77},
    )  # fmt: skip
    assert (change.current, change.new) == (60, new)


def test_the_newest_records_of_uneven_partitions() -> None:
    firsts, ends = {0: 0, 1: 90, 2: 0}, {0: 100, 1: 92, 2: 200}
    assert newest_starts(firsts, ends, 50) == {0: 76, 1: 90, 2: 176}
    assert newest_starts(firsts, ends, 10_000) == firsts


def test_masks() -> None:
    rules = parse_mask_rules(
        {"mask.a.topics": "pay.*", "mask.a.fields": "card,customer.mail", "mask.a.with": "last4",
         "mask.a.except": "auditor"}
    )  # fmt: skip
    assert rules_for(rules, "orders", "x") == rules_for(rules, "pay1", "auditor") == ()
    own = rules_for(rules, "pay1", "x")
    value = {
        "card": "4111111",
        "customer": {"mail": "a@example", "name": "a"},
        "l": [{"card": 12345}],
    }
    assert masked(own, "value", value) == {
        "card": "****1111",
        "customer": {"mail": "****mple", "name": "a"},
        "l": [{"card": "****2345"}],
    }
    assert masked(own, "value", "card=4111111") == "****1111"


def test_sessions_end() -> None:
    sessions = Sessions(count_max=2, timeout_ms=100)
    for number in range(3):
        sessions.add(f"id-{number}", Session("u", "basic", "s", 0, 150 if number == 2 else None))
    assert sessions.find("id-0", 1) is None
    assert sessions.find("id-1", 100) is not None
    assert sessions.find("id-1", 201) is None
    assert sessions.find("id-2", 90) is not None
    assert sessions.find("id-2", 150) is None


def test_failed_logins_are_forgotten_in_time() -> None:
    failures = FailedLogins(count_max=2, window_ms=100, users_max=2)
    failures.add("u", 0)
    failures.add("u", 50)
    assert failures.is_blocked("u", 60)
    assert not failures.is_blocked("u", 101)


def test_a_series_keeps_its_last_points() -> None:
    series = Series(points_max=3)
    series.add(0, {"g": 0.0})
    series.add(1000, {"g": 1.0})
    for at in (2000, 3000):
        series.add(at, {"g": 1.0, "late": 5.0})
    assert series.since(0) == {
        "time": [1000, 2000, 3000],
        "g": [1.0] * 3,
        "late": [None, 5.0, 5.0],
    }
    assert series.since(2000)["time"] == [3000]


def test_reasons_ignore_numbers_and_headers_are_cleaned() -> None:
    headers = [("__connect.errors.exception.message", b"row 17 of 20"), ("a", b"b"),
               ("__moldau.redrive.count", b"2")]  # fmt: skip
    reason = reason_of(headers)
    assert reason is not None
    assert reason.message == "row # of #"
    assert redriven_headers(headers) == [("a", b"b"), ("__moldau.redrive.count", b"3")]
    assert reason_of([("a", b"b")]) is None


@pytest.mark.parametrize(
    ("data", "format", "kind", "value"),
    [
        (None, "auto", "null", None),
        (b'{"a":1}', "auto", "json", {"a": 1}),
        (b"plain", "auto", "string", "plain"),
        (b"\xff\x00", "auto", "bytes", "/wA="),
        (b"\x00\x00\x00\x07", "int", "int", 7),
        (b"\x01\x02", "hex", "hex", "01 02"),
        (b"x", "long", "bytes", "eA=="),
    ],
)
def test_bytes_are_shown(data: bytes | None, format: str, kind: str, value: Any) -> None:
    found = decode_plain(data, format)
    assert (found.kind, found.value) == (kind, value)
    if found.note is None:
        assert encode_plain(kind if kind != "null" else "string", value) == data or kind == "json"


def test_explanations_are_plain_text() -> None:
    assert explanation("topic", "a", "Use <code>x</code> &amp; y.<p>") == "Use x & y."
    assert explanation("topic", "a", None).startswith("A setting of the topic")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b'{"a": NaN}', "string", id="not a number of JSON"),
        pytest.param(b"[" * 200 + b"]" * 200, "json", id="deep"),
        pytest.param(b"[" * 201 + b"]" * 201, "string", id="too deep"),
        pytest.param(b"[" * 50_000, "string", id="too deep for the parser"),
        pytest.param(b"[" + b",".join([b"{}"] * 5000) + b"]", "json", id="wide"),
    ],
)
def test_what_is_no_json_is_text(data: bytes, kind: str) -> None:
    assert decode_plain(data).kind == kind


@pytest.mark.parametrize(
    ("value", "limit", "shown", "note"),
    [
        ({"a": 1}, None, {"a": 1}, None),
        ({"a": "\ud800"}, None, '{"a": "\\ud800"}', "shown as text"),
        ({"a": float("inf")}, None, '{"a": Infinity}', "shown as text"),
        ("x" * 20, 5, "xxxxx", "the first 5 bytes"),
        ({"a": "bbbb"}, 8, '{"a": "b', "the first 8 bytes"),
        ("ää", 3, "ä", "the first 3 bytes"),
        (None, 1, None, None),
        (12345678901234567890, 1, 12345678901234567890, None),
    ],
)
def test_a_value_is_made_fit_to_be_sent(
    value: Any, limit: int | None, shown: Any, note: str | None
) -> None:
    found, said = fitted(value, limit)
    assert found == shown
    assert (said or "").startswith(note or "")
    assert bool(said) == bool(note)


def test_records_stay_where_their_fields_are_hidden() -> None:
    rules = parse_mask_rules(
        {
            "mask.cards.topics": "pay.*", "mask.cards.fields": "card", "mask.cards.except": "ada",
            "mask.names.topics": ".*-dlq", "mask.names.fields": "name",
        }
    )  # fmt: skip
    assert hides_less(rules, "payments", "open", "bob")
    assert not hides_less(rules, "payments", "open", "ada")
    assert not hides_less(rules, "payments", "pay-copy", "bob")
    assert hides_less(rules, "pay-dlq", "payments", "bob")
    assert not hides_less(rules, "open", "payments", "bob")


def test_a_flow_is_drawn_from_what_it_reads_to_what_it_writes() -> None:
    rates = {"orders": 5.0}
    found = flow_picture(Node("own", "connector", "c"), ["orders", "orders"], ["out"], rates.get)
    boxes = {each["id"]: each for each in found["nodes"]}
    assert boxes["in:orders"]["rate"] == 5.0
    assert boxes["in:orders"]["x"] < boxes["own"]["x"] < boxes["out:out"]["x"]
    lines = {(each["source"], each["target"]) for each in found["edges"]}
    assert lines == {("in:orders", "own"), ("own", "out:out")}
