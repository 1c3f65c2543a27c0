"""Rows of a pull query that one server sends another are read as they were."""

from __future__ import annotations

from decimal import Decimal

from moldau.services.sql.machine.rows import exact_row_writer, row_reader, row_writer
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    StructType,
)

TYPES = (
    BIGINT, STRING, DOUBLE, BOOLEAN, BYTES, DATE, TIME, TIMESTAMP, DecimalType(6, 2),
    ArrayType(BIGINT), MapType(STRING, DATE), StructType((("A", TIMESTAMP),)),
)  # fmt: skip
ROW = (
    2**60, "a\n'ü", 1.5, True, b"\x00\xff", 19_000, 3_600_000, 1_700_000_000_000,
    Decimal("12.50"), [1, None], {"k": 7}, (1_700_000_000_001,),
)  # fmt: skip


def test_values_survive_the_way() -> None:
    read, write = row_reader(TYPES), exact_row_writer(TYPES)

    assert read(write(ROW)) == ROW
    assert read(write((None,) * len(TYPES))) == (None,) * len(TYPES)
    # What is shown is another text: times are written out.
    assert row_writer(TYPES)(ROW) != write(ROW)
