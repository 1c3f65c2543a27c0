"""What is decided about a batch, and what the sinks' topic is understood to say."""

from __future__ import annotations

import pytest

from moldau.spark.sink.machine.log import SinksLog, part_key, partition_of
from moldau.spark.sink.machine.protocol import (
    BatchState,
    Decision,
    Part,
    PartState,
    RerunDiffersError,
    SinkError,
    TaskResult,
    Token,
    Transaction,
    Treatment,
    plan,
)

TOKEN = Token(3, 1)
PARTIAL = BatchState("q", 5, {0: PartState(True, 2, 11), 1: PartState(False, 1, 22)})


def result(
    partition: int,
    row_count: int = 0,
    digest: int = 0,
    *,
    discarded: int = 0,
    state: BatchState | None = None,
) -> TaskResult:
    transaction = Transaction(f"p-{partition}", 9, 0, 2) if row_count else None
    return TaskResult(
        "p", TOKEN, "q", 5, partition, row_count, digest, transaction, discarded, state
    )


def test_decision_names_the_tasks_that_wrote() -> None:
    decision = plan([result(1, 4, 7), result(0), result(2, 1, 8)])
    assert decision is not None
    assert [part.partition for part in decision.parts] == [1, 2]
    assert Decision.from_json(decision.to_json()) == decision


def test_nothing_written_is_nothing_to_decide() -> None:
    assert plan([result(0), result(1, discarded=3)]) is None
    assert plan([]) is None


def test_decision_of_a_later_release_is_not_guessed_at() -> None:
    with pytest.raises(SinkError, match="version 2"):
        Decision.from_json(b'{"version": 2}')


def test_rerun_keeps_what_is_done() -> None:
    decision = plan([result(0, discarded=2, state=PARTIAL), result(1, 1, 22, state=PARTIAL)])
    assert decision is not None
    assert decision.parts == (Part(0, 2, 11, None), Part(1, 1, 22, Transaction("p-1", 9, 0, 2)))


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ([result(0, discarded=2, state=PARTIAL), result(1, 1, 23)], "task 1 had other rows"),
        ([result(0, discarded=2, state=PARTIAL), result(1, 2, 22)], "task 1 had 1 rows and has 2"),
        ([result(0, discarded=2, state=PARTIAL), result(1)], "task 1 had 1 rows and has 0"),
        ([result(0, discarded=3, state=PARTIAL), result(1, 1, 22)], "task 0 had 2 rows and has 3"),
        (
            [result(0, discarded=2, state=PARTIAL), result(1, 1, 22), result(2, 1, 1)],
            "task 2 had 0 rows and has 1",
        ),
    ],
)
def test_rerun_that_differs(results: list[TaskResult], problem: str) -> None:
    with pytest.raises(RerunDiffersError) as caught:
        plan(results)
    assert problem in str(caught.value)
    assert "exactlyOnce set to false" in str(caught.value)


@pytest.mark.parametrize(
    ("query", "batch", "partition", "treatment"),
    [
        pytest.param("q", 5, 0, Treatment.DISCARD, id="done"),
        pytest.param("q", 5, 1, Treatment.WRITE, id="lost"),
        pytest.param("q", 6, 0, Treatment.WRITE, id="next batch"),
        pytest.param("q", 4, 0, Treatment.DISCARD, id="older checkpoint put back"),
        pytest.param("r", 5, 0, Treatment.WRITE, id="fresh checkpoint"),
    ],
)
def test_treatment(query: str, batch: int, partition: int, treatment: Treatment) -> None:
    assert PARTIAL.treatment(query, batch, partition) is treatment


def test_batch_lost_as_a_whole_is_written_as_a_whole() -> None:
    lost = BatchState("q", 5, {0: PartState(False, 2, 11)})
    assert lost.treatment("q", 5, 3) is Treatment.WRITE
    assert not lost.is_partial


def test_log_counts_what_is_committed() -> None:
    log = SinksLog()
    log.appended(7, 1, [(part_key("p-0"), b"x")], is_transactional=True)
    log.appended(8, 4, [(part_key("p-1"), b"y")], is_transactional=True)
    assert not log.holds("p-0", 7, 1)
    log.ended(8, is_commit=False)
    log.ended(7, is_commit=True)
    assert log.holds("p-0", 7, 1)
    assert not log.holds("p-0", 7, 0)
    assert not log.holds("p-1", 8, 4)
    log.appended(-1, -1, [(part_key("p-0"), None)], is_transactional=False)
    assert not log.holds("p-0", 7, 1)


def test_sinks_keep_their_partition() -> None:
    # What is written by one release is looked for there by the next.
    assert partition_of("moldau-spark-0123456789abcdef", 16) == 6
