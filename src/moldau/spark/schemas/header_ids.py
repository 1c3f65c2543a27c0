"""Ids of schemas in columns of headers: found for a whole batch at once, and added to it."""

from __future__ import annotations

import numpy
import pyarrow.compute as compute

from moldau.serde.framing import header_name
from moldau.spark.columns.schema import HEADERS, pyarrow

__all__ = ["ids_in", "with_id"]


def ids_in(headers: pyarrow.Array | None, *, is_key: bool) -> dict[int, bytes]:
    """By row, of those that have one; of several the last counts."""
    if headers is None:
        return {}
    flat = headers.flatten()
    if not len(flat):
        return {}
    found = compute.and_(
        compute.equal(flat.field("key"), header_name(is_key)),
        compute.greater(compute.binary_length(flat.field("value")), 0),
    )
    rows = compute.list_parent_indices(headers).filter(found).to_pylist()
    return dict(zip(rows, flat.field("value").filter(found).to_pylist(), strict=True))


def with_id(
    headers: pyarrow.Array | None, values: pyarrow.Array, id: bytes, *, is_key: bool
) -> pyarrow.Array:
    """The headers with one more for each row whose value is not null."""
    added = numpy.asarray(compute.is_valid(values)).astype(numpy.int64)
    if headers is None:
        headers = pyarrow.array([[]] * len(values), type=HEADERS)
    headers = headers.cast(HEADERS)
    lengths = numpy.asarray(compute.fill_null(compute.list_value_length(headers), 0))
    own = pyarrow.StructArray.from_arrays(
        [pyarrow.array([header_name(is_key)]), pyarrow.array([id], type=pyarrow.binary())],
        fields=list(HEADERS.value_type),
    )
    before = headers.flatten()
    offsets = numpy.concatenate([[0], numpy.cumsum(lengths + added)]).astype(numpy.int32)
    # Everything is the new header, but for the places where the old ones go.
    chosen = numpy.full(offsets[-1], len(before), dtype=numpy.int64)
    shifts = numpy.repeat(numpy.cumsum(added) - added, lengths)
    chosen[numpy.arange(len(before)) + shifts] = numpy.arange(len(before))
    made = pyarrow.concat_arrays([before, own]).take(pyarrow.array(chosen))
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), made).cast(HEADERS)
