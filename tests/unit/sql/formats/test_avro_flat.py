"""Flat rows: the bytes of generated source are those of Avro's encoder, and read back."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.language import AvroLanguage
from moldau.sql.formats import format_for
from moldau.sql.formats.avro_flat import flat_reader, flat_writer
from moldau.sql.testing.registry import MemoryRegistry
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    ArrayType,
    Column,
    StructType,
)
from support.examples import examples

FIELDS = (
    ("A", INTEGER), ("B", BIGINT), ("C", DOUBLE), ("D", STRING), ("E", BOOLEAN), ("F", BYTES),
    ("G", TIMESTAMP),
)  # fmt: skip
KIND = StructType(FIELDS)
_, TEXT = format_for("AVRO", {}).schema_text([Column(*each) for each in FIELDS], frozenset())
ROOT = AvroLanguage().parse(TEXT, strict=False).root
WRITE, READ = flat_writer(KIND, ROOT), flat_reader(KIND, ROOT)
ENCODER = AvroEncoder(ROOT, logical_types=False)
DECODER = AvroDecoder(ROOT, logical_types=False)
_longs = st.integers(-(2**63), 2**63 - 1)
_rows = st.tuples(
    *(
        st.one_of(st.none(), each)
        for each in (
            st.integers(-(2**31), 2**31 - 1),
            _longs,
            st.floats(allow_nan=False),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
            st.booleans(),
            st.binary(max_size=200),
            _longs,
        )
    )
)


@settings(max_examples=examples(300), deadline=None)
@given(_rows)
def test_bytes_are_those_of_the_encoder(row: tuple[Any, ...]) -> None:
    assert WRITE is not None
    assert READ is not None
    expected = ENCODER.encode(dict(zip((name for name, _ in FIELDS), row, strict=True)))
    assert WRITE(b"", row) == expected
    assert READ(expected) == row


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60))
def test_what_is_read_is_what_the_decoder_reads(data: bytes) -> None:
    assert READ is not None
    try:
        found = READ(data)
    except Exception:  # the general way decides
        return
    assert repr(found) == repr(tuple(DECODER.decode(data).values()))


def test_schemas_with_parts_take_the_general_way() -> None:
    columns = [Column("A", ArrayType(INTEGER)), Column("B", STRING)]
    _, text = format_for("AVRO", {}).schema_text(columns, frozenset())
    root = AvroLanguage().parse(text, strict=False).root
    kind = StructType(tuple((each.name, each.type) for each in columns))
    assert flat_writer(kind, root) is None
    assert flat_reader(kind, root) is None
    serde = format_for("AVRO", {}).serde(columns, frozenset(), MemoryRegistry(), is_key=False)
    data = serde.serialize("t", ([1, None], "x"))
    assert serde.deserialize("t", data) == ([1, None], "x")
