"""ShareFetch and ShareAcknowledge, from what a session and the application have to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from moldau.client.share.machine.acknowledgements import Acknowledgements, TopicIdPartition
from moldau.client.share.machine.session import ShareSession
from moldau.wire.messages import ShareAcknowledgeRequest, ShareFetchRequest

__all__ = ["acknowledge_request", "fetch_request"]

PartitionAcks = Mapping[TopicIdPartition, Acknowledgements]


class RequestSettings(Protocol):
    """The settings of a share consumer that requests carry."""

    @property
    def group_id(self) -> str: ...
    @property
    def fetch_min_bytes(self) -> int: ...
    @property
    def fetch_max_bytes(self) -> int: ...
    @property
    def max_poll_records(self) -> int: ...
    @property
    def share_acquire_mode(self) -> int: ...


def fetch_request(
    settings: RequestSettings,
    member_id: str,
    session: ShareSession,
    added: Iterable[TopicIdPartition],
    removed: Iterable[TopicIdPartition],
    acks: PartitionAcks,
    *,
    acquires: bool,
    wait_ms: int,
) -> ShareFetchRequest:
    """One that does not acquire only changes the session and carries acknowledgements."""
    renews = any(each.renews for each in acks.values())
    acquires = acquires and not renews
    topics: dict[Any, ShareFetchRequest.FetchTopic] = {}
    partitions = dict.fromkeys(added) | dict.fromkeys(acks)
    for partition in partitions:
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = ShareFetchRequest.FetchTopic(topic_id=partition.topic_id)
            topics[partition.topic_id] = topic
        each = ShareFetchRequest.FetchPartition(partition_index=partition.partition)
        if partition in acks:
            each.acknowledgement_batches = _batches(
                ShareFetchRequest.AcknowledgementBatch, acks[partition]
            )
        topic.partitions.append(each)
    forgotten: dict[Any, ShareFetchRequest.ForgottenTopic] = {}
    for partition in removed:
        gone = forgotten.get(partition.topic_id)
        if gone is None:
            gone = ShareFetchRequest.ForgottenTopic(topic_id=partition.topic_id)
            forgotten[partition.topic_id] = gone
        gone.partitions.append(partition.partition)
    return ShareFetchRequest(
        group_id=settings.group_id,
        member_id=member_id,
        share_session_epoch=session.epoch,
        max_wait_ms=wait_ms if acquires else 0,
        min_bytes=settings.fetch_min_bytes if acquires else 0,
        max_bytes=settings.fetch_max_bytes if acquires else 0,
        max_records=settings.max_poll_records if acquires else 0,
        batch_size=settings.max_poll_records if acquires else 0,
        share_acquire_mode=settings.share_acquire_mode,
        is_renew_ack=renews,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten.values()),
    )


def acknowledge_request(
    settings: RequestSettings, member_id: str, epoch: int, acks: PartitionAcks
) -> ShareAcknowledgeRequest:
    topics: dict[Any, ShareAcknowledgeRequest.AcknowledgeTopic] = {}
    for partition, acknowledgements in acks.items():
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=partition.topic_id)
            topics[partition.topic_id] = topic
        topic.partitions.append(
            ShareAcknowledgeRequest.AcknowledgePartition(
                partition_index=partition.partition,
                acknowledgement_batches=_batches(
                    ShareAcknowledgeRequest.AcknowledgementBatch, acknowledgements
                ),
            )
        )
    return ShareAcknowledgeRequest(
        group_id=settings.group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        is_renew_ack=any(each.renews for each in acks.values()),
        topics=list(topics.values()),
    )


def _batches(kind: Any, acknowledgements: Acknowledgements) -> list[Any]:
    return [
        kind(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            acknowledge_types=batch.types,
        )
        for batch in acknowledgements.batches()
    ]
