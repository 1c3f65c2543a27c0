"""Numbers that Kafka 4.3.0 computes for the same topics and groups (`Utils` there)."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker.coordinator.group.machine.metadata_hash import group_hash, topic_hash
from moldau.broker.coordinator.machine.topics import TopicFacts

# (topic id, name, racks of each partition, Kafka's hash)
TOPICS: list[tuple[str, str, list[list[str]], int]] = [
    ("bb0f1798-a377-3418-bfc9-945a02770b39", "a", [], -5981226871872812230),
    ("e5b3f440-be1a-4792-b54b-190491b3ca5d", "orders", [], 1939737753612630876),
    ("1ee88ee9-40ae-7fdf-d993-e7beb252edfc", "a.b-c_d", [[]], 2825284519392304331),
    (
        "edc26f16-1bfb-a4ce-a440-e2651db344e9",
        "x" * 249,
        [
            [""],
            ["😀rack", "červený"],
            ["z" * 40, "červený"],
            ["červený", "eu-west-1a"],
            ["", "😀rack"],
            ["r1", ""],
            ["červený", ""],
        ],
        8557698719572709335,
    ),
    (
        "85c8a30a-9849-6cb6-1a64-d9ffee20a422",
        "topic-with-more-than-sixteen",
        [[]],
        4122787925734933000,
    ),
    (
        "92f6f922-f320-471c-1a8c-7157083f3910",
        "a.b-c_d",
        [
            ["r1", ""],
            ["😀rack", ""],
            ["červený", "r1"],
            ["", "😀rack"],
            ["eu-west-1a", "r1"],
            ["z" * 40, "červený"],
            [""],
        ],
        3419376434836172296,
    ),
    ("c2cba713-f931-31e7-bc3c-7e093d18e7f1", "x" * 249, [], 1093560374927688895),
    ("07c924e1-b559-4fa5-b536-9c1999bb252a", "a", [], 3097169466488436060),
    ("445cbeb7-a1a7-0a52-9e7e-a36f98dd3859", "orders", [[], [], []], -1173028604882649012),
    ("5d986c31-7cac-5713-bc40-b2ea164abccf", "a.b-c_d", [["eu-west-1a"]], 4364014520628601727),
    (
        "4b645a31-0d7c-63dc-012d-9eea4aedc550",
        "x" * 249,
        [["červený", "r1", "z" * 40], ["", "eu-west-1a"], ["z" * 40, ""]],
        -9170932767217933081,
    ),
    (
        "f82366c1-b2d3-2518-cfdb-6063589cb780",
        "topic-with-more-than-sixteen",
        [
            ["červený", ""],
            ["😀rack", "z" * 40],
            ["z" * 40, "červený"],
            ["eu-west-1a", "😀rack"],
            ["😀rack", "eu-west-1a"],
            ["eu-west-1a", "r1"],
            ["", "😀rack"],
        ],
        2703038298609535741,
    ),
    (
        "a48ecad9-0dfb-75bc-a4f0-12b8370d854b",
        "a",
        [[], [], [], [], [], [], []],
        -8371465406056197353,
    ),
    (
        "e83911dc-253e-19bf-72e9-25bdf0af9d2e",
        "orders",
        [["r1", "😀rack", ""]],
        -7012465342182261535,
    ),
]

GROUPS: list[tuple[dict[str, int], int]] = [
    ({}, 0),
    (
        {
            "t10": 5559288513812421660,
            "t86": -1495278231824462885,
            "t55": 5814864350660807732,
            "t18": 8736763197597914898,
        },
        5962980714500096522,
    ),
    (
        {
            "t52": -6281752673180086552,
            "t87": 5841786519015803821,
            "t65": -3997507337743700691,
            "t7": 4948155545441641939,
            "t17": 1455292628264303859,
            "t70": 4747945984502207847,
            "t80": 3787895918475611538,
        },
        -343991277652818575,
    ),
]


def facts(topic_id: str, name: str, racks: list[list[str]]) -> TopicFacts:
    return TopicFacts(UUID(topic_id), name, tuple(frozenset(each) for each in racks))


@pytest.mark.parametrize(("topic_id", "name", "racks", "expected"), TOPICS)
def test_a_topics_hash_is_kafkas(
    topic_id: str, name: str, racks: list[list[str]], expected: int
) -> None:
    assert topic_hash(facts(topic_id, name, racks)) == expected


@pytest.mark.parametrize(("topics", "expected"), GROUPS)
def test_a_groups_hash_is_kafkas(topics: dict[str, int], expected: int) -> None:
    assert group_hash(topics) == expected
    assert group_hash(dict(reversed(topics.items()))) == expected


def test_the_hash_changes_with_everything_an_assignment_depends_on() -> None:
    topic_id = "00000000-0000-0001-0000-000000000002"
    hashes = [
        topic_hash(facts(topic_id, "a", [["r"], ["s"]])),
        topic_hash(facts("00000000-0000-0001-0000-000000000003", "a", [["r"], ["s"]])),
        topic_hash(facts(topic_id, "b", [["r"], ["s"]])),
        topic_hash(facts(topic_id, "a", [["r"]])),
        topic_hash(facts(topic_id, "a", [["s"], ["r"]])),
        topic_hash(facts(topic_id, "a", [["r", "s"], []])),
    ]
    assert len(set(hashes)) == len(hashes)
