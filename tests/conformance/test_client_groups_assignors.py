"""The client's assignors give what Apache Kafka's own classes give for the same group.

Kafka's are driven by tests/java/AssignorDecisions.java. Groups are random: topics of several sizes
on racks or none, static and dynamic members with the same or different subscriptions, what they
owned before in this or older generations, partitions that two of them claim.
"""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Iterator

import pytest

from moldau.client.consumer.assignors.assignor import Assignor
from moldau.client.consumer.assignors.interface import Subscription
from moldau.client.consumer.assignors.resolve import resolve_assignors
from moldau.client.machine.metadata import EMPTY, ClusterMetadata, PartitionView, TopicView
from moldau.client.topics import Node, TopicPartition
from moldau.wire.uuids import ZERO_UUID
from support.java import program

NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")
CASES_PER_ASSIGNOR = 400


class Case:
    """One group, as ours sees it and as a line for Kafka's."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._random = random.Random(f"{name} {seed}")
        has_racks = self._random.random() < 0.4
        self.topics = self._topics(has_racks)
        self.members = self._members(has_racks)

    def _topics(self, has_racks: bool) -> dict[str, list[list[str]]]:
        topics = {}
        for index in range(self._random.randint(1, 5)):
            name = self._random.choice(("orders", "t", "payments-eu", "Zz.")) + str(index)
            racks = [
                self._random.sample(("r0", "r1", "r2"), self._random.randint(1, 2))
                if has_racks
                else [""]
                for _ in range(self._random.randint(1, 12))
            ]
            topics[name] = racks
        return topics

    def _members(self, has_racks: bool) -> dict[str, Subscription]:
        chance = self._random
        everything = sorted(self.topics)
        alike = chance.random() < 0.5
        members: dict[str, Subscription] = {}
        claimed: set[TopicPartition] = set()
        for index in range(chance.randint(1, 14)):
            topics = (
                everything
                if alike
                else chance.sample(everything, chance.randint(1, len(everything)))
            )
            generation = chance.choice((-1, 3, 4, 4, 4))
            owned = self._owned(topics if generation >= 0 else [], claimed)
            members[f"consumer-{chance.randrange(10**6)}-{index}"] = Subscription(
                tuple(topics),
                self._user_data(owned, generation),
                owned,
                None if generation < 0 else generation,
                chance.choice(("r0", "r1", "r2", None)) if has_racks else None,
                f"instance-{index % 7}-{index}" if chance.random() < 0.3 else None,
            )
        return members

    def _owned(self, topics: list[str], claimed: set[TopicPartition]) -> tuple[TopicPartition, ...]:
        keys = [
            TopicPartition(topic, index)
            for topic in topics
            for index in range(len(self.topics[topic]))
        ]
        wanted = self._random.sample(keys, self._random.randint(0, min(len(keys), 6)))
        # Seldom what another has too.
        owned = [key for key in wanted if key not in claimed or self._random.random() < 0.1]
        claimed.update(owned)
        return tuple(owned)

    def _user_data(self, owned: tuple[TopicPartition, ...], generation: int) -> bytes | None:
        if self.name == "cooperative-sticky":
            return struct.pack(">i", generation)
        if self.name != "sticky" or self._random.random() < 0.1:
            return None
        data = struct.pack(">i", len(owned))
        for key in owned:
            topic = key.topic.encode()
            data += struct.pack(f">h{len(topic)}sii", len(topic), topic, 1, key.partition)
        # The first version of it had no generation.
        return data + (struct.pack(">i", generation) if self._random.random() < 0.9 else b"")

    @property
    def metadata(self) -> ClusterMetadata:
        nodes = {
            index: Node(index, "h", 1, rack) for index, rack in enumerate((None, "r0", "r1", "r2"))
        }
        ids = {node.rack or "": index for index, node in nodes.items()}
        views = {}
        for topic, partitions in self.topics.items():
            replicas = [tuple(ids[rack] for rack in racks) for racks in partitions]
            views[topic] = TopicView(
                topic,
                ZERO_UUID,
                False,
                {i: PartitionView(each[0], 1, each, each, ()) for i, each in enumerate(replicas)},
            )
        return EMPTY._replace(nodes=nodes, topics=views)

    @property
    def line(self) -> str:
        topics = ";".join(
            f"{topic}={','.join('+'.join(racks) for racks in partitions)}"
            for topic, partitions in self.topics.items()
        )
        members = ";".join(
            "|".join(
                (
                    member_id,
                    each.group_instance_id or "",
                    each.rack_id or "",
                    ",".join(each.topics),
                    ",".join(f"{key.topic}:{key.partition}" for key in each.owned_partitions),
                    str(-1 if each.generation_id is None else each.generation_id),
                    (each.user_data or b"").hex(),
                )
            )
            for member_id, each in self.members.items()
        )
        return f"{self.name}\t{topics}\t{members}"

    def decide(self) -> str:
        assigned = _assignor(self.name).assign(self.metadata, self.members)
        return ";".join(
            f"{member_id}={','.join(f'{key.topic}:{key.partition}' for key in each.partitions)}"
            for member_id, each in sorted(assigned.items())
        )


def _assignor(name: str) -> Assignor:
    return resolve_assignors([name], {})[0]


def _cases() -> Iterator[Case]:
    for name in NAMES:
        for seed in range(CASES_PER_ASSIGNOR):
            yield Case(name, seed)


@pytest.fixture(scope="module")
def kafkas_answers() -> dict[str, list[str]]:
    lines = "".join(f"{case.line}\n" for case in _cases())
    ended = subprocess.run(
        program("AssignorDecisions.java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"),
        input=lines,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    answers = [line for line in ended.stdout.splitlines() if line.startswith("consumer-")]
    assert len(answers) == len(NAMES) * CASES_PER_ASSIGNOR, ended.stderr[-3000:]
    return {
        name: answers[index * CASES_PER_ASSIGNOR : (index + 1) * CASES_PER_ASSIGNOR]
        for index, name in enumerate(NAMES)
    }


@pytest.mark.parametrize("name", NAMES)
def test_assignments_are_kafkas(name: str, kafkas_answers: dict[str, list[str]]) -> None:
    for seed, theirs in enumerate(kafkas_answers[name]):
        case = Case(name, seed)
        assert case.decide() == theirs, case.line
