"""The records section: written, checked and read back by both forms of the codec."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire import _record_codec
from support.examples import examples

BASE_TIMESTAMP = 1_700_000_000_000
INT64_MAX = 2**63 - 1

contents = st.one_of(st.none(), st.binary(max_size=300))
header_lists = st.lists(
    st.tuples(st.text(max_size=20), st.one_of(st.none(), st.binary(max_size=20))), max_size=3
).map(tuple)
# One less than the largest number, for a batch that begins with -1: the difference is what is kept.
rows = st.lists(
    st.tuples(contents, contents, st.integers(-1, INT64_MAX - 1), header_lists), max_size=8
)


def varint(value: int) -> bytes:
    unsigned = (value << 1) ^ (value >> 63)
    out = bytearray()
    while unsigned > 127:
        out.append(unsigned & 127 | 128)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


def record(body: bytes) -> bytes:
    return varint(len(body)) + body


def body(
    *,
    timestamp: bytes = varint(0),
    offset: bytes = varint(0),
    key: bytes = varint(-1),
    value: bytes = varint(-1),
    headers: bytes = varint(0),
) -> bytes:
    return b"\x00" + timestamp + offset + key + value + headers


def as_rows(records: list[Any]) -> list[tuple[Any, ...]]:
    return [(r.key, r.value, r.timestamp, r.headers) for r in records]


def findings(scan: Any) -> tuple[Any, ...]:
    return (
        scan.problem,
        scan.index,
        scan.max_timestamp,
        scan.max_timestamp_index,
        scan.null_key_count,
        scan.bad_timestamp_count,
        scan.dense,
        scan.last_offset_delta,
    )


@given(items=rows, prefix_size=st.integers(0, 70), base_offset=st.integers(0, 2**40))
def test_written_records_are_read_back(
    codec: ModuleType, items: list[Any], prefix_size: int, base_offset: int
) -> None:
    base_timestamp = items[0][2] if items else -1
    out, last_delta, max_timestamp = codec.encode_records(
        items, prefix_size, base_offset, base_timestamp
    )
    assert out[:prefix_size] == bytes(prefix_size)
    assert last_delta == len(items) - 1
    assert max_timestamp == max((row[2] for row in items), default=-1)

    scan = codec.validate_records(out, prefix_size, len(out), len(items), base_timestamp)
    assert scan.problem == 0
    assert scan.dense
    assert scan.null_key_count == sum(row[0] is None for row in items)
    assert scan.max_timestamp == max_timestamp

    data = bytes(out)
    records = codec.decode_records(
        data, prefix_size, len(data), len(items), base_offset, base_timestamp
    )
    assert as_rows(records) == items
    assert [r.offset for r in records] == list(range(base_offset, base_offset + len(items)))


@given(items=rows)
def test_both_forms_write_the_same(plain_codec: ModuleType, items: list[Any]) -> None:
    assert _record_codec.encode_records(items, 3, 0, 5) == plain_codec.encode_records(
        items, 3, 0, 5
    )


def test_timestamps_too_far_apart_for_a_batch_are_refused(codec: ModuleType) -> None:
    items = [(None, None, -1, ()), (None, None, INT64_MAX, ())]
    with pytest.raises(OverflowError, match="too far from the batch's first, -1"):
        codec.encode_records(items, 0, 0, -1)


def test_many_records_outgrow_the_first_buffer(codec: ModuleType) -> None:
    items = [(b"k" * (i % 50), b"v" * (i * 37 % 2000), BASE_TIMESTAMP + i, ()) for i in range(500)]
    out, _, _ = codec.encode_records(items, 0, 0, BASE_TIMESTAMP)
    records = codec.decode_records(bytes(out), 0, len(out), 500, 0, BASE_TIMESTAMP)
    assert as_rows(records) == items


MALFORMED = [
    pytest.param(b"", "variable-length number", id="nothing where a record should be"),
    pytest.param(b"\x80" * 6, "variable-length number", id="length of six bytes"),
    pytest.param(b"\x80\x80", "variable-length number", id="length is cut off"),
    pytest.param(varint(0), "longer than the bytes", id="length zero"),
    pytest.param(varint(-1) + bytes(9), "longer than the bytes", id="length negative"),
    pytest.param(varint(50) + bytes(9), "longer than the bytes", id="length past the end"),
    pytest.param(
        record(body(timestamp=b"\x80" * 10 + b"\x00")), "variable-length", id="eleven-byte time"
    ),
    pytest.param(
        record(body(timestamp=varint(INT64_MAX))), "timestamp does not fit", id="time too late"
    ),
    pytest.param(record(body(key=varint(100))), "a key runs past", id="key past the record"),
    pytest.param(record(body(value=varint(9))), "a value runs past", id="value past the record"),
    pytest.param(record(body(headers=varint(-1))), "header count is negative", id="-1 headers"),
    pytest.param(record(body(headers=varint(1))), "variable-length", id="header missing"),
    pytest.param(
        record(body(headers=varint(1) + varint(-1) + varint(-1))), "a header key", id="null name"
    ),
    pytest.param(
        record(body(headers=varint(1) + varint(5) + b"ab")), "a header key", id="name past record"
    ),
    pytest.param(
        record(body(headers=varint(1) + varint(1) + b"a" + varint(3))),
        "a header value",
        id="header value past the record",
    ),
    pytest.param(
        record(body(headers=varint(2**31 - 1))), "variable-length", id="two billion headers"
    ),
    pytest.param(record(body() + b"\x00"), "do not fill", id="byte too many in the record"),
    pytest.param(record(body()) + b"\x00", "bytes are left", id="byte after the last record"),
    pytest.param(record(body()) * 2, "bytes are left", id="record too many"),
]


@pytest.mark.parametrize(("section", "problem"), MALFORMED)
def test_malformed_sections_are_told_apart(codec: ModuleType, section: bytes, problem: str) -> None:
    scan = codec.validate_records(section, 0, len(section), 1, BASE_TIMESTAMP)
    assert problem in codec.PROBLEMS[scan.problem]
    with pytest.raises(ValueError, match="record 0"):
        codec.decode_records(section, 0, len(section), 1, 0, BASE_TIMESTAMP)


@pytest.mark.parametrize(
    ("base", "delta", "sound"),
    [
        (0, -INT64_MAX - 1, True),
        (-1, -INT64_MAX - 1, False),
        (INT64_MAX, 0, True),
        (INT64_MAX, 1, False),
        (1, INT64_MAX, False),
        (-5, INT64_MAX, True),
    ],
)
def test_timestamps_at_the_edge_of_64_bits(
    codec: ModuleType, base: int, delta: int, sound: bool
) -> None:
    section = record(body(timestamp=varint(delta)))
    scan = codec.validate_records(section, 0, len(section), 1, base)
    assert (scan.problem == 0) is sound


def test_problem_names_the_record(codec: ModuleType) -> None:
    section = record(body()) + record(body(key=varint(99)))
    assert codec.validate_records(section, 0, len(section), 2, 0).index == 1


@pytest.mark.parametrize(
    ("deltas", "dense"),
    [([0, 1, 2], True), ([0, 2, 3], False), ([1, 2, 3], False), ([0, 0, 1], False)],
)
def test_offset_deltas(codec: ModuleType, deltas: list[int], dense: bool) -> None:
    section = b"".join(record(body(offset=varint(delta))) for delta in deltas)
    scan = codec.validate_records(section, 0, len(section), len(deltas), 0)
    assert (scan.problem, scan.dense, scan.last_offset_delta) == (0, dense, deltas[-1])


def test_timestamp_limits_and_maximum(codec: ModuleType) -> None:
    deltas = [0, 5, -5, 5, -1001]
    section = b"".join(
        record(body(timestamp=varint(delta), offset=varint(i))) for i, delta in enumerate(deltas)
    )
    scan = codec.validate_records(section, 0, len(section), 5, 1000, 996, 1004)
    # The last record has -1, no timestamp, which no limit concerns.
    assert scan.bad_timestamp_count == 3
    assert (scan.max_timestamp, scan.max_timestamp_index) == (1005, 1)


@pytest.mark.parametrize(("position", "end"), [(-1, 5), (6, 5), (0, 11)])
def test_bounds_outside_the_buffer(codec: ModuleType, position: int, end: int) -> None:
    with pytest.raises(ValueError, match="do not lie within"):
        codec.validate_records(bytes(10), position, end, 1, 0)


def test_high_bits_of_a_long_number_are_dropped(codec: ModuleType) -> None:
    key = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    section = record(body(timestamp=key))
    records = codec.decode_records(section, 0, len(section), 1, 0, 0)
    assert records[0].timestamp == -(2**63)
    five = record(body(offset=b"\x84\x80\x80\x80\x70"))
    assert codec.validate_records(five, 0, len(five), 1, 0).last_offset_delta == 2


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ((b"k", b"v", -2, ()), ValueError),
        ((b"k", b"v", 2**63, ()), OverflowError),
        (("text", b"v", 0, ()), TypeError),
        ((b"k", 5, 0, ()), TypeError),
    ],
)
def test_rows_that_cannot_be_written(
    codec: ModuleType, row: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        codec.encode_records([row], 0, 0, 0)


def test_records_keep_their_offsets_and_must_ascend(codec: ModuleType) -> None:
    sparse = [codec.Record(offset, 7, b"k", None) for offset in (10, 13, 20)]
    out, last_delta, _ = codec.encode_records(sparse, 0, 10, 7)
    assert last_delta == 10
    assert codec.decode_records(bytes(out), 0, len(out), 3, 10, 7) == sparse
    with pytest.raises(ValueError, match="does not follow"):
        codec.encode_records(list(reversed(sparse)), 0, 10, 7)


def test_buffers_are_taken_for_bytes(codec: ModuleType) -> None:
    out, _, _ = codec.encode_records([(bytearray(b"k"), memoryview(b"value"), 0, ())], 0, 0, 0)
    [read] = codec.decode_records(bytes(out), 0, len(out), 1, 0, 0)
    assert (read.key, read.value) == (b"k", b"value")


def test_header_name_that_is_not_utf8(codec: ModuleType) -> None:
    section = record(body(headers=varint(1) + varint(2) + b"a\xff" + varint(-1)))
    [read] = codec.decode_records(section, 0, len(section), 1, 0, 0)
    assert read.headers == (("a\N{REPLACEMENT CHARACTER}", None),)


def test_append_time_replaces_timestamps(codec: ModuleType) -> None:
    section = record(body(timestamp=varint(9)))
    [read] = codec.decode_records(section, 0, len(section), 1, 0, 1, 555)
    assert read.timestamp == 555


def test_record_is_a_value(codec: ModuleType) -> None:
    one = codec.Record(1, 2, b"k", b"v", (("h", None),))
    same = codec.Record(1, 2, b"k", b"v", (("h", None),))
    other = codec.Record(1, 2, b"k", b"w", (("h", None),))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != (1, 2)
    assert "offset=1" in repr(one)
    assert pickle.loads(pickle.dumps(one)) == one


def mutated_section(rng: random.Random) -> tuple[bytearray, int]:
    count = rng.randint(1, 6)
    items = [
        (
            rng.choice([None, b"", b"key" * rng.randint(0, 40)]),
            rng.choice([None, bytes(rng.randint(0, 200))]),
            BASE_TIMESTAMP + rng.randint(-(10**9), 10**9),
            tuple(
                ("h" * rng.randint(0, 3), rng.choice([None, b"x"]))
                for _ in range(rng.randint(0, 2))
            ),
        )
        for _ in range(count)
    ]
    section = _record_codec.encode_records(items, 0, 0, BASE_TIMESTAMP)[0]
    for _ in range(rng.randint(0, 3)):
        section[rng.randrange(len(section))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    if rng.random() < 0.3:
        del section[rng.randrange(len(section)) :]
    return section, count


@settings(max_examples=examples(400), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_forms_find_the_same(plain_codec: ModuleType, seed: int) -> None:
    section, count = mutated_section(random.Random(seed))
    arguments = (0, len(section), count, BASE_TIMESTAMP, BASE_TIMESTAMP - 10**8, BASE_TIMESTAMP)
    assert findings(_record_codec.validate_records(section, *arguments)) == findings(
        plain_codec.validate_records(section, *arguments)
    )


def test_plain_form_needs_no_cython(plain_codec: ModuleType) -> None:
    code = f"""
import runpy, sys
sys.modules["cython"] = None
codec = runpy.run_path({plain_codec.__file__!r})
out, _, _ = codec["encode_records"]([(b"k", b"v", 1, ())], 0, 0, 1)
assert codec["validate_records"](out, 0, len(out), 1, 1).problem == 0
print(codec["COMPILED"])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "False", result.stderr


GUARDED = """
import ctypes, mmap, random, sys
sys.path[:0] = {places!r}
from test_record_codec import BASE_TIMESTAMP, mutated_section
from moldau.wire import _record_codec as codec

page = mmap.PAGESIZE
area = mmap.mmap(-1, 3 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
# Nothing may be read before the first page boundary or from the second one on.
assert libc.mprotect(address, page, 0) == 0
assert libc.mprotect(address + 2 * page, page, 0) == 0
middle = (ctypes.c_ubyte * page).from_address(address + page)
rng = random.Random(20)
for _ in range(4000):
    section, count = mutated_section(rng)
    section = section[-page:]
    size = len(section)
    claimed = rng.choice([count, count + 1, 2**31 - 1])
    for start in (page - size, 0):
        ctypes.memmove(address + page + start, bytes(section), size)
        view = memoryview(middle).cast("B")[start : start + size]
        scan = codec.validate_records(view, 0, size, claimed, BASE_TIMESTAMP)
        if scan.problem == 0:
            codec.decode_records(bytes(view), 0, size, claimed, 0, BASE_TIMESTAMP)
print("within bounds")
"""


def test_nothing_outside_the_buffer_is_read() -> None:
    """Sections end and begin at pages that cannot be read: one byte too far ends the process."""
    here = Path(__file__).parent
    places = [str(here), str(here.parents[1])]
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(GUARDED.format(places=places))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "within bounds" in result.stdout
