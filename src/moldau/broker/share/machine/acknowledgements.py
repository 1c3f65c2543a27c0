"""Acknowledgements as ShareFetch and ShareAcknowledge bring them: which of them are well formed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.share.machine.partition import GAP, REJECT, RENEW, AckBatch
from moldau.broker.share.machine.sessions import TopicIdPartition
from moldau.wire.errors import ApiError, ErrorCode

_RENEW_SINCE = 2
_MEMBER_ID_LENGTH_MAX = 36


class BatchFields(Protocol):
    """The same in both requests."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


Acknowledgements = dict[TopicIdPartition, Sequence[AckBatch]]
Refusals = dict[TopicIdPartition, ApiError | None]


def check_ids(group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """The ids of a request, INVALID_REQUEST unless they can be ids."""
    if group_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not member_id or len(member_id) > _MEMBER_ID_LENGTH_MAX:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id


def unknown_partition(topics: Topics, topic_id: UUID, partition: int) -> ApiError | None:
    """Why a partition cannot be served by anybody; None if it exists."""
    name = topics.name_of(topic_id)
    if name is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_id}")
    if not topics.has_partition(name, partition):
        return ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} has no partition {partition}"
        )
    return None


def sort_out(
    wanted: Iterable[tuple[TopicIdPartition, Sequence[BatchFields]]],
    topics: Topics,
    *,
    version: int,
    is_renew_ack: bool,
) -> tuple[Acknowledgements, Refusals]:
    """What can be handed on, and the outcome of what cannot (None: nothing was asked of it)."""
    good: Acknowledgements = {}
    outcome: Refusals = {}
    for partition, fields in wanted:
        error = unknown_partition(topics, *partition)
        if error is None and fields:
            batches = [
                AckBatch(each.first_offset, each.last_offset, each.acknowledge_types)
                for each in fields
            ]
            error = _problem(batches, RENEW if version >= _RENEW_SINCE else REJECT, is_renew_ack)
            if error is None:
                good[partition] = batches
                continue
        outcome[partition] = error
    return good, outcome


def _problem(batches: Iterable[AckBatch], type_max: int, is_renew_ack: bool) -> ApiError | None:
    previous_last = -1
    for first, last, types in batches:
        if first > last or first < previous_last:
            return _invalid(f"offsets {first} to {last} are out of order")
        if not types:
            return _invalid(f"offsets {first} to {last} have no acknowledge type")
        if len(types) > 1 and last - first != len(types) - 1:
            return _invalid(f"offsets {first} to {last} have {len(types)} acknowledge types")
        if min(types) < GAP or max(types) > type_max:
            return _invalid(f"acknowledge types are {GAP} to {type_max} in this version")
        if RENEW in types and not is_renew_ack:
            return _invalid("a request that renews locks must say so in IsRenewAck")
        previous_last = last
    return None


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
