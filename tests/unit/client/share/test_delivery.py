"""What becomes of each acquired offset in a response."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from moldau.client.errors import CorruptRecordError, RecordDeserializationError
from moldau.client.share.machine.acknowledgements import GAP, AcknowledgeType, TopicIdPartition
from moldau.client.share.machine.delivery import Delivery, Portion
from moldau.wire.records import Record, encode_batch

PARTITION = TopicIdPartition(UUID(int=7), "t", 0)
RELEASE, REJECT = AcknowledgeType.RELEASE, AcknowledgeType.REJECT


def batch(*offsets: int, values: dict[int, bytes] | None = None) -> bytes:
    """Records at these offsets."""
    found = [
        Record(
            offset=offset,
            timestamp=1000,
            key=None,
            value=(values or {}).get(offset, b"v%d" % offset),
            headers=(),
        )
        for offset in offsets
    ]
    return encode_batch(found)


def delivery(data: bytes, *acquired: tuple[int, int, int], **options: Any) -> Delivery:
    return Delivery(PARTITION, 1, data, acquired, lock_timeout_ms=30_000, **options)


def offsets(portion: Portion) -> list[int]:
    return [record.offset for record in portion.records]


def said(portion: Portion) -> dict[int, int]:
    return dict(portion.acknowledgements.items())


def test_records_carry_how_often_they_were_delivered() -> None:
    found = delivery(batch(0, 1, 2, 3), (0, 1, 1), (2, 3, 4))
    portion = found.take(10)
    assert offsets(portion) == [0, 1, 2, 3]
    assert [record.delivery_count for record in portion.records] == [1, 1, 4, 4]
    assert said(portion) == {}
    assert found.is_done


def test_what_is_not_acquired_is_not_given() -> None:
    portion = delivery(batch(0, 1, 2, 3, 4), (1, 1, 1), (3, 3, 1)).take(10)
    assert offsets(portion) == [1, 3]


def test_acquired_offsets_without_a_record_are_gaps() -> None:
    found = delivery(batch(0, 1) + batch(4), (0, 5, 1))
    portion = found.take(10)
    first = said(portion)
    assert offsets(portion) == [0, 1, 4]
    assert first | said(found.take(10)) == {2: GAP, 3: GAP, 5: GAP}
    assert found.is_done


def test_nothing_but_gaps() -> None:
    found = delivery(b"", (3, 5, 1))
    portion = found.take(10)
    assert offsets(portion) == []
    assert said(portion) == {3: GAP, 4: GAP, 5: GAP}
    assert found.is_done


def test_portions_go_on_where_the_last_ended() -> None:
    found = delivery(batch(0, 1, 2, 3, 4), (0, 4, 1))
    assert offsets(found.take(2)) == [0, 1]
    assert offsets(found.take(2)) == [2, 3]
    assert not found.is_done
    assert offsets(found.take(2)) == [4]
    assert found.is_done


def refuse(topic: str, data: bytes | None, headers: Any) -> Any:
    if data == b"bad":
        raise ValueError("bad")
    return data


def test_a_record_that_cannot_be_deserialized_is_released() -> None:
    found = delivery(batch(0, 1, 2, values={1: b"bad"}), (0, 2, 1), value_deserializer=refuse)
    first = found.take(10)
    assert offsets(first) == [0]
    assert first.error is None
    second = found.take(10)
    assert isinstance(second.error, RecordDeserializationError)
    assert second.error.offset == 1
    assert said(second) == {1: RELEASE}
    assert second.unreadable == {1}
    third = found.take(10)
    assert offsets(third) == [2]
    assert found.is_done


def test_a_record_that_is_not_acquired_need_not_be_readable() -> None:
    found = delivery(
        batch(0, 1, 2, values={1: b"bad"}), (0, 0, 1), (2, 2, 1), value_deserializer=refuse
    )
    given = []
    while not found.is_done:
        portion = found.take(10)
        assert portion.error is None
        given += offsets(portion)
    assert given == [0, 2]


def test_a_corrupt_batch_is_rejected() -> None:
    broken = bytearray(batch(2, 3))
    broken[-1] ^= 0xFF
    found = delivery(batch(0, 1) + bytes(broken) + batch(4), (0, 2, 1), (3, 4, 1))
    assert offsets(found.take(10)) == [0, 1]
    portion = found.take(10)
    assert isinstance(portion.error, CorruptRecordError)
    assert said(portion) == {2: REJECT, 3: REJECT}
    assert portion.unreadable == {2, 3}
    assert offsets(found.take(10)) == [4]
    assert found.is_done


def test_an_offset_that_is_acquired_twice_counts_once() -> None:
    portion = delivery(batch(0, 1, 2), (0, 1, 1), (1, 2, 5)).take(10)
    assert [(each.offset, each.delivery_count) for each in portion.records] == [
        (0, 1),
        (1, 1),
        (2, 5),
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_every_acquired_offset_is_in_one_portion(count: int) -> None:
    data = batch(0, 1, 2) + batch(5, 6, values={6: b"bad"}) + batch(9)
    found = delivery(data, (1, 3, 1), (5, 10, 2), value_deserializer=refuse)
    seen: list[int] = []
    while not found.is_done:
        portion = found.take(count)
        assert len(portion.records) <= count
        seen += offsets(portion) + list(said(portion))
    assert sorted(seen) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
