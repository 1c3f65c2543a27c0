"""Confluent's errors: what a refusal is called, and which error of Kafka is which.

The wording is the original's, since clients match it.
"""

from __future__ import annotations

from typing import Final

from moldau.client.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    SerializationError,
)
from moldau.http.machine.errors import HttpError
from moldau.wire.errors import ErrorCode

__all__ = ["bad_request", "message_of", "produce_error_code", "rest_error"]

_BAD_REQUESTS: Final = frozenset(
    {
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.TOPIC_DELETION_DISABLED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        # Not in the original's list, which answers these with 500; they are the request's fault.
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_RECORD,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
)
_TEXTS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "The request attempted to perform an operation on an invalid topic."
    ),
    ErrorCode.SECURITY_DISABLED: "Security features are disabled.",
    ErrorCode.MESSAGE_TOO_LARGE: (
        "The request included a message larger than the max message size the server will accept."
    ),
}
#: The client's own words for these are the name of the topic.
_FIXED: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


def rest_error(error: Exception) -> HttpError | None:
    """What an error of Kafka is over HTTP; None for what is none."""
    if not isinstance(error, KafkaError):
        return None
    message = message_of(error)
    if isinstance(error, AuthenticationError):
        return HttpError(401, message, error_code=40101)
    if isinstance(error, AuthorizationError):
        return HttpError(403, message, error_code=40301)
    match error.code:
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION | ErrorCode.UNKNOWN_TOPIC_ID:
            return HttpError(404, message, error_code=40403)
        case ErrorCode.GROUP_ID_NOT_FOUND:
            return HttpError(404, "Consumer group id not found.", error_code=40405)
        case ErrorCode.BROKER_NOT_AVAILABLE:
            return HttpError(503, message, error_code=50302)
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE:
            return HttpError(413, message)
        case ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            return HttpError(429, message, error_code=42901)
        case code if code in _BAD_REQUESTS:
            return HttpError(400, message, error_code=40002)
    if isinstance(error, IllegalStateError):
        return HttpError(409, f"Illegal state: {message}", error_code=40903)
    if isinstance(error, SerializationError):
        return HttpError(408, message, error_code=40801)
    if isinstance(error, ConfigError):
        return HttpError(400, message, error_code=40002)
    if isinstance(error, KafkaTimeoutError) and "not present in metadata" in message:
        return HttpError(404, message, error_code=40401)
    if error.retriable:
        return HttpError(500, message, error_code=50003)
    return HttpError(500, message, error_code=50002)


def message_of(error: KafkaError) -> str:
    """The broker's words, or Kafka's for the code."""
    if error.message and error.code not in _FIXED:
        return error.message
    return _TEXTS.get(error.code, str(error)) if error.code is not None else str(error)


def produce_error_code(error: KafkaError) -> int:
    """The code of a record that was not stored, in the answer to v2."""
    if isinstance(error, AuthenticationError):
        return 40101
    if isinstance(error, AuthorizationError):
        return 40301
    return 50003 if error.retriable else 50002


def bad_request(detail: str) -> HttpError:
    return HttpError(400, f"Bad Request: {detail}")


def constraint(message: str, error_code: int = 422) -> HttpError:
    """A body of the right form with values that are not allowed."""
    return HttpError(422, message, error_code=error_code)


def too_many_records(limit: int) -> HttpError:
    return HttpError(413, f"The request has more than {limit} records.")


def topic_not_found() -> HttpError:
    return HttpError(404, "Topic not found.", error_code=40401)


def partition_not_found() -> HttpError:
    return HttpError(404, "Partition not found.", error_code=40402)


def instance_not_found() -> HttpError:
    return HttpError(404, "Consumer instance not found.", error_code=40403)


def format_mismatch() -> HttpError:
    return HttpError(
        406,
        "The requested embedded data format does not match the deserializer for this consumer "
        "instance",
        error_code=40601,
    )


def instance_exists() -> HttpError:
    return HttpError(
        409,
        "Consumer with specified consumer ID already exists in the specified consumer group.",
        error_code=40902,
    )


def invalid_consumer_config(reason: str) -> HttpError:
    return constraint(f"Invalid consumer configuration: {reason}", 42204)


def invalid_payload(reason: str) -> HttpError:
    return constraint(f"Payload error. {reason}", 42206)


def no_consumer_available() -> HttpError:
    return HttpError(
        503,
        "No SimpleConsumer is available at the time in the pool. The request can be retried. You "
        "can increase the pool size or the pool timeout to avoid this error in the future.",
        error_code=50301,
    )
