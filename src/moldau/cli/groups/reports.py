"""Output that the group tools share: plans and deletions, with Kafka's messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from moldau.cli.groups.machine.layout import BARE, PlainLayout, fixed, growing, spaced
from moldau.cli.support.java_errors import STANDARD_TEXTS, as_java, print_error
from moldau.cli.support.tables import Table
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = [
    "or_dash",
    "print_deleted_groups",
    "print_deleted_offsets",
    "print_reset_plan",
]

_GROUP_LEVEL = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_PARTITION_LEVEL = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def print_reset_plan(
    plan: Mapping[str, Mapping[TopicPartition, int]], layout: PlainLayout | None = None
) -> None:
    """The new offsets, by group, topic and partition."""
    if not plan:
        print()
        return
    plain = layout or spaced(growing(15), growing(15), fixed(10), BARE)
    table = Table("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", plain=plain)
    for group, offsets in plan.items():
        for partition, offset in sorted(offsets.items()):
            table.add(group, partition.topic, partition.partition, offset)
    table.show()


def print_deleted_groups(
    kind: str, deleted: Collection[str], failed: Mapping[str, BaseException | str]
) -> None:
    """The results of deleting groups."""
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failed:
        print(f"Deletion of requested {kind} groups ({names}) was successful.")
        return
    print_error(f"Deletion of some {kind} groups failed:")
    for group, error in failed.items():
        reason = error if isinstance(error, str) else as_java(error, standard=True)
        print(f"* Group '{group}' could not be deleted due to: {reason}")
    if deleted:
        end = "." if kind == "streams" else ""
        print(f"\nThese {kind} groups were deleted successfully: {names}{end}")


def print_deleted_offsets(
    group: str,
    partitions: Iterable[TopicPartition],
    errors: Mapping[TopicPartition, KafkaError],
    unknown_topics: Mapping[str, KafkaError],
) -> None:
    """The result for each partition; unknown topics have the partition `-`."""
    first = next(iter(errors.values()), None)
    if first is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif first.code in _GROUP_LEVEL:
        print_error(STANDARD_TEXTS[first.code])
    elif first.code in _PARTITION_LEVEL:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        name = first.code.name if first.code is not None else type(first).__name__
        print_error(f"Encountered some unknown error: {name}")
    rows = {(topic, ""): as_java(error, standard=True) for topic, error in unknown_topics.items()}
    for partition in partitions:
        error = errors.get(partition)
        reason = "" if error is None else as_java(error, standard=True)
        rows[partition.topic, str(partition.partition)] = reason
    table = Table("TOPIC", "PARTITION", "STATUS", plain=spaced(growing(15), fixed(10), fixed(15)))
    for (topic, number), reason in sorted(rows.items(), key=lambda row: "".join(row[0])):
        table.add(topic, number or "-", f"Error: {reason}" if reason else "Successful")
    table.show()
