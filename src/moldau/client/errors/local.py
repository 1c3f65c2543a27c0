"""Errors of the client itself, without a code on the wire."""

from __future__ import annotations

from functools import partial
from typing import Any

from moldau.client.errors.base import AuthenticationError, KafkaError, RetriableError
from moldau.config.errors import ConfigError as AnyConfigError


class KafkaTimeoutError(RetriableError, TimeoutError):
    """Something was not done within its time."""


class BufferExhaustedError(KafkaTimeoutError):
    """The producer's `buffer.memory` stayed full for `max.block.ms`."""

    advice = "raise buffer.memory or max.block.ms, or send more slowly"


class DisconnectError(RetriableError, ConnectionError):
    """The connection to a node broke, or could not be made."""


class NotKafkaError(KafkaError):
    """What answers at the address of a node does not speak Kafka's protocol."""

    advice = "check the port in bootstrap.servers"


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake with a node failed: a certificate was rejected, or nothing was shared."""


class SerializationError(KafkaError):
    """A key, value or header that the serializer or deserializer does not take."""


class RecordDeserializationError(SerializationError):
    """A record that cannot be read. Seek past `offset` to go on."""

    advice = "seek past it, or use a deserializer that takes it"

    def __init__(self, message: str, *, topic: str, partition: int, offset: int) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __reduce__(self) -> tuple[Any, ...]:
        again = partial(type(self), topic=self.topic, partition=self.partition, offset=self.offset)
        return again, (self.message,), self.__dict__


class WakeupError(KafkaError):
    """`wakeup()` ended a call that was waiting."""


class ClosedError(KafkaError):
    """The client was closed."""

    advice = "create a new one"


class IllegalStateError(KafkaError):
    """A call that does not fit what was called before."""


class ConcurrentModificationError(KafkaError):
    """A consumer was used by two threads at once."""

    advice = "use one consumer per thread; only wakeup() may come from another"


class NoOffsetForPartitionError(KafkaError):
    """No committed offset, and `auto.offset.reset` is none."""

    advice = "seek, commit an offset, or set auto.offset.reset"

    def __init__(self, partitions: Any) -> None:
        self.partitions = frozenset(partitions)
        shown = ", ".join(sorted(map(str, self.partitions)))
        super().__init__(f"undefined offset with no reset policy for partitions: {shown}")


class LogTruncationError(KafkaError):
    """The log was truncated below the position, and `auto.offset.reset` is none.

    `divergent_offsets` maps each partition to the last offset known to be common, or None.
    """

    def __init__(self, message: str, divergent_offsets: Any) -> None:
        super().__init__(message)
        self.divergent_offsets = dict(divergent_offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.divergent_offsets), self.__dict__


class CommitFailedError(KafkaError):
    """The group has moved on: the offsets were not committed."""

    advice = "poll more often, raise max.poll.interval.ms, or lower max.poll.records"


class RetriableCommitFailedError(RetriableError):
    """An asynchronous commit failed in a way that a later one may not."""


class TransactionAbortedError(KafkaError):
    """The record was not sent: its transaction was aborted before."""


class ConfigError(AnyConfigError, KafkaError):
    """A setting that is wrong, missing, or does not go with another; the message names it."""

    def __init__(
        self,
        message: str,
        *,
        key: str | None = None,
        value: str | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(message, key=key, value=value)
        self.advice = advice or ""

    @classmethod
    def of(cls, error: AnyConfigError) -> ConfigError:
        """The same, as a client raises it."""
        return cls(str(error), key=error.key, value=error.value)

    def __str__(self) -> str:
        return ValueError.__str__(self)
