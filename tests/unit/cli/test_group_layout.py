"""Columns as Kafka's group tools lay them out in a pipe."""

from __future__ import annotations

from moldau.cli.groups.machine.layout import BARE, assignment_text, fixed, growing, spaced


def test_columns_grow_with_their_longest_cell_or_push_their_row() -> None:
    layout = spaced(growing(4), fixed(3), BARE)
    assert list(layout(["A", "B", "C"], [["longer", "1", "x"], ["s", "12345", "yy"]])) == [
        "",
        "A      B   C",
        "longer 1   x",
        "s      12345 yy",
    ]


def test_no_rows_leave_the_header_at_its_least_width() -> None:
    assert list(spaced(growing(5, extra=2), BARE, lead=False)(["A", "B"], [])) == ["A       B"]


def test_a_last_column_of_fixed_width_is_padded_and_a_tail_follows() -> None:
    assert list(spaced(fixed(2), fixed(4), tail=" ", lead=False)(["A", "B"], [])) == ["A  B    "]


def test_a_column_may_have_no_gap_behind_it() -> None:
    layout = spaced(fixed(3, gap=""), BARE, lead=False)
    assert list(layout(["A", "B"], [["abc", "d"]])) == ["A  B", "abcd"]


def test_assignments_are_in_order() -> None:
    assert assignment_text([("b", 10), ("b", 2), ("a", 0)]) == "a:0;b:2,10"
    assert assignment_text([]) == ""
