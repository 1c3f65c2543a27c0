"""Ids of schemas in a column of headers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.spark.columns.schema import HEADERS

pa = pytest.importorskip("pyarrow")
from moldau.spark.schemas.header_ids import ids_in, with_id  # noqa: E402

NAME = "__value_schema_id"
Row = list[dict[str, Any]] | None
ROWS = st.lists(
    st.none()
    | st.lists(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(["h", NAME, "__key_schema_id"]),
                "value": st.none() | st.binary(max_size=3),
            }
        ),
        max_size=3,
    ),
    max_size=8,
)


def test_the_last_header_of_a_record_counts() -> None:
    headers: list[Row] = [
        None,
        [],
        [{"key": NAME, "value": b"a"}, {"key": "h", "value": b"x"}, {"key": NAME, "value": b"b"}],
        [{"key": "__key_schema_id", "value": b"k"}, {"key": NAME, "value": None}],
        [{"key": NAME, "value": b"c"}],
    ]
    column = pa.array(headers, type=HEADERS)
    assert ids_in(column, is_key=False) == {2: b"b", 4: b"c"}
    assert ids_in(column, is_key=True) == {3: b"k"}
    assert ids_in(column.slice(3), is_key=False) == {1: b"c"}
    assert ids_in(None, is_key=False) == {}


@given(rows=ROWS, data=st.data())
def test_an_id_is_added_to_records_with_a_value(rows: list[Row], data: st.DataObject) -> None:
    size = len(rows)
    values = data.draw(st.lists(st.none() | st.just(b"v"), min_size=size, max_size=size))
    cut = data.draw(st.integers(0, size))
    headers = pa.array(rows, type=HEADERS).slice(cut)
    added = with_id(headers, pa.array(values, pa.binary()).slice(cut), b"id", is_key=False)
    assert added.type == HEADERS
    assert added.to_pylist() == [
        (row or []) + ([] if value is None else [{"key": NAME, "value": b"id"}])
        for row, value in zip(rows[cut:], values[cut:], strict=True)
    ]


def test_headers_are_made_where_there_are_none() -> None:
    made = with_id(None, pa.array([b"v", None], pa.binary()), b"id", is_key=True)
    assert made.to_pylist() == [[{"key": "__key_schema_id", "value": b"id"}], []]
