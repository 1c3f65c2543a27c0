"""Queries that run to their end, and what they have committed.

What always holds: a wait ends when its condition is true. Spark gives some of its Python processes
ten seconds to call back, which no setting changes and a busy machine may need for their imports
alone: what fails for that reason alone is started again from its checkpoint, as the control loop
does. Every other failure is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.client import Admin, Consumer, ConsumerRecord, TopicPartition
from moldau.client.admin import OffsetSpec
from support.waiting import eventually

SECONDS_MAX = 300
_TOO_BUSY = "failed to connect back"
_STARTS_MAX = 5


def patiently(act: Callable[[], Any]) -> Any:
    """What `act` returns; done again while the machine is too busy for Spark's ten seconds."""
    from pyspark.errors import PySparkException

    for _ in range(_STARTS_MAX - 1):
        try:
            return act()
        except PySparkException as error:
            if _TOO_BUSY not in str(error):
                raise
    return act()


def finished(start: Callable[[], Iterable[Any]]) -> list[Any]:
    """The queries that `start` starts when all have ended; raises what one failed with."""

    def run() -> list[Any]:
        queries = list(start())
        try:
            for query in queries:
                assert query.awaitTermination(SECONDS_MAX), f"{query.name} does not end"
                error = query.exception()
                if error is not None:
                    raise error
        except Exception:
            # The others must not run beside the same ones started again.
            for query in queries:
                query.stop()
            raise
        return queries

    found: list[Any] = patiently(run)
    return found


def at_work(start: Callable[[], Any]) -> Any:
    """The query that `start` starts when it has done its first batch; there must be one to do."""

    def run() -> Any:
        query = start()

        def has_begun() -> bool:
            error = query.exception()
            if error is not None:
                raise error
            return query.lastProgress is not None

        eventually(has_begun, what="a first batch", seconds_max=SECONDS_MAX)
        return query

    return patiently(run)


def committed(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """All that a reader of committed records finds in a topic, by partition and offset.

    A commit is answered before its markers are written: all that the topic has is waited for.
    """
    config = {"bootstrap.servers": bootstrap}
    with Admin(config) as admin:
        count = len(admin.describe_topics([topic])[topic].partitions)
        places = [TopicPartition(topic, index) for index in range(count)]
        latest = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
    ends = {place: latest[place].offset for place in places}
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    found: list[ConsumerRecord] = []
    with Consumer(config | settings) as consumer:
        consumer.assign(places)

        def is_read() -> bool:
            found.extend(consumer.poll(1.0))
            return all(consumer.position(place) >= end for place, end in ends.items())

        what = f"all of {topic} is decided, no open transaction holds readers up"
        eventually(is_read, what=what, seconds_max=SECONDS_MAX)
    return sorted(found, key=lambda record: (record.partition, record.offset))
