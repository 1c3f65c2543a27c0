"""Which batches are sent as they are, and which are combined."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from moldau.mirror.machine.pieces import Part, pieces_of
from moldau.mirror.machine.throttle import Throttle


class Builder:
    def __init__(self, limit_bytes: int, compression: Any) -> None:
        self.values: list[Any] = []
        self.compression = compression

    @property
    def size(self) -> int:
        return len(self.values)

    def append(self, timestamp: int, key: Any, value: Any, headers: Any) -> int:
        if len(self.values) == 4:
            return -1
        self.values.append(value)
        return len(self.values) - 1


class Maker:
    def copy(self, batch: Any) -> Any:
        return batch

    def builder(self, limit_bytes: int, compression: Any) -> Builder:
        return Builder(limit_bytes, compression)


def batch(*offsets: int, size: int = 10, codec: str = "none", copyable: bool = True) -> Any:
    records = [
        SimpleNamespace(offset=each, timestamp=each, key=None, value=each, headers=())
        for each in offsets
    ]
    return SimpleNamespace(
        base_offset=offsets[0],
        record_count=len(offsets),
        max_timestamp=offsets[-1],
        size=size,
        compression=codec,
        is_copyable=copyable,
        records=lambda: records,
    )


def sent(*batches: Any) -> list[tuple[str, tuple[Part, ...]]]:
    return [
        ("combined" if isinstance(each.content, Builder) else "copied", each.parts)
        for each in pieces_of(batches, Maker(), copy_min_bytes=100)
    ]


def test_large_batches_are_copied_and_small_ones_between_them_combined() -> None:
    assert sent(batch(0, 1, size=500), batch(2), batch(3), batch(4, 5, size=500)) == [
        ("copied", (Part(0, 0, 2),)),
        ("combined", (Part(0, 2, 2),)),
        ("copied", (Part(0, 4, 2),)),
    ]


def test_gaps_are_kept_apart() -> None:
    assert sent(batch(0, 2, 3, size=500, copyable=False)) == [
        ("combined", (Part(0, 0, 1), Part(1, 2, 2)))
    ]


def test_a_full_batch_and_another_compression_begin_a_new_one() -> None:
    assert sent(batch(0, 1, 2), batch(3, 4), batch(5, codec="lz4")) == [
        ("combined", (Part(0, 0, 4),)),
        ("combined", (Part(0, 4, 1),)),
        ("combined", (Part(0, 5, 1),)),
    ]


def test_a_throttle_lets_a_second_through_and_then_makes_wait() -> None:
    throttle = Throttle(1000)
    assert throttle.delay_s(1000, 0.0) == 0.0
    assert throttle.delay_s(500, 0.0) == 0.5
    assert throttle.delay_s(0, 10.0) == 0.0
    assert Throttle(-1).delay_s(10**9, 0.0) == 0.0
