"""What the group tools print alike: errors as Kafka's tools word them, plans and deletions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from moldau.cli.tools.common import Table
from moldau.cli.tools.machine.group_layout import BARE, PlainLayout, fixed, growing, spaced
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = [
    "UnusablePartitionsError",
    "as_java",
    "default_text",
    "or_dash",
    "print_deleted_groups",
    "print_deleted_offsets",
    "print_error",
    "print_reset_plan",
]

# Kafka's words for errors that come without any.
_TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the "
    "consumer group is actively subscribed to it.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
}
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
# Java's class where its name is not ours with Exception for Error.
_JAVA_NAMES = {
    "KafkaTimeoutError": "TimeoutException",
    "RequestTimedOutError": "TimeoutException",
    "OffsetMetadataTooLargeError": "OffsetMetadataTooLarge",
    "TopicAuthorizationFailedError": "TopicAuthorizationException",
    "GroupAuthorizationFailedError": "GroupAuthorizationException",
    "ClusterAuthorizationFailedError": "ClusterAuthorizationException",
    "InvalidTransactionTimeoutError": "InvalidTxnTimeoutException",
    "TransactionalIdAuthorizationFailedError": "TransactionalIdAuthorizationException",
    "SaslAuthenticationFailedError": "SaslAuthenticationException",
    "DelegationTokenAuthDisabledError": "DelegationTokenDisabledException",
    "DelegationTokenRequestNotAllowedError": "UnsupportedByAuthenticationException",
    "DelegationTokenAuthorizationFailedError": "DelegationTokenAuthorizationException",
    "PrincipalDeserializationFailureError": "PrincipalDeserializationException",
    "InvalidRegularExpressionError": "InvalidRegularExpression",
}


class UnusablePartitionsError(KafkaError):
    """Partitions that cannot be reset: the tool found it out, no broker said it."""


def default_text(error: KafkaError) -> str:
    """The error's own words, or Kafka's for its code."""
    if error.message:
        return error.message
    return _TEXTS.get(error.code, "") if error.code is not None else ""


def as_java(error: BaseException, *, standard: bool = False) -> str:
    """As Java prints the exception, which scripts look for: class, colon, message.

    `standard` is for answers that carry no text: Java has one for every code.
    """
    if isinstance(error, UnusablePartitionsError) or not isinstance(error, KafkaError):
        return str(error)
    name = type(error).__name__
    java = _JAVA_NAMES.get(name, f"{name.removesuffix('Error')}Exception")
    text = (standard and error.code and _TEXTS.get(error.code)) or default_text(error)
    return f"org.apache.kafka.common.errors.{java}" + (f": {text}" if text else "")


def print_error(message: str) -> None:
    """On standard output after an empty line: so do Kafka's group tools."""
    print(f"\nError: {message}")


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
    """What became of the groups that were to be deleted."""
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failed:
        print(f"Deletion of requested {kind} groups ({names}) was successful.")
        return
    print_error(f"Deletion of some {kind} groups failed:")
    for group, error in failed.items():
        told = error if isinstance(error, str) else as_java(error, standard=True)
        print(f"* Group '{group}' could not be deleted due to: {told}")
    if deleted:
        end = "." if kind == "streams" else ""
        print(f"\nThese {kind} groups were deleted successfully: {names}{end}")


def print_deleted_offsets(
    group: str,
    partitions: Iterable[TopicPartition],
    errors: Mapping[TopicPartition, KafkaError],
    unknown_topics: Mapping[str, KafkaError],
) -> None:
    """What became of the offsets of each partition; topics that are unknown have partition -."""
    first: Any = next(iter(errors.values()), None)
    if first is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif first.code in _GROUP_LEVEL:
        print_error(_TEXTS[first.code])
    elif first.code in _PARTITION_LEVEL:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        name = first.code.name if first.code is not None else type(first).__name__
        print_error(f"Encountered some unknown error: {name}")
    rows = {(topic, ""): as_java(error, standard=True) for topic, error in unknown_topics.items()}
    for partition in partitions:
        error = errors.get(partition)
        told = "" if error is None else as_java(error, standard=True)
        rows[partition.topic, str(partition.partition)] = told
    table = Table("TOPIC", "PARTITION", "STATUS", plain=spaced(growing(15), fixed(10), fixed(15)))
    for (topic, number), told in sorted(rows.items(), key=lambda row: "".join(row[0])):
        table.add(topic, number or "-", f"Error: {told}" if told else "Successful")
    table.show()
