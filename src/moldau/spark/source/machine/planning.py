"""Where a query begins, what a batch reads, and what was lost in between.

Pure: partitions and offsets come from the caller. Invariants: nothing that was lost goes
unsaid, and each loss names its partition, the offsets and what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.offsets import Offsets, show_partitions
from moldau.spark.source.machine.options import AtOffsets, AtTimestamp, AtTimestamps, Place
from moldau.spark.source.machine.ranges import OffsetRange

__all__ = [
    "DATA_LOSS_ADVICE",
    "DataLoss",
    "Plan",
    "PlanError",
    "Questions",
    "batch_ranges",
    "plan_batch",
    "questions",
    "settled",
]

DATA_LOSS_ADVICE = (
    "Some data may have been lost because they are not available in Kafka any more; either the "
    "data was aged out by Kafka or the topic may have been deleted before all the data in the "
    "topic was processed. If you don't want your streaming query to fail on such cases, set the "
    'source option "failOnDataLoss" to "false".'
)


class PlanError(ValueError):
    """Offsets that do not fit the partitions, or each other."""


class DataLoss(Exception):
    """Records that a query had not read are gone."""


class Questions(NamedTuple):
    """A place, as far as it is known: offsets, and times to be asked for (-2 first, -1 last)."""

    known: Offsets
    asked: Offsets


def questions(place: Place, partitions: Collection[TopicPartition], *, edge: str) -> Questions:
    """What is known and what is to be asked of the leaders. `edge` is "starting" or "ending"."""
    match place:
        case int():
            return Questions({}, dict.fromkeys(partitions, place))
        case AtTimestamp(time_ms):
            return Questions({}, dict.fromkeys(partitions, time_ms))
        case AtTimestamps(times):
            _check_assigned(times, partitions, f"{edge}OffsetsByTimestamp", "")
            return Questions({}, dict(times))
        case AtOffsets(offsets):
            _check_assigned(
                offsets, partitions, f"{edge}Offsets", " Use -1 for latest, -2 for earliest."
            )
            asked = {key: each for key, each in offsets.items() if each < 0}
            known = {key: each for key, each in offsets.items() if each >= 0}
            return Questions(known, asked)


def _check_assigned(
    given: Mapping[TopicPartition, int],
    partitions: Collection[TopicPartition],
    option: str,
    advice: str,
) -> None:
    assigned = set(partitions)
    if given.keys() == assigned:
        return
    missing, surplus = assigned - given.keys(), given.keys() - assigned
    problems = []
    if missing:
        problems.append(f"not given: {show_partitions(missing)}")
    if surplus:
        problems.append(f"not there: {show_partitions(surplus)}")
    raise PlanError(
        f"If {option} contains specific offsets, you must specify all TopicPartitions.{advice} "
        f"{'; '.join(problems)}. Specified: {show_partitions(given)}; "
        f"assigned: {show_partitions(assigned)}"
    )


def settled(
    place: Questions,
    found: Mapping[TopicPartition, int | None],
    latest: Mapping[TopicPartition, int],
    *,
    latest_if_no_match: bool,
) -> Offsets:
    """The offsets of a place. `latest` is looked at where no record is as young as the time.

    Raises PlanError for those unless `latest_if_no_match`.
    """
    result = dict(place.known)
    for key, asked in place.asked.items():
        offset = found[key]
        if offset is None and asked >= 0:
            if not latest_if_no_match:
                raise PlanError(
                    f"No offset matched from request of topic-partition {key} and timestamp "
                    f"{asked}. Set startingOffsetsByTimestampStrategy to latest to begin such "
                    "partitions at their end."
                )
            offset = latest[key]
        # An empty partition has neither first nor last record, but always these two offsets.
        result[key] = latest[key] if offset is None else offset
    return result


class Plan(NamedTuple):
    """What a batch reads, and what it can no longer read."""

    ranges: list[OffsetRange]
    losses: list[str]


def plan_batch(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    first: Mapping[TopicPartition, int],
) -> Plan:
    """The offsets between. `first` has those of the partitions that are new in `end`; one that
    is in neither `start` nor `first` was deleted meanwhile."""
    losses = []
    ranges = []
    gone = start.keys() - end.keys()
    if gone:
        shown = ", ".join(f"{key} (read up to offset {start[key]})" for key in sorted(gone)[:20])
        losses.append(f"Partitions have been deleted: {shown}.")
    for key in sorted(end):
        begin = start.get(key)
        if begin is None:
            begin = first.get(key)
            if begin is None:
                losses.append(
                    f"Cannot find initial offsets for partition {key}: it may have been deleted."
                )
                continue
            if begin > 0:
                losses.append(
                    f"Added partition {key} starts from {begin} instead of 0: offsets 0 to "
                    f"{begin} are gone."
                )
        if end[key] < begin:
            losses.append(
                f"Partition {key} offset was changed from {begin} to {end[key]}. Either the "
                "starting offset was set too high, or the topic was deleted and created again, or "
                "its log was truncated."
            )
            continue
        ranges.append(OffsetRange(key.topic, key.partition, begin, end[key]))
    return Plan(ranges, losses)


def batch_ranges(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Plan:
    """As `plan_batch` for a batch query, where every partition has both."""
    for key in sorted(end):
        if end[key] < start[key]:
            raise PlanError(
                f"The resolved start offset {start[key]} is greater than the resolved end offset "
                f"{end[key]} for topic {key.topic} partition {key.partition}. Check the starting "
                "and ending options; a timestamp stands for the first record at or after it."
            )
    return plan_batch(start, end, {})
