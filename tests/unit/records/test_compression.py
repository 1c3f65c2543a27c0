"""Compressed bytes: read by other libraries, theirs read by us, bombs and rubbish refused."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable

import kafka.codec
import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire.compression import (
    Compression,
    CompressionError,
    DecompressedTooLargeError,
    compress,
    decompress,
)
from support.examples import examples

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = json.dumps([{"id": i, "name": f"user {i}", "v": i * 7919 % 1000} for i in range(4000)])
SAMPLES = {
    "one byte": b"a",
    "text over several blocks": TEXT.encode(),
    "random bytes": random.Random(3).randbytes(150_000),
    "zeros": bytes(1_000_000),
}


def zstd_stream(data: bytes) -> bytes:
    """A frame without the content size, as streaming writers make it."""
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(data) + writer.flush()


def zstd_read(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


READERS: list[tuple[Compression, Callable[[bytes], bytes]]] = [
    (Compression.GZIP, gzip.decompress),
    (Compression.GZIP, kafka.codec.gzip_decode),
    (Compression.SNAPPY, kafka.codec.snappy_decode),
    (Compression.LZ4, lz4.frame.decompress),
    (Compression.LZ4, kafka.codec.lz4_decode),
    (Compression.ZSTD, zstd_read),
    (Compression.ZSTD, kafka.codec.zstd_decode),
]
WRITERS: list[tuple[Compression, Callable[[bytes], bytes]]] = [
    (Compression.GZIP, gzip.compress),
    (Compression.GZIP, lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:])),
    (Compression.SNAPPY, snappy.compress),
    (Compression.SNAPPY, kafka.codec.snappy_encode),
    (
        Compression.SNAPPY,
        lambda data: kafka.codec.snappy_encode(data[:9]) + kafka.codec.snappy_encode(data[9:]),
    ),
    (Compression.LZ4, kafka.codec.lz4_encode),
    (
        Compression.LZ4,
        lambda data: lz4.frame.compress(
            data,
            block_linked=False,
            block_size=lz4.frame.BLOCKSIZE_MAX4MB,
            content_checksum=True,
            block_checksum=True,
            store_size=True,
        ),
    ),
    (Compression.ZSTD, zstandard.ZstdCompressor().compress),
    (Compression.ZSTD, zstd_stream),
]


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(("codec", "read"), READERS)
def test_others_read_ours(codec: Compression, read: Callable[[bytes], bytes], sample: str) -> None:
    data = SAMPLES[sample]
    assert read(compress(codec, data)) == data


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(("codec", "write"), WRITERS)
def test_we_read_others(codec: Compression, write: Callable[[bytes], bytes], sample: str) -> None:
    data = SAMPLES[sample]
    packed = write(data)
    assert decompress(codec, packed) == data
    assert decompress(codec, memoryview(bytearray(packed))) == data


@settings(deadline=None)
@given(codec=st.sampled_from(Compression), data=st.binary(max_size=5000))
def test_round_trip(codec: Compression, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize(
    ("codec", "low", "high"),
    [
        (Compression.GZIP, 1, 9),
        (Compression.LZ4, 9, 17),
        (Compression.ZSTD, -50, 19),
    ],
)
def test_level_buys_size(codec: Compression, low: int, high: int) -> None:
    data = SAMPLES["text over several blocks"]
    small, large = compress(codec, data, high), compress(codec, data, low)
    assert len(small) < len(large) < len(data)
    assert decompress(codec, small) == decompress(codec, large) == data


def test_gzip_level_minus_one_is_the_default() -> None:
    data = SAMPLES["text over several blocks"]
    assert len(compress(Compression.GZIP, data, -1)) == len(compress(Compression.GZIP, data, 6))


def test_lz4_frame_has_the_flags_java_expects() -> None:
    packed = compress(Compression.LZ4, SAMPLES["text over several blocks"])
    info = lz4.frame.get_frame_info(packed)
    assert (info["block_linked"], info["block_size"]) == (False, 65536)
    assert (info["block_checksum"], info["content_checksum"]) == (False, False)
    # What Kafka's own writer begins a frame with.
    assert packed[:7].hex() == "04224d18604082"


def test_snappy_has_the_xerial_header() -> None:
    packed = compress(Compression.SNAPPY, b"abc")
    assert packed[:16].hex() == "82534e4150505900" + "00000001" * 2


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("size_max", [999_999, 5000, 0])
def test_output_is_bounded(codec: Compression, size_max: int) -> None:
    packed = compress(codec, bytes(1_000_000))
    with pytest.raises(DecompressedTooLargeError, match=f"larger than {size_max} bytes"):
        decompress(codec, packed, size_max)
    assert len(decompress(codec, packed, 1_000_000)) == 1_000_000


def test_size_in_a_header_is_not_believed() -> None:
    packed = bytearray(compress(Compression.GZIP, b"abc"))
    packed[-4:] = b"\xff\xff\xff\x7f"
    with pytest.raises(CompressionError):
        decompress(Compression.GZIP, packed)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"rubbish, not compressed", id="rubbish"),
        pytest.param(lambda data: data[:3], id="three bytes"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: data[:-1], id="last byte missing"),
    ],
)
def test_damage_is_an_error(codec: Compression, damage: Callable[[bytes], bytes]) -> None:
    packed = compress(codec, SAMPLES["text over several blocks"])
    with pytest.raises(CompressionError):
        decompress(codec, damage(packed))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(lz4.frame.compress(bytes(10**6)), "linked blocks", id="linked"),
        pytest.param(b"\x04\x22\x4d\x18\xa0\x40\x82" + bytes(4), "version 2", id="version"),
        pytest.param(b"\x82SNAPPY\x00\x00\x00\x00\x01", "header is cut off", id="header"),
    ],
)
def test_frames_java_cannot_read(data: bytes, message: str) -> None:
    codec = Compression.SNAPPY if data[0] == 0x82 else Compression.LZ4
    with pytest.raises(CompressionError, match=message):
        decompress(codec, data)


@settings(deadline=None, max_examples=examples(300))
@given(codec=st.sampled_from(CODECS), seed=st.integers(0, 2**32))
def test_flipped_bits_only_raise_compression_errors(codec: Compression, seed: int) -> None:
    rng = random.Random(seed)
    packed = bytearray(compress(codec, TEXT.encode()[: rng.randint(1, 3000)]))
    for _ in range(rng.randint(1, 4)):
        packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
    try:
        out = decompress(codec, packed, 100_000)
    except CompressionError:
        return
    assert len(out) <= 100_000
