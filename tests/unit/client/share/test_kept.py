"""Records that the application keeps: polls do not wait for them, nor give them again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.client._records import ConsumerRecord
from moldau.client.errors import IllegalStateError, InvalidRecordStateError
from moldau.client.share.machine.acknowledgements import (
    GAP,
    Acknowledgements,
    AcknowledgeType,
    TopicIdPartition,
)
from moldau.client.share.machine.in_flight import InFlight

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
P0 = TopicIdPartition(UUID(int=7), "t", 0)


def record(offset: int) -> ConsumerRecord:
    return ConsumerRecord(P0.topic, P0.partition, offset, delivery_count=1)


def in_flight(*offsets: int, node_id: int = 1) -> InFlight:
    found = InFlight()
    found.add(P0, node_id, map(record, offsets), Acknowledgements())
    return found


def said(taken: Any) -> dict[int, int]:
    return {
        offset: kind for each in taken.values() for offset, kind in each.acknowledgements.items()
    }


def offsets(flight: InFlight) -> list[int]:
    return [each.offset for each in flight.records().get(P0.topic_partition, [])]


def test_a_kept_record_is_not_waited_for_and_not_given_again() -> None:
    flight = in_flight(0, 1)
    flight.keep(record(0))
    assert offsets(flight) == [1]
    flight.acknowledge(record(1), ACCEPT)
    assert flight.all_acknowledged
    assert said(flight.take()) == {1: ACCEPT}
    assert flight.is_empty
    assert flight.keeps
    flight.add(P0, 1, [record(2)], Acknowledgements())
    assert offsets(flight) == [2]


def test_what_was_said_about_a_record_is_forgotten_when_it_is_kept() -> None:
    flight = in_flight(0)
    flight.acknowledge(record(0), ACCEPT)
    flight.keep(record(0))
    assert flight.take() == {}
    assert flight.keeps


def test_a_record_that_was_not_given_cannot_be_kept() -> None:
    flight = in_flight(0)
    with pytest.raises(IllegalStateError, match="cannot be kept"):
        flight.keep(record(1))
    flight.keep(record(0))
    with pytest.raises(IllegalStateError, match="cannot be kept"):
        flight.keep(record(0))


def test_acknowledgements_of_kept_records_are_apart_from_those_of_a_fetch() -> None:
    flight = in_flight(0, 1)
    flight.keep(record(0))
    flight.acknowledge(record(0), RENEW)
    flight.acknowledge(record(1), ACCEPT)
    assert said(flight.take_of_kept()) == {0: RENEW}
    assert not flight.renews
    assert said(flight.take()) == {1: ACCEPT}
    flight.acknowledge(record(0), ACCEPT)
    assert said(flight.take()) == {0: ACCEPT}


def test_a_renewed_record_stays_kept_and_tells_how_long() -> None:
    flight = in_flight(0)
    flight.keep(record(0))
    flight.acknowledge(record(0), RENEW)
    (taken,) = flight.take_of_kept().values()
    flight.on_acknowledged(P0, taken.acknowledgements, None, 20)
    assert (flight.keeps, flight.renews, flight.is_empty) == (True, False, True)
    assert flight.lock_timeout_ms == 20


@pytest.mark.parametrize("kind", [ACCEPT, RELEASE, REJECT])
def test_a_record_is_kept_until_a_node_has_agreed(kind: AcknowledgeType) -> None:
    flight = in_flight(0)
    flight.keep(record(0))
    flight.acknowledge(record(0), kind)
    (taken,) = flight.take().values()
    flight.on_acknowledged(P0, taken.acknowledgements, InvalidRecordStateError(), None)
    assert flight.keeps
    flight.acknowledge(record(0), kind)
    (taken,) = flight.take().values()
    flight.on_acknowledged(P0, taken.acknowledgements, None, None)
    assert not flight.keeps
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        flight.acknowledge(record(0), kind)


def test_a_dropped_record_is_not_spoken_of() -> None:
    flight = in_flight(0)
    flight.keep(record(0))
    flight.acknowledge(record(0), RENEW)
    flight.drop(record(0))
    flight.drop(record(0))
    assert flight.take() == {}
    assert not flight.keeps


def test_a_kept_record_that_is_delivered_again_is_in_flight() -> None:
    flight = in_flight(0)
    flight.keep(record(0))
    flight.acknowledge(record(0), ACCEPT)
    flight.add(P0, 1, [record(0)], Acknowledgements())
    assert not flight.keeps
    assert offsets(flight) == [0]
    assert flight.take() == {}


def test_kept_records_are_lost_when_another_node_leads() -> None:
    flight = in_flight(0)
    flight.keep(record(0))
    flight.add(P0, 2, [record(5)], Acknowledgements())
    assert not flight.keeps
    with pytest.raises(IllegalStateError):
        flight.acknowledge(record(0), RENEW)


class Keeping(RuleBasedStateMachine):
    """Against sets of offsets: those in flight, those kept, and those that were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.flight = InFlight()
        self.next = 0
        self.given: set[int] = set()
        self.acknowledged: dict[int, int] = {}
        self.kept: set[int] = set()
        self.of_kept: dict[int, int] = {}
        self.sent: list[dict[int, int]] = []

    @rule(count=some.integers(1, 4), gap=some.booleans())
    def deliver(self, count: int, gap: bool) -> None:
        new = range(self.next, self.next + count)
        gaps = Acknowledgements([(self.next + count, GAP)] if gap else [])
        self.flight.add(P0, 1, map(record, new), gaps)
        self.given.update(new)
        self.acknowledged.update(dict(gaps.items()))
        self.next += count + gap

    @precondition(lambda self: self.given)
    @rule(data=some.data(), kind=some.sampled_from([ACCEPT, RELEASE, REJECT]))
    def acknowledge(self, data: some.DataObject, kind: AcknowledgeType) -> None:
        offset = data.draw(some.sampled_from(sorted(self.given)))
        self.flight.acknowledge(record(offset), kind)
        self.acknowledged[offset] = kind

    @precondition(lambda self: self.given)
    @rule(data=some.data())
    def keep(self, data: some.DataObject) -> None:
        offset = data.draw(some.sampled_from(sorted(self.given)))
        self.flight.keep(record(offset))
        self.given.discard(offset)
        self.acknowledged.pop(offset, None)
        self.kept.add(offset)

    @precondition(lambda self: self.kept)
    @rule(data=some.data(), kind=some.sampled_from(list(AcknowledgeType)))
    def acknowledge_kept(self, data: some.DataObject, kind: AcknowledgeType) -> None:
        offset = data.draw(some.sampled_from(sorted(self.kept)))
        self.flight.acknowledge(record(offset), kind)
        self.of_kept[offset] = kind

    @precondition(lambda self: self.kept)
    @rule(data=some.data())
    def drop(self, data: some.DataObject) -> None:
        offset = data.draw(some.sampled_from(sorted(self.kept)))
        self.flight.drop(record(offset))
        self.kept.discard(offset)
        self.of_kept.pop(offset, None)

    @rule()
    def poll(self) -> None:
        assert said(self.flight.take_of_kept()) == self.of_kept
        self.sent.append(self.of_kept)
        self.of_kept = {}
        self.commit()

    @rule()
    def commit(self) -> None:
        taken = self.acknowledged | self.of_kept
        assert said(self.flight.take()) == taken
        self.given -= taken.keys()
        self.acknowledged, self.of_kept = {}, {}
        self.sent.append(taken)

    @precondition(lambda self: self.sent)
    @rule(agreed=some.booleans())
    def answer(self, agreed: bool) -> None:
        taken = self.sent.pop(0)
        error = None if agreed else InvalidRecordStateError()
        self.flight.on_acknowledged(P0, Acknowledgements(taken.items()), error, None)
        gone = {offset for offset, kind in taken.items() if agreed and kind != RENEW}
        self.kept -= gone
        self.of_kept = {o: kind for o, kind in self.of_kept.items() if o not in gone}

    @invariant()
    def is_as_said(self) -> None:
        assert offsets(self.flight) == sorted(self.given)
        assert self.flight.is_empty == (not self.given)
        assert self.flight.all_acknowledged == (self.given <= self.acknowledged.keys())
        assert self.flight.keeps == bool(self.kept)
        assert not self.flight.renews


TestKeeping = Keeping.TestCase
