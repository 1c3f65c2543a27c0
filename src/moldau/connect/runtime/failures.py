"""What happens to a record that fails: retried, logged, sent to a dead-letter topic, skipped, or
the end of the task. The order and the headers are Connect's."""

from __future__ import annotations

import logging
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from moldau.client import Admin, NewTopic, Producer, TopicExistsError
from moldau.client.consumer_record import ConsumerRecord
from moldau.connect.api import ConnectError, SinkRecord, SourceRecord
from moldau.connect.api.errors import java_name
from moldau.connect.machine.ids import Stage, TaskId
from moldau.connect.machine.retries import RetryPolicy, is_retriable, is_tolerable

logger = logging.getLogger(__name__)

T = TypeVar("T")
HEADER_PREFIX = "__connect.errors."
_PARTITIONS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSettings:
    """`errors.*` of a connector."""

    policy: RetryPolicy
    tolerate_all: bool
    log: bool
    log_messages: bool
    dead_letter_topic: str
    dead_letter_replication: int
    dead_letter_headers: bool

    @property
    def reports(self) -> bool:
        """Whether sinks have a reporter: what they report would otherwise be lost unseen."""
        return bool(self.dead_letter_topic) or self.log

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ErrorSettings:
        return cls(
            policy=RetryPolicy(values["errors.retry.timeout"], values["errors.retry.delay.max.ms"]),
            tolerate_all=values["errors.tolerance"] == "all",
            log=values["errors.log.enable"],
            log_messages=values["errors.log.include.messages"],
            dead_letter_topic=values.get("errors.deadletterqueue.topic.name") or "",
            dead_letter_replication=values.get(
                "errors.deadletterqueue.topic.replication.factor", 3
            ),
            dead_letter_headers=values.get("errors.deadletterqueue.context.headers.enable", False),
        )


class StepFailed(Exception):
    """A step of a record's way failed: which one, in which class, with what."""

    def __init__(self, stage: Stage, plugin: object, error: Exception) -> None:
        super().__init__(stage.value)
        self.stage = stage
        self.plugin = plugin
        self.error = error


class ToleranceExceeded(ConnectError):
    """A record failed and errors are not tolerated."""


@dataclass(slots=True)
class ErrorCounts:
    """Connect's task-error-metrics."""

    failures: int = 0
    errors: int = 0
    skipped: int = 0
    retries: int = 0
    logged: int = 0
    dead_letter_requests: int = 0
    dead_letter_failures: int = 0


class Failures:
    """The error handling of one task."""

    def __init__(
        self,
        task: TaskId,
        settings: ErrorSettings,
        dead_letters: DeadLetters | None,
        stopping: threading.Event,
    ) -> None:
        self.settings = settings
        self.counts = ErrorCounts()
        self._task = task
        self._dead_letters = dead_letters
        self._stopping = stopping

    def retried(self, failed: StepFailed, again: Callable[[], T]) -> T:
        """The result of `again`, tried as long as the policy says; StepFailed if it does not help.

        A task that stops does not wait: the failure is final then.
        """
        started = time.monotonic()
        attempt = 1
        while is_retriable(failed.error):
            elapsed_ms = int((time.monotonic() - started) * 1000)
            delay_ms = self.settings.policy.delay_ms(attempt, elapsed_ms, random.random())
            if delay_ms is None or self._stopping.wait(delay_ms / 1000):
                break
            self.counts.retries += 1
            try:
                return again()
            except StepFailed as error:
                failed = error
                attempt += 1
        raise failed

    def handle(self, failed: StepFailed, record: Any) -> Any:
        """Report a failure that retries did not help. Returns what to wait for before offsets are
        committed, or None; raises ToleranceExceeded if the task must end."""
        self.counts.failures += 1
        self.counts.errors += 1
        if self.settings.log:
            self._log(failed, record)
        pending = None
        if self._dead_letters is not None and self.settings.tolerate_all:
            self.counts.dead_letter_requests += 1
            pending = self._dead_letters.send(failed, record)
        if not self.settings.tolerate_all or not is_tolerable(failed.stage, failed.error):
            raise ToleranceExceeded(
                f"Tolerance exceeded in error handler: {failed.stage.value} failed: {failed.error}"
            ) from failed.error
        self.counts.skipped += 1
        return pending

    def report(self, record: SinkRecord, error: BaseException) -> Any:
        """For the errant record reporter of a sink."""
        cause = error if isinstance(error, Exception) else ConnectError(str(error))
        self.counts.failures += 1
        self.counts.errors += 1
        failed = StepFailed(Stage.TASK_PUT, None, cause)
        if self.settings.log:
            self._log(failed, record)
        if not self.settings.tolerate_all:
            raise ToleranceExceeded(f"Error tolerance exceeded: {error}") from error
        self.counts.skipped += 1
        if self._dead_letters is None:
            return None
        self.counts.dead_letter_requests += 1
        return self._dead_letters.send(failed, record)

    def _log(self, failed: StepFailed, record: Any) -> None:
        self.counts.logged += 1
        shown = ""
        if self.settings.log_messages:
            shown = f", where {_described(record)}"
        logger.error(
            "Error encountered in task %s. Executing stage '%s' with class '%s'%s. %s: %s",
            self._task,
            failed.stage.value,
            _class_name(failed.plugin),
            shown,
            java_name(failed.error),
            failed.error,
        )


def _described(record: Any) -> str:
    if isinstance(record, SourceRecord):
        return f"source record is = {record}"
    topic, partition, offset = _origin(record)
    return f"consumed record is {{topic='{topic}', partition={partition}, offset={offset}}}"


def _class_name(plugin: object) -> str:
    if plugin is None:
        return ""
    return f"{type(plugin).__module__}.{type(plugin).__qualname__}"


def _origin(record: Any) -> tuple[str | None, int | None, int | None]:
    if isinstance(record, SinkRecord):
        return record.original_topic, record.original_partition, record.original_offset
    if isinstance(record, SourceRecord):
        return record.topic, record.partition, None
    return record.topic, record.partition, record.offset


class DeadLetters:
    """Sends failed records to a topic: as they were read, or for sources as JSON."""

    def __init__(
        self,
        task: TaskId,
        settings: ErrorSettings,
        producer: Producer,
        raw: Callable[[Any], tuple[bytes | None, bytes | None, Iterable[tuple[str, bytes | None]]]],
    ) -> None:
        """`raw` gives key, value and headers of a record."""
        self._task = task
        self._settings = settings
        self._producer = producer
        self._raw = raw

    def send(self, failed: StepFailed, record: Any) -> Any:
        key, value, headers = self._raw(record)
        sent = list(headers)
        if self._settings.dead_letter_headers:
            sent += self._context(failed, record)
        return self._producer.send(
            self._settings.dead_letter_topic,
            value,
            key,
            timestamp=_timestamp(record),
            headers=sent,
        )

    def _context(self, failed: StepFailed, record: Any) -> list[tuple[str, bytes | None]]:
        topic, partition, offset = _origin(record)
        error = failed.error
        found: dict[str, Any] = {}
        # A source record has no place in Kafka yet: where it was meant to go is all there is.
        found["topic"] = topic
        found["partition"] = partition
        found["offset"] = offset
        found["connector.name"] = self._task.connector
        found["task.id"] = self._task.task
        found["stage"] = failed.stage.value
        found["class.name"] = _class_name(failed.plugin)
        found["exception.class.name"] = java_name(error)
        found["exception.message"] = str(error)
        found["exception.stacktrace"] = "".join(traceback.format_exception(error))
        return [
            (HEADER_PREFIX + name, None if each is None else str(each).encode())
            for name, each in found.items()
        ]

    def close(self) -> None:
        self._producer.close(timeout=5)


def _timestamp(record: Any) -> int | None:
    found = record.timestamp
    return found if isinstance(found, int) and found >= 0 else None


def ensure_topic(admin_settings: Mapping[str, str], settings: ErrorSettings) -> None:
    """Create the dead-letter topic if it is not there."""
    topic = settings.dead_letter_topic
    with Admin(admin_settings) as admin:
        if topic in admin.list_topics():
            return
        try:
            admin.create_topics(
                [
                    NewTopic(
                        topic,
                        num_partitions=_PARTITIONS,
                        replication_factor=settings.dead_letter_replication,
                    )
                ]
            )
        except TopicExistsError:
            return
        except Exception as error:
            raise ConnectError(
                f"Could not create the dead-letter topic {topic} with a replication factor of "
                f"{settings.dead_letter_replication}: {error}. Set "
                "errors.deadletterqueue.topic.replication.factor, or create the topic"
            ) from error


def raw_consumer_record(
    record: ConsumerRecord[bytes, bytes] | SinkRecord,
) -> tuple[bytes | None, bytes | None, Iterable[tuple[str, bytes | None]]]:
    """As it was read."""
    found: Any = record
    if isinstance(record, SinkRecord):
        if record.raw is None:
            raise ConnectError("only records that were put can be reported")
        found = record.raw
    return found.key, found.value, list(found.headers or ())
