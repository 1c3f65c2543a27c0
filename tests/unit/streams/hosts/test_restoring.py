"""What a restorer does when the cluster does not answer, or the local state is of another one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import pytest

from moldau.client.consumer import ConsumerRecords
from moldau.client.errors import KafkaTimeoutError
from moldau.client.topics import TopicPartition
from moldau.streams.hosts import restoring
from moldau.streams.hosts.administration import Administration, Bounds
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.hosts.restoring import Restorer
from support.streams_hosted import hosted

END = 5


class Cluster:
    """Its changelogs have `END` records; it answers the calls that are not in `timeouts`."""

    def __init__(self, *timeouts: int) -> None:
        self.asked: list[list[TopicPartition]] = []
        self._timeouts = timeouts

    def bounds(
        self, partitions: Collection[TopicPartition], *, transactional: bool
    ) -> dict[TopicPartition, Bounds]:
        self.asked.append(sorted(partitions))
        if len(self.asked) in self._timeouts:
            raise KafkaTimeoutError("no answer")
        return {key: Bounds(0, END, END) for key in partitions}


class SlowConsumer:
    """Reads nothing, and gets no answer at first."""

    def __init__(self, settings: object) -> None:
        self._assigned: set[TopicPartition] = set()
        self._polls = 0

    def assignment(self) -> set[TopicPartition]:
        return self._assigned

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._assigned = set(partitions)

    def seek(self, key: TopicPartition, offset: int) -> None:
        pass

    def poll(self, timeout: float) -> ConsumerRecords[Any, Any]:
        self._polls += 1
        if self._polls == 1:
            raise KafkaTimeoutError("no answer")
        return ConsumerRecords({}, {})


def restorer(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Restorer:
    monkeypatch.setattr(restoring, "Consumer", SlowConsumer)
    admin = cast(Administration, cluster)
    return Restorer({}, admin, exactly_once=True, listener=lambda: None)


def at(partition: int, position: int) -> HostedTask:
    """A task whose store has the changelog up to this offset."""
    made = hosted(partition)
    made.logs[0].position = position
    return made


def repeated(made: Restorer) -> None:
    """As a stream thread does: until there is an answer."""
    while True:
        try:
            made.poll(0)
            return
        except KafkaTimeoutError:
            continue


def test_a_task_is_found_to_be_ahead_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = restorer(Cluster(2), monkeypatch)
    ahead, behind = at(0, END + 1), at(1, 0)
    for task in (ahead, behind):
        made.add_active(task, {})
    repeated(made)
    assert made.take_corrupted() == [ahead]
    assert made.has_active


def test_a_task_that_is_complete_is_not_forgotten_when_others_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = restorer(Cluster(), monkeypatch)
    complete, behind = at(0, END), at(1, 0)
    for task in (complete, behind):
        made.add_active(task, {})
    repeated(made)
    assert made.take_complete() == [complete]


def test_a_closed_task_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    made = restorer(Cluster(), monkeypatch)
    complete, ahead = at(0, END), at(1, END + 1)
    for task in (complete, ahead):
        made.add_active(task, {})
    made.poll(0)
    for task in (complete, ahead):
        made.remove(task)
    assert (made.take_complete(), made.take_corrupted()) == ([], [])
    assert not made.has_active
