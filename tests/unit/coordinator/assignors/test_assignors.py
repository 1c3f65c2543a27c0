"""Assignors give Kafka's answers, and hold what they promise for any group."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.coordinator.group.machine.assignors import ASSIGNORS, SHARE_ASSIGNORS
from moldau.broker.coordinator.group.machine.assignors.interface import (
    GroupSpec,
    MemberSubscription,
    topic_order,
)
from moldau.broker.coordinator.machine.topics import TopicFacts
from moldau.wire.errors import ApiError
from support.examples import examples

ALL = {**ASSIGNORS, **SHARE_ASSIGNORS}

# What the assignor classes of Kafka 4.3.0 answer; members and topics in the order of their ids.
VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "kafka_vectors.json").read_text("utf-8")
)

Result = dict[str, dict[UUID, frozenset[int]]]


def topic(number: int | str) -> UUID:
    return UUID(int=int(number))


def facts(counts: dict[int, int]) -> dict[UUID, TopicFacts]:
    return {
        topic(number): TopicFacts(topic(number), f"t{number}", (frozenset[str](),) * count)
        for number, count in counts.items()
    }


def partitions(found: dict[str, list[int]]) -> dict[UUID, frozenset[int]]:
    return {topic(number): frozenset(each) for number, each in found.items()}


@pytest.mark.parametrize("vector", VECTORS)
def test_the_assignment_is_kafkas(vector: dict[str, Any]) -> None:
    members = {
        member_id: MemberSubscription(
            instance_id, None, frozenset(topic(each) for each in topics), partitions(assigned)
        )
        for member_id, (instance_id, topics, assigned) in vector["members"].items()
    }
    counts = {int(number): count for number, count in vector["topics"].items()}
    expected = {member_id: partitions(each) for member_id, each in vector["kafka"].items()}
    assignor = ALL[vector["assignor"]]
    for given_members in (members, dict(reversed(members.items()))):
        spec = GroupSpec(given_members, vector["homogeneous"])
        assert assignor.assign(spec, facts(counts)) == expected


@st.composite
def groups(draw: st.DrawFn) -> tuple[GroupSpec, dict[int, int]]:
    counts = draw(st.dictionaries(st.integers(1, 8), st.integers(1, 12), min_size=1, max_size=5))
    homogeneous = draw(st.booleans())
    count = draw(st.integers(1, 9))
    members = {}
    for index in range(count):
        wanted = counts if homogeneous else draw(st.sets(st.sampled_from(sorted(counts))))
        topics = frozenset(topic(each) for each in wanted)
        members[f"member-{index}"] = MemberSubscription(None, None, topics, {})
    return GroupSpec(members, homogeneous), counts


def after(spec: GroupSpec, result: Result) -> GroupSpec:
    members = {
        member_id: member._replace(assigned=result[member_id])
        for member_id, member in spec.members.items()
    }
    return spec._replace(members=members)


def owners(result: Result) -> Counter[tuple[UUID, int]]:
    return Counter(
        (topic_id, partition)
        for found in result.values()
        for topic_id, each in found.items()
        for partition in each
    )


def load(found: dict[UUID, frozenset[int]]) -> int:
    return sum(map(len, found.values()))


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@settings(max_examples=examples(60), deadline=None)
@given(groups())
def test_every_partition_has_one_owner_who_subscribes_to_it(
    name: str, group: tuple[GroupSpec, dict[int, int]]
) -> None:
    spec, counts = group
    result = ASSIGNORS[name].assign(spec, facts(counts))
    assert result.keys() == spec.members.keys()
    subscribed = frozenset[UUID]().union(*(each.topic_ids for each in spec.members.values()))
    assert owners(result) == {
        (topic(number), partition): 1
        for number, count in counts.items()
        if topic(number) in subscribed
        for partition in range(count)
    }
    for member_id, found in result.items():
        assert found.keys() <= spec.members[member_id].topic_ids
        assert all(found.values())


@pytest.mark.parametrize("name", sorted(ALL))
@settings(max_examples=examples(60), deadline=None)
@given(groups())
def test_assigning_again_moves_nothing(name: str, group: tuple[GroupSpec, dict[int, int]]) -> None:
    spec, counts = group
    result = ALL[name].assign(spec, facts(counts))
    assert ALL[name].assign(after(spec, result), facts(counts)) == result


@settings(max_examples=examples(60), deadline=None)
@given(groups(), st.integers(1, 4))
def test_uniform_is_balanced_and_moves_only_what_newcomers_get(
    group: tuple[GroupSpec, dict[int, int]], newcomers: int
) -> None:
    spec, counts = group
    spec = spec._replace(
        homogeneous=True,
        members={
            member_id: member._replace(topic_ids=frozenset(topic(each) for each in counts))
            for member_id, member in spec.members.items()
        },
    )
    uniform = ASSIGNORS["uniform"]
    before = uniform.assign(spec, facts(counts))
    joined = dict(after(spec, before).members)
    for index in range(newcomers):
        joined[f"new-{index}"] = next(iter(joined.values()))._replace(assigned={})
    result = uniform.assign(spec._replace(members=joined), facts(counts))
    loads = [load(found) for found in result.values()]
    assert max(loads) - min(loads) <= 1
    kept = sum(
        len(each & before[member_id].get(topic_id, frozenset()))
        for member_id, found in result.items()
        if member_id in before
        for topic_id, each in found.items()
    )
    given_away = sum(load(result[f"new-{index}"]) for index in range(newcomers))
    assert kept == sum(counts.values()) - given_away


@settings(max_examples=examples(60), deadline=None)
@given(groups())
def test_simple_leaves_no_partition_and_no_subscriber_without(
    group: tuple[GroupSpec, dict[int, int]],
) -> None:
    spec, counts = group
    result = SHARE_ASSIGNORS["simple"].assign(spec, facts(counts))
    held = owners(result)
    for number, count in counts.items():
        subscribed = [k for k, each in spec.members.items() if topic(number) in each.topic_ids]
        if subscribed:
            assert all(held[topic(number), partition] for partition in range(count))
    assert all(result[k] for k, each in spec.members.items() if each.topic_ids)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("homogeneous", [True, False])
def test_an_odd_log_does_no_harm(name: str, homogeneous: bool) -> None:
    """Partitions that two have, or that do not exist, or of topics nobody wants."""
    odd = {topic(1): frozenset({0, 1, 7}), topic(9): frozenset({0})}
    member = MemberSubscription(None, None, frozenset({topic(1)}), odd)
    spec = GroupSpec({"a": member, "b": member, "c": member}, homogeneous)
    result = ASSIGNORS[name].assign(spec, facts({1: 3}))
    assert owners(result) == {(topic(1), partition): 1 for partition in range(3)}


def test_simple_assigns_only_what_is_assignable() -> None:
    member = MemberSubscription(None, None, frozenset({topic(1), topic(2)}), {})
    spec = GroupSpec({"a": member, "b": member}, True, {topic(1): frozenset({1, 2})})
    result = SHARE_ASSIGNORS["simple"].assign(spec, facts({1: 3, 2: 3}))
    assert owners(result) == {(topic(1), 1): 1, (topic(1), 2): 1}


def test_simple_takes_topics_from_those_who_no_longer_subscribe() -> None:
    gone = MemberSubscription(None, None, frozenset({topic(1)}), {topic(2): frozenset({0})})
    other = MemberSubscription(None, None, frozenset({topic(1), topic(3)}), {})
    spec = GroupSpec({"a": gone, "b": other}, False)
    result = SHARE_ASSIGNORS["simple"].assign(spec, facts({1: 2, 2: 1, 3: 1}))
    assert result == {
        "a": {topic(1): frozenset({0})},
        "b": {topic(1): frozenset({1}), topic(3): frozenset({0})},
    }


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_subscribed_topic_that_does_not_exist_is_refused(name: str, homogeneous: bool) -> None:
    member = MemberSubscription(None, None, frozenset({topic(9)}), {})
    with pytest.raises(ApiError, match="does not exist"):
        ALL[name].assign(GroupSpec({"a": member}, homogeneous), {})


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_group_without_members_or_subscriptions_gets_nothing(name: str) -> None:
    assert ALL[name].assign(GroupSpec({}, True), {}) == {}
    idle = MemberSubscription(None, None, frozenset(), {topic(1): frozenset({0})})
    for homogeneous in (True, False):
        spec = GroupSpec({"a": idle}, homogeneous)
        assert ALL[name].assign(spec, facts({1: 1})) == {"a": {}}


def test_topics_are_ordered_as_signed_halves() -> None:
    low, high = UUID(int=1 << 127), UUID(int=1 << 63)
    zero = UUID(int=0)
    assert sorted([zero, high, low], key=topic_order) == [low, high, zero]


def uniformly(members: int, partitions: int) -> Result:
    member = MemberSubscription(None, None, frozenset(topic(n) for n in range(1, 11)), {})
    spec = GroupSpec({f"member-{index}": member for index in range(members)}, True)
    return ASSIGNORS["uniform"].assign(spec, facts(dict.fromkeys(range(1, 11), partitions)))


def lines_run(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: object, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def test_an_assignment_costs_what_there_is_to_assign() -> None:
    assert {load(found) for found in uniformly(500, 100).values()} == {2}
    small = lines_run(lambda: uniformly(100, 20))
    large = lines_run(lambda: uniformly(500, 100))
    assert large < 7 * small
