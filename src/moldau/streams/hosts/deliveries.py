"""What becomes of records that were not delivered, by the rules of Kafka Streams.

Some errors end the application whatever its handler says, some mean that another thread has taken
over; for all others the handler decides. "retry" lets the tasks start over from their last commit.
The first error of a transaction decides for all of it. Filled in the producer's thread, read by the
stream thread, which has waited for the deliveries before.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable

from moldau.client.errors import (
    AuthenticationError,
    AuthorizationError,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTopicError,
    KafkaError,
    OffsetMetadataTooLargeError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    SecurityDisabledError,
    SerializationError,
    UnknownServerError,
)
from moldau.client.producer import DeliveryCallback
from moldau.client.topics import TopicPartition
from moldau.streams.errors import PassedOnError, StreamsError, TaskMigratedError
from moldau.streams.machine.error_handlers import (
    ErrorContext,
    Handlers,
    UnwrittenRecord,
    delivery_verdict,
    fail_on_error,
    is_retriable,
    retry_if_retriable,
)
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.records import Produced, Record, TaskCore

#: No handler is asked: nothing that it could answer would help.
_FATAL = (
    AuthenticationError,
    AuthorizationError,
    IllegalStateError,
    InvalidTopicError,
    OffsetMetadataTooLargeError,
    SecurityDisabledError,
    SerializationError,
    UnknownServerError,
)
_MIGRATED = (
    InvalidPidMappingError,
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    ProducerFencedError,
)

_log = logging.getLogger(__name__)


class TaskCorruptedError(PassedOnError):
    """Records were not delivered and are to be made again: tasks start over from their last
    commit, those named in `tasks` and those that write to `partitions`."""

    def __init__(
        self,
        message: str,
        *,
        tasks: frozenset[TaskId] = frozenset(),
        partitions: frozenset[TopicPartition] = frozenset(),
    ) -> None:
        super().__init__(message)
        self.tasks = tasks
        self.partitions = partitions


class Deliveries:
    """See the module. Of one stream thread."""

    def __init__(self, handlers: Handlers, *, exactly_once: bool) -> None:
        self._handlers = handlers
        self._exactly_once = exactly_once
        #: Whether the handler is asked about each record. The usual ones look at the error alone,
        #: and a callback for each record would cost more than its send.
        self.asks = handlers.production not in (retry_if_retriable, fail_on_error)
        self._failure: StreamsError | None = None
        self._tasks: set[TaskId] = set()
        self._partitions: set[TopicPartition] = set()
        self._why = ""
        # Records that a handler skipped: of which task, and what is written about them.
        self._skipped: deque[tuple[TaskCore, TaskId, Iterable[Produced]]] = deque()

    def clear(self) -> None:
        """What was not delivered is given up."""
        self._failure = None
        self._tasks.clear()
        self._partitions.clear()
        self._skipped.clear()

    @property
    def has_failure(self) -> bool:
        """Whether `check` raises."""
        return bool(self._failure or self._tasks or self._partitions)

    def check(self) -> None:
        """Raise what follows from a record that was not delivered."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if self._tasks or self._partitions:
            tasks, partitions = frozenset(self._tasks), frozenset(self._partitions)
            self._tasks.clear()
            self._partitions.clear()
            raise TaskCorruptedError(self._why, tasks=tasks, partitions=partitions)

    def take_skipped(self) -> Iterable[tuple[TaskCore, TaskId, Iterable[Produced]]]:
        """The records that were skipped since the last call."""
        while self._skipped:
            yield self._skipped.popleft()

    # In the producer's thread.

    def on_failed(self, where: TopicPartition, error: KafkaError) -> None:
        """A batch failed, or a record was not taken on; a handler that is asked about each record
        learns of it by the record's callback."""
        if self.asks or self._is_settled(where.topic, error):
            return
        answer = self._handlers.production(where.topic, _NO_RECORD, error)
        if delivery_verdict(answer, error) == "retry":
            self._retry(where.topic, error)
            self._partitions.add(where)
        else:
            self._fail(where.topic, error)

    def watch(self, core: TaskCore, task_id: TaskId, record: Produced) -> DeliveryCallback:
        """The callback of a record of this task."""
        where, raw = core.record_context, (core.raw_key, core.raw_value)

        def delivered(_: object, error: Exception | None) -> None:
            if error is None or self._is_settled(record.topic, error):
                return
            context = ErrorContext.of(where, raw, task_id=str(task_id), node="")
            failed = Record(record.key, record.value, record.timestamp, record.headers)
            unwritten = UnwrittenRecord.of(failed, context)
            try:
                answer = self._handlers.production(record.topic, unwritten, error)
                verdict = delivery_verdict(answer, error)
            except Exception as problem:
                self._fail(record.topic, problem, "the production handler failed")
                return
            if verdict == "retry":
                self._retry(record.topic, error)
                self._tasks.add(task_id)
                return
            if verdict == "fail":
                self._fail(record.topic, error)
                return
            letters = self._handlers.letters(answer, where, raw, error)
            self._skipped.append((core, task_id, letters))

        return delivered

    def watch_letter(self, task_id: TaskId, letter: Produced) -> DeliveryCallback:
        """The callback of a dead letter, about which nobody is asked."""

        def delivered(_: object, error: Exception | None) -> None:
            if error is None or self._is_settled(letter.topic, error):
                return
            if is_retriable(error):
                self._retry(letter.topic, error)
                self._tasks.add(task_id)
            else:
                self._fail(letter.topic, error)

        return delivered

    def _is_settled(self, topic: str, error: Exception) -> bool:
        """Whether nobody is asked, because of the error or because of one before it."""
        if self._failure is not None or (self._exactly_once and self.has_failure):
            return True
        if isinstance(error, _MIGRATED):
            self._failure = TaskMigratedError(f"a record for {topic} was refused: {error}")
        elif isinstance(error, _FATAL):
            self._fail(topic, error)
        else:
            return False
        return True

    def _fail(self, topic: str, error: Exception, why: str = "a record was not delivered") -> None:
        if self._failure is None:
            self._failure = StreamsError(f"{why}, topic={topic}: {error}")
            self._failure.__cause__ = error

    def _retry(self, topic: str, error: Exception) -> None:
        self._why = f"a record was not delivered, topic={topic}: {error}"
        _log.debug("%s", self._why)


#: Nobody reads it: only handlers that look at the error alone get it.
_NO_RECORD = UnwrittenRecord(None, None, 0)
