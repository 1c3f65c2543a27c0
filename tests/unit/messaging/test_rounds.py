"""Rounds: what a broker refuses is found although it refuses its neighbours with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from moldau.messaging.machine.rounds import Rounds


@given(some.dictionaries(some.integers(0, 3), some.lists(some.booleans(), max_size=40)))
def test_each_one_is_taken_or_refused_once(partitions: dict[int, list[bool]]) -> None:
    rounds = Rounds({key: range(len(fine)) for key, fine in partitions.items()})
    taken: dict[int, list[int]] = {key: [] for key in partitions}
    refused: dict[int, list[int]] = {key: [] for key in partitions}
    count = 0
    while asked := rounds.next():
        count += 1
        for key, group in asked.items():
            if all(partitions[key][each] for each in group):
                taken[key] += group
            elif (found := rounds.refused(key, group)) is not None:
                refused[key].append(found)
    for key, fine in partitions.items():
        assert taken[key] == [number for number, good in enumerate(fine) if good]
        assert refused[key] == [number for number, good in enumerate(fine) if not good]
    bad_max = max((fine.count(False) for fine in partitions.values()), default=0)
    assert count <= 1 + bad_max * 2 * (40).bit_length()


def test_nothing_is_asked_when_there_is_nothing() -> None:
    assert Rounds[int]({}).next() == {}
