"""The two-phase commit of a sink: what driver and tasks do, in which order, and what they conclude.

A sink is known by a prefix. Each task of a batch writes in a transaction of its own, of the
transactional id `<prefix>-<partition id>`, and leaves it open. The driver

1. opens an attempt (`open_attempt`) before the tasks of every batch: it takes the id and epoch of
   `<prefix>-coordinator` (the token), which shuts out every earlier driver; it brings the last
   decision to its end; and it aborts what earlier attempts left open.
2. commits (`commit`): it makes sure that all transactions are still open if there are several,
   writes the decision that names them in a transaction of the token's, and then commits each.
3. or gives up (`abort`).

These are generators: they yield what is to be done and are sent what came of it, so that a test can
stop them at every step. Invariants:

- A task's transaction is committed only if a decision names it. A decision is written only with the
  newest token, and after all transactions of the decision before have come to their end.
- A producer id and epoch stand for one transaction: every task asks for a new epoch.
- Whether a transaction was committed is known from the coordinator's answer to the commit, or from
  the record that the task left inside it (see `log`), never from the state of its transactional id,
  which a late task of an earlier attempt may have changed since.
- When a batch runs again, each part of it that was committed is discarded, and each that was lost
  is written; if some were committed, what is written must be what was lost.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from moldau.spark.sink.machine.log import SinksLog, decision_key

__all__ = [
    "BatchLostError",
    "BatchState",
    "Decision",
    "EndTransactions",
    "Fence",
    "InitProducer",
    "ListOpen",
    "Opened",
    "Part",
    "PartState",
    "ReadLog",
    "RerunDiffersError",
    "SinkError",
    "Step",
    "StillOpen",
    "TaskResult",
    "Token",
    "Transaction",
    "Treatment",
    "WriteDecision",
    "abort",
    "commit",
    "coordinator_id",
    "open_attempt",
    "plan",
    "transactional_id",
]

_VERSION = 1


class SinkError(Exception):
    """A batch cannot be written."""


class BatchLostError(SinkError):
    """Transactions ended before the batch was committed."""


class RerunDiffersError(SinkError):
    """A batch of which a part is committed gave other rows when it ran again."""


def coordinator_id(prefix: str) -> str:
    return f"{prefix}-coordinator"


def transactional_id(prefix: str, partition: int) -> str:
    return f"{prefix}-{partition}"


class Token(NamedTuple):
    """Producer id and epoch of the coordinator's transactional id: one attempt at a batch."""

    producer_id: int
    producer_epoch: int


class Transaction(NamedTuple):
    """A task's transaction. `version` is that of the protocol (`transaction.version`)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    version: int


class Part(NamedTuple):
    """What one task wrote. Without a transaction: committed by an earlier decision."""

    partition: int
    row_count: int
    digest: int
    transaction: Transaction | None


@dataclass(frozen=True, slots=True)
class Decision:
    """That the transactions of a batch are to be committed."""

    query_id: str
    batch_id: int
    token: Token
    parts: tuple[Part, ...]

    def to_json(self) -> bytes:
        parts = [[*part[:3], part.transaction and list(part.transaction)] for part in self.parts]
        return json.dumps(
            {
                "version": _VERSION,
                "queryId": self.query_id,
                "batchId": self.batch_id,
                "token": self.token,
                "parts": parts,
            }
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Decision:
        found: dict[str, Any] = json.loads(data)
        if found.get("version") != _VERSION:
            raise SinkError(
                f"the last decision of this sink has version {found.get('version')}, and this "
                f"release knows {_VERSION}: a newer release wrote it; go on with that one"
            )
        return cls(
            found["queryId"],
            found["batchId"],
            Token(*found["token"]),
            tuple(
                Part(partition, row_count, digest, transaction and Transaction(*transaction))
                for partition, row_count, digest, transaction in found["parts"]
            ),
        )


class PartState(NamedTuple):
    is_done: bool
    row_count: int
    digest: int


class Treatment(Enum):
    WRITE = "write"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class BatchState:
    """What became of the last batch that was decided about."""

    query_id: str
    batch_id: int
    parts: Mapping[int, PartState]

    @property
    def is_partial(self) -> bool:
        return len({part.is_done for part in self.parts.values()}) == 2

    @property
    def is_done(self) -> bool:
        return all(part.is_done for part in self.parts.values())

    def treatment(self, query_id: str, batch_id: int, partition: int) -> Treatment:
        """What a task does with its rows."""
        if query_id != self.query_id or batch_id > self.batch_id:
            return Treatment.WRITE
        if batch_id < self.batch_id or self.is_done:
            # An older checkpoint was put back, or the commit of the batch was not noted in it.
            return Treatment.DISCARD
        part = self.parts.get(partition)
        return Treatment.DISCARD if part is not None and part.is_done else Treatment.WRITE


@dataclass(frozen=True, slots=True)
class Opened:
    """An attempt, as it travels to the tasks."""

    prefix: str
    token: Token
    state: BatchState | None

    def treatment(self, query_id: str, batch_id: int, partition: int) -> Treatment:
        if self.state is None:
            return Treatment.WRITE
        return self.state.treatment(query_id, batch_id, partition)

    def partial_state(self, query_id: str, batch_id: int) -> BatchState | None:
        """What a run of this batch has to agree with."""
        state = self.state
        if state is None or (state.query_id, state.batch_id) != (query_id, batch_id):
            return None
        return state if state.is_partial else None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task reports. Without a transaction it wrote nothing."""

    prefix: str
    token: Token
    query_id: str
    batch_id: int
    partition: int
    row_count: int = 0
    digest: int = 0
    transaction: Transaction | None = None
    discarded_count: int = 0
    #: Only while a part of the same batch is committed and another is not.
    state: BatchState | None = None


# What the generators ask for.


class InitProducer(NamedTuple):
    """The next epoch of the coordinator's transactional id -> Token. If `expected` is given and
    another attempt has a later one: None."""

    transactional_id: str
    expected: Token | None = None


class ReadLog(NamedTuple):
    """Everything that the sinks' topic has up to its end -> SinksLog."""

    prefix: str


class EndTransactions(NamedTuple):
    """Commit or abort -> the transactional ids of those that could not be."""

    transactions: tuple[Transaction, ...]
    is_commit: bool


class Fence(NamedTuple):
    """Abort what is open of transactional ids, fence their users, and wait for the end."""

    transactional_ids: tuple[str, ...]


class ListOpen(NamedTuple):
    """The transactional ids of a sink's tasks with an open transaction."""

    prefix: str


class StillOpen(NamedTuple):
    """-> the transactional ids of those that are no longer."""

    transactions: tuple[Transaction, ...]


class WriteDecision(NamedTuple):
    """In a transaction with the token's id and epoch; raises if another attempt has a later one."""

    prefix: str
    decision: Decision


Step: TypeAlias = (
    InitProducer | ReadLog | EndTransactions | Fence | ListOpen | StillOpen | WriteDecision
)


def open_attempt(prefix: str, known: Token | None = None) -> Generator[Step, Any, Opened]:
    """Before the tasks of a batch. `known` is the token that this process was given last."""
    token: Token = yield InitProducer(coordinator_id(prefix))
    log: SinksLog = yield ReadLog(prefix)
    decision = last_decision(log, prefix)
    state = None
    if decision is not None:
        state = yield from _finish(prefix, decision, log)
    # After a batch that was decided about nothing is open but what late tasks may have opened,
    # which the next tasks shut out; brokers are asked for all transactions in other cases only.
    if decision is None or decision.token != known:
        left: list[str] = yield ListOpen(prefix)
        if left:
            yield Fence(tuple(left))
    return Opened(prefix, token, state)


def last_decision(log: SinksLog, prefix: str) -> Decision | None:
    entry = log.get(decision_key(prefix))
    return None if entry is None else Decision.from_json(entry.value)


def _finish(prefix: str, decision: Decision, log: SinksLog) -> Generator[Step, Any, BatchState]:
    """Bring a decision to its end: what is not known to be committed is committed, or lost."""
    unknown = [each for each in _transactions(decision.parts) if not log.holds(*each[:3])]
    refused: frozenset[str] = frozenset()
    if unknown:
        refused = yield EndTransactions(tuple(unknown), is_commit=True)
    if refused:
        # Their markers are in the log when nothing is open any more.
        yield Fence(tuple(sorted(refused)))
        log = yield ReadLog(prefix)
    parts = {}
    for part in decision.parts:
        each = part.transaction
        is_lost = each is not None and each.transactional_id in refused and not log.holds(*each[:3])
        parts[part.partition] = PartState(not is_lost, part.row_count, part.digest)
    return BatchState(decision.query_id, decision.batch_id, parts)


def plan(results: Iterable[TaskResult]) -> Decision | None:
    """What is to be decided about the tasks' work; None if they wrote nothing. Raises
    RerunDiffersError."""
    found = sorted(results, key=lambda each: each.partition)
    written = [each for each in found if each.transaction is not None]
    parts = [
        Part(each.partition, each.row_count, each.digest, each.transaction) for each in written
    ]
    state = next((each.state for each in found if each.state is not None), None)
    if state is not None:
        _check_rerun(state, found)
        parts += [
            Part(partition, part.row_count, part.digest, None)
            for partition, part in state.parts.items()
            if part.is_done
        ]
    if not written:
        return None
    first = written[0]
    return Decision(first.query_id, first.batch_id, first.token, tuple(sorted(parts)))


def _check_rerun(state: BatchState, results: Iterable[TaskResult]) -> None:
    again = {each.partition: each for each in results}
    differing = []
    for partition in sorted(again.keys() | state.parts.keys()):
        before, now = state.parts.get(partition), again.get(partition)
        if before is not None and before.is_done:
            if now is None or now.discarded_count != before.row_count:
                got = 0 if now is None else now.discarded_count
                differing.append(f"task {partition} had {before.row_count} rows and has {got}")
            continue
        old = (0, 0) if before is None else (before.row_count, before.digest)
        new = (0, 0) if now is None else (now.row_count, now.digest)
        if old != new:
            what = f"{old[0]} rows and has {new[0]}" if old[0] != new[0] else "other rows"
            differing.append(f"task {partition} had {what}")
    if differing:
        done = sum(part.is_done for part in state.parts.values())
        raise RerunDiffersError(
            f"batch {state.batch_id} was committed in {done} of {len(state.parts)} tasks, the "
            "transactions of the others ran out (transaction.timeout.ms) before they could be, "
            "and the batch gave other rows when it ran again: "
            + "; ".join(differing[:5])
            + ". To write them would make the topic neither what it was to be nor what it is to "
            "be now. Make the query give the same rows again (no random values, the settings of "
            "the first run), or run this batch once with the option exactlyOnce set to false, "
            "which writes all its rows, those that are there already a second time"
        )


def commit(decision: Decision, prefix: str) -> Generator[Step, Any, None]:
    """Both phases. Raises BatchLostError; then the batch has to run again."""
    transactions = tuple(_transactions(decision.parts))
    # What one part lost is lost as a whole, before a decision as well as after it: only of several
    # must none be committed that had to wait for another.
    gone: frozenset[str] = frozenset()
    if len(transactions) > 1:
        gone = yield StillOpen(transactions)
    if gone:
        raise BatchLostError(
            f"{_lost(decision, gone)} before the batch was committed; nothing of it is, and it "
            "can run again. If batches take longer than kafka.transaction.timeout.ms, raise it, "
            "and transaction.max.timeout.ms of the brokers"
        )
    yield WriteDecision(prefix, decision)
    refused: frozenset[str] = yield EndTransactions(transactions, is_commit=True)
    if refused:
        raise BatchLostError(
            f"{_lost(decision, refused)} while the batch was committed; what is missing is "
            "written when the batch runs again"
        )


def _lost(decision: Decision, ids: Iterable[str]) -> str:
    shown = sorted(ids)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return (
        f"batch {decision.batch_id}: the transactions of {', '.join(shown[:5])}{more} ended, by "
        "their timeout or because another attempt took the transactional id,"
    )


def abort(
    prefix: str, token: Token, transactions: tuple[Transaction, ...]
) -> Generator[Step, Any, None]:
    """After a failed attempt. What was decided is committed after all, the rest aborted, so that
    readers of committed records do not wait for timeouts."""
    renewed: Token | None = yield InitProducer(coordinator_id(prefix), token)
    if renewed is None:
        # There is a newer attempt, and that takes care of everything.
        return
    log: SinksLog = yield ReadLog(prefix)
    decision = last_decision(log, prefix)
    if decision is not None and decision.token == token:
        yield from _finish(prefix, decision, log)
    elif transactions:
        yield EndTransactions(transactions, is_commit=False)


def _transactions(parts: Iterable[Part]) -> list[Transaction]:
    return [part.transaction for part in parts if part.transaction is not None]
