"""The producer's batches: grown record by record, built, split."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire.batch_header import HEADER_SIZE
from moldau.wire.compression import Compression
from moldau.wire.records import crc_matches, decode_batch, encode_batch, read_header

TIME = 1_700_000_000_000

contents = st.one_of(st.none(), st.binary(max_size=300))
header_lists = st.lists(
    st.tuples(st.text(max_size=20), st.one_of(st.none(), st.binary(max_size=20))), max_size=3
).map(tuple)
rows = st.lists(
    st.tuples(contents, contents, st.integers(-1, 2**62), header_lists), min_size=1, max_size=9
)


def filled(module: ModuleType, items: list[Any], limit: int = 10**6, **options: Any) -> Any:
    builder = module.BatchBuilder(limit, **options)
    for index, (key, value, timestamp, headers) in enumerate(items):
        assert builder.append(timestamp, key, value, headers) == index
    return builder


@given(items=rows, codec=st.sampled_from(list(Compression)))
def test_the_batch_is_the_one_that_the_codec_writes(
    builder_module: ModuleType, items: list[Any], codec: Compression
) -> None:
    builder = filled(builder_module, items, compression=codec)
    assert builder.record_count == len(items)
    assert builder.records() == items
    batch = builder.build(producer_id=9, producer_epoch=2, base_sequence=40, is_transactional=True)
    assert batch == encode_batch(
        items,
        compression=codec,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
        is_transactional=True,
    )
    assert builder.size == len(batch)
    assert builder.records() == items
    assert builder.max_timestamp == max(item[2] for item in items)


def test_size_is_exact_without_compression(builder_module: ModuleType) -> None:
    builder = builder_module.BatchBuilder(10_000)
    assert builder.size == HEADER_SIZE
    for i in range(200):
        assert builder.append(TIME + i, b"k" * (i % 7), b"v" * (i % 30), ()) == i
    expected = builder.size
    assert expected == len(builder.build())
    assert builder.uncompressed_size == expected - HEADER_SIZE
    assert builder.compressed_ratio == 1.0


def test_a_full_batch_takes_no_more_and_the_first_record_always_fits(
    builder_module: ModuleType,
) -> None:
    builder = builder_module.BatchBuilder(200)
    assert builder.append(TIME, None, b"v" * 1000) == 0
    assert builder.append(TIME, None, b"") == -1
    builder = builder_module.BatchBuilder(200)
    index = 0
    while builder.append(TIME, None, b"v" * 20) == index:
        index += 1
    assert index > 3
    assert builder.size <= 200
    assert builder.size + 28 > 200
    assert len(decode_batch(builder.build())) == index


def test_nothing_is_appended_once_closed_or_built(builder_module: ModuleType) -> None:
    builder = filled(builder_module, [(b"k", b"v", TIME, ())])
    builder.close()
    assert builder.closed
    assert builder.append(TIME, b"k", b"v") == -1
    built = filled(builder_module, [(b"k", b"v", TIME, ())])
    built.build()
    assert built.append(TIME, b"k", b"v") == -1
    assert built.record_count == 1


def test_building_again_writes_other_ids_into_the_same_batch(builder_module: ModuleType) -> None:
    builder = filled(builder_module, [(b"k", b"v", TIME, ())], compression=Compression.GZIP)
    first = builder.build(producer_id=1, producer_epoch=1, base_sequence=7)
    again = builder.build(producer_id=1, producer_epoch=2, base_sequence=0)
    assert again is first
    header = read_header(again)
    assert (header.producer_epoch, header.base_sequence) == (2, 0)
    assert crc_matches(again, 0, header)


def test_compression_is_guessed_from_the_ratio(builder_module: ModuleType) -> None:
    value = b"compressible" * 20
    plain = builder_module.BatchBuilder(4000)
    guessed = builder_module.BatchBuilder(
        4000, compression=Compression.ZSTD, compression_ratio=0.25
    )
    while plain.append(TIME, None, value) >= 0:
        pass
    while guessed.append(TIME, None, value) >= 0:
        pass
    assert guessed.record_count > 2 * plain.record_count
    assert guessed.size <= 4000
    batch = guessed.build()
    assert guessed.compressed_ratio == pytest.approx(
        (len(batch) - HEADER_SIZE) / guessed.uncompressed_size
    )
    assert guessed.compressed_ratio < 0.25


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
@pytest.mark.parametrize("built", [False, True])
def test_split_keeps_the_records_in_order(
    builder_module: ModuleType, codec: Compression, built: bool
) -> None:
    items = [(b"%d" % i, b"v" * 50, TIME + i, (("h", b"1"),)) for i in range(40)]
    builder = filled(builder_module, items, compression=codec)
    if built:
        builder.build()
    parts = builder.split(500)
    assert len(parts) > 1
    assert [row for part in parts for row in part.records()] == items
    assert all(part.record_count for part in parts)
    if codec is Compression.NONE:
        assert all(part.size <= 500 for part in parts)
    assert decode_batch(parts[1].build())[0].key == b"%d" % parts[0].record_count


def test_a_record_too_large_for_the_split_stands_alone(builder_module: ModuleType) -> None:
    items = [(None, b"a" * 10, TIME, ()), (None, b"b" * 900, TIME, ()), (None, b"c", TIME, ())]
    parts = filled(builder_module, items).split(300)
    assert [part.record_count for part in parts] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-2, None, b"v"), ValueError),
        ((2**63, None, b"v"), OverflowError),
        ((TIME, "text", b"v"), TypeError),
        ((TIME, None, 5), TypeError),
        ((TIME, None, b"v", [("name", "text")]), TypeError),
        ((TIME, None, b"v", [(b"name", b"x")]), AttributeError),
    ],
)
def test_a_record_that_cannot_be_written_leaves_the_batch_as_it_was(
    builder_module: ModuleType, arguments: Any, error: type[Exception]
) -> None:
    builder = filled(builder_module, [(b"k", b"v", TIME, ())])
    size = builder.size
    with pytest.raises(error):
        builder.append(*arguments)
    assert (builder.size, builder.record_count) == (size, 1)


def test_bytearrays_and_views_are_taken(builder_module: ModuleType) -> None:
    builder = builder_module.BatchBuilder(1000)
    builder.append(TIME, bytearray(b"k"), memoryview(b"v"), [("h", bytearray(b"x"))])
    assert builder.records() == [(b"k", b"v", TIME, (("h", b"x"),))]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_the_memory_of_a_batch_that_is_done_serves_another(
    builder_module: ModuleType, codec: Compression
) -> None:
    spares: list[bytearray] = []
    items = [(b"%d" % i, b"v" * 90, TIME + i, ()) for i in range(40)]
    first = filled(builder_module, items, compression=codec, spares=spares)
    expected = bytes(first.build())
    first.release()
    assert spares
    spare = spares[-1]
    second = filled(builder_module, items * 3, compression=codec, spares=spares)
    assert spare not in spares
    assert second.records() == items * 3
    assert len(decode_batch(second.build())) == 120
    third = filled(builder_module, items, compression=codec, spares=spares)
    assert third.build() == expected
    assert first.append(TIME, None, b"late") == -1


def test_memory_that_somebody_still_holds_is_not_given_to_another(
    builder_module: ModuleType,
) -> None:
    spares: list[bytearray] = []
    builder = filled(builder_module, [(None, b"v" * 900, TIME, ())], spares=spares)
    batch = builder.build()
    builder.release()
    assert spares == []
    assert decode_batch(batch)[0].value == b"v" * 900
    viewed = filled(builder_module, [(None, b"v" * 900, TIME, ())], spares=spares)
    view = memoryview(viewed.build())
    viewed.release()
    assert spares == []
    view.release()


def test_spares_are_few(builder_module: ModuleType) -> None:
    spares: list[bytearray] = []
    builders = [
        filled(builder_module, [(None, b"v" * 900, TIME, ())], spares=spares) for _ in range(100)
    ]
    for builder in builders:
        builder.build()
        builder.release()
    assert len(spares) == 32
