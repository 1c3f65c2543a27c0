"""A task in a thread: what may be its own of the records that were not delivered."""

from __future__ import annotations

from moldau.client.topics import TopicPartition
from support.streams_hosted import hosted


def test_a_changelog_belongs_to_the_task_of_its_partition() -> None:
    found = hosted(1)
    assert found.writes_to([TopicPartition("app-counts-changelog", 1)])
    assert not found.writes_to([TopicPartition("app-counts-changelog", 0)])


def test_any_task_that_wrote_to_a_topic_may_have_written_to_each_partition() -> None:
    found = hosted(1)
    found.meter.produced["out"] = [0, 0]
    assert not found.writes_to([TopicPartition("out", 0)])
    found.meter.produced["out"][0] += 1
    assert found.writes_to([TopicPartition("out", 0), TopicPartition("other", 0)])
    assert not found.writes_to([TopicPartition("other", 0)])
    assert not found.writes_to([])
