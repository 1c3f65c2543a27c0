"""What follows from a record that was not delivered."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.errors import (
    AuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
)
from moldau.client.topics import TopicPartition
from moldau.streams import (
    ErrorResponse,
    Handlers,
    RecordContext,
    StreamsError,
    UnwrittenRecord,
    fail_on_error,
    skip_on_error,
)
from moldau.streams.errors import TaskMigratedError
from moldau.streams.hosts.deliveries import Deliveries, TaskCorruptedError
from moldau.streams.machine.error_handlers import Verdict
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.records import Produced, TaskCore

OUT = TopicPartition("out", 0)
TASK = TaskId(0, 1)
AWAY, TOO_LARGE = KafkaTimeoutError("the broker is away"), RecordTooLargeError("1 MB")


def retry(*_: object) -> str:
    return "retry"


def after(handler: Any, error: KafkaError, *, exactly_once: bool = False) -> Deliveries:
    """One record of a task has failed."""
    made = Deliveries(Handlers(production=handler), exactly_once=exactly_once)
    if made.asks:
        record = Produced("out", b"k", b"v", 0, ())
        made.watch(TaskCore(0), TASK, record)(None, error)
    made.on_failed(OUT, error)
    return made


@pytest.mark.parametrize(
    ("handler", "error", "raised"),
    [
        pytest.param(None, AWAY, TaskCorruptedError, id="by default what may pass is retried"),
        pytest.param(None, NotEnoughReplicasError("one"), TaskCorruptedError, id="too few"),
        pytest.param(None, TOO_LARGE, StreamsError, id="what cannot pass is not"),
        pytest.param(fail_on_error, AWAY, StreamsError, id="the handler says fail"),
        pytest.param(retry, AWAY, TaskCorruptedError, id="a handler of one's own says retry"),
        pytest.param(retry, TOO_LARGE, StreamsError, id="what cannot pass is not retried"),
        pytest.param(
            lambda *_: ErrorResponse("retry"), AWAY, TaskCorruptedError, id="as a response"
        ),
        pytest.param(skip_on_error, AuthorizationError("no"), StreamsError, id="nobody is asked"),
        pytest.param(
            skip_on_error, OutOfOrderSequenceError("7"), TaskMigratedError, id="another took over"
        ),
        pytest.param(lambda *_: "again", AWAY, StreamsError, id="no answer"),
    ],
)
def test_what_follows(handler: Any, error: KafkaError, raised: type[Exception]) -> None:
    made = after(Handlers().production if handler is None else handler, error)
    assert made.has_failure
    with pytest.raises(StreamsError) as found:
        made.check()
    assert type(found.value) is raised
    made.check()


def test_a_skipped_record_is_counted_and_nothing_else_follows() -> None:
    made = after(skip_on_error, TOO_LARGE)
    assert [task_id for _, task_id, _ in made.take_skipped()] == [TASK]
    made.check()


def test_tasks_are_named_where_each_record_is_asked_for() -> None:
    with pytest.raises(TaskCorruptedError) as asked:
        after(retry, AWAY).check()
    assert (asked.value.tasks, asked.value.partitions) == ({TASK}, frozenset())
    with pytest.raises(TaskCorruptedError) as by_default:
        after(Handlers().production, AWAY).check()
    assert (by_default.value.tasks, by_default.value.partitions) == (frozenset(), {OUT})


def test_the_first_error_of_a_transaction_decides() -> None:
    made = after(Handlers().production, AWAY, exactly_once=True)
    made.on_failed(OUT, TOO_LARGE)
    with pytest.raises(TaskCorruptedError):
        made.check()


def test_without_a_transaction_an_error_that_cannot_pass_decides() -> None:
    made = after(Handlers().production, AWAY)
    made.on_failed(OUT, TOO_LARGE)
    with pytest.raises(StreamsError, match="1 MB"):
        made.check()


def test_a_handler_is_told_of_the_input_record() -> None:
    asked: list[UnwrittenRecord] = []

    def skip(topic: str, record: UnwrittenRecord, error: Exception) -> Verdict:
        asked.append(record)
        return "continue"

    made = Deliveries(Handlers(production=skip), exactly_once=False)
    core = TaskCore(0)
    core.record_context = RecordContext("in", 2, 7, 5, ())
    core.raw_value = b"raw"
    delivered = made.watch(core, TASK, Produced("out", b"k", b"v", 6, ()))
    # Records are acknowledged later: by then the task is somewhere else.
    core.record_context = RecordContext("in", 2, 8, 6, ())
    delivered(None, TOO_LARGE)
    (record,) = asked
    assert (record.key, record.value, record.timestamp) == (b"k", b"v", 6)
    assert (record.where.offset, record.where.raw_value) == (7, b"raw")
    assert record.where.task_id == "0_1"
