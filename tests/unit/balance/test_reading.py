"""What is read of a cluster whose brokers come and go meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.balance.reading import read_cluster
from moldau.client.admin import Admin
from moldau.client.errors import ClusterAuthorizationFailedError, KafkaError, KafkaTimeoutError
from moldau.client.results import Results
from moldau.client.topics import Node


class Brokers:
    """Stands in for an admin client; `listed` has the brokers of each time they are listed."""

    def __init__(self, listed: list[set[int]], errors: dict[int, KafkaError]) -> None:
        self._listed = listed
        self._errors = errors
        self.asked: list[list[int]] = []
        self.seconds_max = 0.0

    def describe_cluster(self) -> Any:
        ids = self._listed.pop(0) if len(self._listed) > 1 else self._listed[0]
        return SimpleNamespace(nodes=[Node(each, "host", 9092) for each in sorted(ids)])

    def describe_log_dirs(
        self, brokers: Collection[int], *, timeout: float, check: bool
    ) -> Results[int, Any]:
        self.asked.append([*brokers])
        self.seconds_max += timeout
        return Results(
            {each: {} for each in brokers if each not in self._errors},
            {each: self._errors[each] for each in brokers if each in self._errors},
        )

    def list_topics(self, *, list_internal: bool) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("listed", "error", "asked", "known"),
    [
        pytest.param([{1, 2}], None, [[1, 2]], [1, 2], id="all answer"),
        pytest.param([{1, 2}, {1}], KafkaTimeoutError(), [[1, 2]], [1], id="one dies meanwhile"),
        pytest.param(
            [{1, 2}], KafkaTimeoutError(), [[1, 2], [2], [2]], [1, 2], id="one never answers"
        ),
        pytest.param(
            [{1, 2}], ClusterAuthorizationFailedError(), [[1, 2]], [1, 2], id="one refuses"
        ),
    ],
)
def test_brokers_are_listed_again_when_one_does_not_answer(
    listed: list[set[int]], error: KafkaError | None, asked: list[list[int]], known: list[int]
) -> None:
    brokers = Brokers(listed, {} if error is None else {2: error})
    cluster = read_cluster(cast(Admin, brokers))
    assert brokers.asked == asked
    assert [each.id for each in cluster.brokers] == known
    assert brokers.seconds_max <= 60
