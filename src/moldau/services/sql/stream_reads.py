"""How far a pull query over a stream has to read, and waiting until it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from moldau.client.admin import Admin, OffsetSpec
from moldau.client.topics import TopicPartition
from moldau.services.sql.cluster import ClusterTopics
from moldau.services.sql.hosting import QueryHost
from moldau.sql.engine.results import PersistentQuery
from moldau.sql.errors import KsqlException

__all__ = ["StreamReads"]

#: How long a pull query over a stream may take.
_READ_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.02


class StreamReads:
    def __init__(self, admin: Admin, topics: ClusterTopics, host: QueryHost) -> None:
        self._admin = admin
        self._topics = topics
        self._host = host

    def ends_of(self, topic: str) -> dict[TopicPartition, int]:
        """Where the partitions of a topic end now; those without records are left out.

        What retention or DeleteRecords has removed is never read, so nobody may wait for it.
        """
        count = self._topics.partitions(topic) or 0
        partitions = [TopicPartition(topic, index) for index in range(count)]
        first = self._admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))
        last = self._admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()))
        return {
            each: last[each].offset for each in partitions if last[each].offset > first[each].offset
        }

    def wait_until_read(
        self,
        query: PersistentQuery,
        ends: Mapping[TopicPartition, int],
        is_enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until a query has committed so much of its input, or has enough."""
        left = dict(ends)
        streams = self._host.streams(query.id)
        deadline = time.monotonic() + _READ_TIMEOUT_S
        while left and streams is not None and not is_enough():
            if streams.error is not None or time.monotonic() > deadline:
                raise KsqlException(f"The stream could not be read: {streams.error or 'timeout'}")
            group = streams.settings.application_id
            found = self._admin.list_consumer_group_offsets(group)[group]
            read = {each: 0 if at is None else at.offset for each, at in found.items()}
            left = {each: end for each, end in left.items() if read.get(each, 0) < end}
            if left:
                time.sleep(_POLL_S)
