"""Commits that are not answered: polls, closing and commits end within their time all the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moldau.client.consumer import Consumer, ConsumerRebalanceListener
from moldau.client.errors import KafkaTimeoutError, WakeupError
from moldau.client.topics import TopicPartition
from moldau.testing import Broker
from support.group_members import Member, Ownership
from support.waiting import eventually

_numbers = itertools.count(1)
PARTITIONS = 2
PROTOCOLS = [
    pytest.param({"partition_assignment_strategy": "range"}, id="eager"),
    pytest.param({"partition_assignment_strategy": "cooperative-sticky"}, id="cooperative"),
    pytest.param({"group_protocol": "consumer"}, id="consumer"),
]
#: So long that whoever waits for an answer waits for ever.
FOR_EVER_MS = 600_000


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    config = {
        "group.initial.rebalance.delay.ms": 0,
        # Nobody expires, however busy the machine is.
        "group.consumer.max.session.timeout.ms": FOR_EVER_MS,
        "group.consumer.session.timeout.ms": FOR_EVER_MS,
        "group.consumer.heartbeat.interval.ms": 100,
        "group.consumer.min.heartbeat.interval.ms": 100,
    }
    with Broker(config=config) as running:
        yield running


class Listener(ConsumerRebalanceListener):
    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership
        self.revoked: list[TopicPartition] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.ownership.give("first", partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.revoked += partitions
        self.ownership.take("first", partitions)


class Group:
    """A first member that the test polls, which has read everything, and others in threads."""

    def __init__(self, node: Broker, settings: dict[str, Any]) -> None:
        number = next(_numbers)
        self.node = node
        self.topic = self.group_id = f"revocation-{number}"
        node.create_topic(self.topic, partitions=PARTITIONS)
        self.ownership = Ownership()
        self.settings = {
            "bootstrap_servers": node.bootstrap_servers,
            "group_id": self.group_id,
            "auto_commit_interval_ms": FOR_EVER_MS,
            "request_timeout_ms": FOR_EVER_MS,
            "default_api_timeout_ms": FOR_EVER_MS,
            "retry_backoff_ms": 20,
            "reconnect_backoff_ms": 20,
        } | settings
        if "group_protocol" not in settings:
            self.settings |= {"heartbeat_interval_ms": 100, "session_timeout_ms": FOR_EVER_MS}
        self.sent = 0
        self.listener = Listener(self.ownership)
        self.first = Consumer(client_id="first", auto_offset_reset="earliest", **self.settings)
        self.first.subscribe([self.topic], self.listener)
        self.send()
        eventually(lambda: self.poll() and self.read == self.sent, what="all was read")

    @property
    def read(self) -> int:
        return len(self.ownership.read)

    def send(self) -> None:
        for partition in range(PARTITIONS):
            self.node.produce(self.topic, "a", "b", "c", partition=partition)
            self.sent += 3

    def poll(self, timeout: float = 0.05) -> bool:
        self.ownership.note_read(self.first.poll(timeout))
        return True

    def second(self) -> Member:
        return Member(self.ownership, "second", [self.topic], **self.settings)


def ends(work: Callable[[], Any]) -> Any:
    """The result of what must not wait for an answer that does not come."""
    pool = ThreadPoolExecutor(1)
    ended = pool.submit(work)
    pool.shutdown(wait=False)
    return ended.result(60)


@pytest.mark.parametrize("settings", PROTOCOLS)
def test_a_poll_ends_while_the_commit_before_a_revocation_waits(
    node: Broker, settings: dict[str, Any]
) -> None:
    group = Group(node, settings)
    read = group.read
    with group.first, node.drop("OffsetCommit", client_id="first") as fault:
        with group.second():

            def stuck() -> bool:
                return ends(group.poll) and fault.hits > 0

            eventually(stuck, what="what is to be revoked is being committed")
            # What is given up is read no more, but nobody else has it before it is committed.
            group.send()
            for _ in range(3):
                ends(group.poll)
            assert group.listener.revoked == []
            kept = set(range(PARTITIONS)) - {key.partition for key in going(group)}
            assert {each[1] for each in group.ownership.read[read:]} <= kept
            fault.remove()
            eventually(lambda: group.poll() and shared(group), what="both have a share")
            eventually(lambda: group.poll() and group.read >= group.sent, what="all was read")
        # What was consumed is committed before it changes hands: nothing is read twice.
        assert len(group.ownership.read) == len(set(group.ownership.read)) == group.sent
        assert group.ownership.faults == []


def going(group: Group) -> set[TopicPartition]:
    """Partitions that are assigned and not fetched since they are about to go."""
    states = group.first._core.subscription.assignment
    return {key for key, state in states.items() if state.pending_revocation}


def shared(group: Group) -> bool:
    return group.ownership.counts() == {"first": 1, "second": 1}


@pytest.mark.parametrize("settings", PROTOCOLS)
def test_a_wakeup_ends_a_poll_while_that_commit_waits(
    node: Broker, settings: dict[str, Any]
) -> None:
    group = Group(node, settings)
    with (
        group.first,
        node.drop("OffsetCommit", client_id="first") as fault,
        group.second(),
        ThreadPoolExecutor(1) as pool,
    ):
        polling = pool.submit(group.poll, 600)
        try:
            eventually(lambda: fault.hits > 0, what="it is being committed")
            group.first.wakeup()
            with pytest.raises(WakeupError):
                polling.result(60)
        finally:
            fault.remove()
            if not polling.done():
                group.first.wakeup()


@pytest.mark.parametrize("settings", PROTOCOLS)
def test_commits_and_closing_end_within_their_own_time(
    node: Broker, settings: dict[str, Any]
) -> None:
    group = Group(node, settings)
    with node.drop("OffsetCommit", client_id="first"):
        with pytest.raises(KafkaTimeoutError, match="commit of offsets was not answered"):
            ends(lambda: group.first.commit_sync(timeout=0.2))
        ends(lambda: group.first.close(timeout=0.2))
    assert node.group(group.group_id).committed() == {}
