"""What a session wants to fetch, as a request. Pure."""

from __future__ import annotations

from typing import Protocol

from moldau.client.consumer.machine.fetch_session import SessionRequest
from moldau.wire.messages import FetchRequest
from moldau.wire.uuids import ZERO_UUID

__all__ = ["FetchLimits", "fetch_request"]


class FetchLimits(Protocol):
    """Those of the consumer's settings that go into the request."""

    @property
    def fetch_max_wait_ms(self) -> int: ...

    @property
    def fetch_min_bytes(self) -> int: ...

    @property
    def fetch_max_bytes(self) -> int: ...

    @property
    def read_committed(self) -> bool: ...

    @property
    def client_rack(self) -> str: ...


def fetch_request(session: SessionRequest, limits: FetchLimits, *, by_id: bool) -> FetchRequest:
    """`by_id` names topics by their ids, else by their names."""
    topics: dict[str, FetchRequest.FetchTopic] = {}
    for key, each in session.partitions.items():
        topic = topics.get(key.topic)
        if topic is None:
            topic = topics[key.topic] = FetchRequest.FetchTopic(
                topic=key.topic, topic_id=each.topic_id if by_id else ZERO_UUID
            )
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=key.partition,
                current_leader_epoch=each.leader_epoch,
                fetch_offset=each.offset,
                partition_max_bytes=each.size_max,
            )
        )
    forgotten: dict[tuple[str, object], FetchRequest.ForgottenTopic] = {}
    for key, topic_id in session.forgotten.items():
        gone = forgotten.get((key.topic, topic_id))
        if gone is None:
            gone = forgotten[key.topic, topic_id] = FetchRequest.ForgottenTopic(
                topic=key.topic, topic_id=topic_id if by_id else ZERO_UUID
            )
        gone.partitions.append(key.partition)
    return FetchRequest(
        max_wait_ms=limits.fetch_max_wait_ms,
        min_bytes=limits.fetch_min_bytes,
        max_bytes=limits.fetch_max_bytes,
        isolation_level=1 if limits.read_committed else 0,
        session_id=session.session_id,
        session_epoch=session.session_epoch,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten.values()),
        rack_id=limits.client_rack,
    )
