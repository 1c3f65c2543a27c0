"""Errors as Java prints them, with Kafka's texts: scripts compare what Kafka's tools print."""

from __future__ import annotations

from moldau.client.errors import KafkaError
from moldau.wire.errors import ErrorCode

__all__ = ["STANDARD_TEXTS", "UnusablePartitionsError", "as_java", "default_text", "print_error"]

# Kafka's messages for errors without a message.
STANDARD_TEXTS = {
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
# Java's classes whose names are not ours with Exception in place of Error.
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
    """Partitions that cannot be reset, found by the tool and not returned by a broker."""


def default_text(error: KafkaError) -> str:
    """The error's own message, or Kafka's for its code."""
    if error.message:
        return error.message
    return STANDARD_TEXTS.get(error.code, "") if error.code is not None else ""


def as_java(error: BaseException, *, standard: bool = False) -> str:
    """As Java prints the exception, which scripts look for: class, colon, message.

    `standard` is for responses without a message: Java has one for every code.
    """
    if isinstance(error, UnusablePartitionsError) or not isinstance(error, KafkaError):
        return str(error)
    name = type(error).__name__
    java = _JAVA_NAMES.get(name, f"{name.removesuffix('Error')}Exception")
    text = (standard and error.code and STANDARD_TEXTS.get(error.code)) or default_text(error)
    return f"org.apache.kafka.common.errors.{java}" + (f": {text}" if text else "")


def print_error(message: str) -> None:
    """On standard output after an empty line: so do Kafka's group tools."""
    print(f"\nError: {message}")
