"""Driver, tasks and commits crash at any step, transactions time out, attempts that were given up
come back: afterwards every row of the input is in the committed output once.

The protocol's own generators run here against a model of a broker. A schedule decides after every
step who goes on; all crash points with all moments of a late return are tried one by one, longer
stories by a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.spark.sink.machine import protocol
from moldau.spark.sink.machine.log import SinksLog, decision_key, part_key
from moldau.spark.sink.machine.protocol import (
    BatchState,
    EndTransactions,
    Fence,
    InitProducer,
    ListOpen,
    Opened,
    ReadLog,
    StillOpen,
    TaskResult,
    Token,
    Transaction,
    Treatment,
    WriteDecision,
)

PREFIX = "sink"
QUERY = "query"
# By batch and task; a task without rows opens no transaction. The last batch has only one.
INPUT = {
    batch: {0: [f"{batch}a", f"{batch}b"], 1: [] if batch == 1 else [f"{batch}c"], 2: [f"{batch}d"]}
    for batch in range(3)
} | {3: {0: [], 1: ["3a", "3b"]}}
Action = Callable[[], Any]
Actor = Generator[Action, Any, Any]


class Fenced(Exception):
    """A request was refused for its producer id or epoch."""


class NoAnswer(Exception):
    """What was asked for may have been done; nobody knows."""


@dataclass
class Producing:
    producer_id: int
    epoch: int
    state: str = "Empty"
    rows: list[str] = field(default_factory=list)
    in_log: bool = False


class Cluster:
    """Transactions of one version, one output and the sinks' topic."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.ids: dict[str, Producing] = {}
        self.output: list[str] = []
        self.log: list[tuple[Any, ...]] = []

    def init(self, transactional_id: str, expected: Token | None = None) -> Token | None:
        known = self.ids.get(transactional_id)
        if known is None:
            known = self.ids[transactional_id] = Producing(len(self.ids), -1)
        elif expected is not None and expected != (known.producer_id, known.epoch):
            return None
        if known.state == "Ongoing":
            self._end(known, "CompleteAbort")
        known.epoch += 1
        known.state = "Empty"
        return Token(known.producer_id, known.epoch)

    def write(self, transactional_id: str, token: Token, rows: list[str]) -> None:
        self._current(transactional_id, token).rows += rows

    def write_log(self, transactional_id: str, token: Token, key: bytes, value: bytes) -> None:
        self._current(transactional_id, token).in_log = True
        self.log.append(("record", token, key, value))

    def _current(self, transactional_id: str, token: Token) -> Producing:
        known = self.ids[transactional_id]
        if (known.producer_id, known.epoch) != token:
            raise Fenced(transactional_id)
        known.state = "Ongoing"
        return known

    def end(self, transactional_id: str, token: Token, is_commit: bool) -> None:
        known = self.ids[transactional_id]
        wanted = "CompleteCommit" if is_commit else "CompleteAbort"
        # With version 2 the end of a transaction has moved the epoch on.
        ended = Token(known.producer_id, known.epoch - (self.version == 2))
        if known.state == wanted and token == ended:
            return
        if known.state != "Ongoing" or token != (known.producer_id, known.epoch):
            raise Fenced(transactional_id)
        self._end(known, wanted)
        known.epoch += self.version == 2

    def time_out(self, transactional_id: str) -> None:
        known = self.ids[transactional_id]
        if known.state == "Ongoing":
            self._end(known, "CompleteAbort")
            known.epoch += 1

    def _end(self, known: Producing, state: str) -> None:
        if state == "CompleteCommit":
            self.output += known.rows
        if known.in_log:
            self.log.append(("marker", known.producer_id, state == "CompleteCommit"))
        known.state, known.rows, known.in_log = state, [], False

    def read(self) -> SinksLog:
        found = SinksLog()
        for kind, *rest in self.log:
            if kind == "record":
                token, key, value = rest
                found.appended(*token, [(key, value)], is_transactional=True)
            else:
                found.ended(rest[0], is_commit=rest[1])
        return found

    def open_ids(self) -> list[str]:
        return [
            key
            for key, known in self.ids.items()
            if known.state == "Ongoing" and not key.endswith("coordinator")
        ]


def perform(cluster: Cluster, step: protocol.Step) -> Actor:
    """A step of the protocol in the smallest pieces that a crash can come between."""
    match step:
        case InitProducer(key, expected):
            return (yield lambda: cluster.init(key, expected))
        case ReadLog():
            return (yield cluster.read)
        case ListOpen():
            return (yield cluster.open_ids)
        case Fence(keys):
            for key in keys:
                yield lambda key=key: cluster.init(key)
            return None
        case StillOpen(transactions):

            def gone() -> frozenset[str]:
                return frozenset(
                    each.transactional_id
                    for each in transactions
                    if cluster.ids[each.transactional_id].state != "Ongoing"
                    or cluster.ids[each.transactional_id].epoch != each.producer_epoch
                )

            return (yield gone)
        case EndTransactions(transactions, is_commit):
            refused = set()
            for each in transactions:
                token = Token(each.producer_id, each.producer_epoch)
                try:
                    yield lambda key=each[0], token=token: cluster.end(key, token, is_commit)
                except Fenced:
                    refused.add(each.transactional_id)
            return frozenset(refused)
        case WriteDecision(prefix, decision):
            key, token = protocol.coordinator_id(prefix), decision.token
            record = decision_key(prefix), decision.to_json()
            yield lambda: cluster.write_log(key, token, *record)
            yield lambda: cluster.end(key, token, True)
            return None
    raise AssertionError(step)


def run(cluster: Cluster, steps: Generator[protocol.Step, Any, Any]) -> Actor:
    try:
        step = next(steps)
        while True:
            step = steps.send((yield from perform(cluster, step)))
    except StopIteration as end:
        return end.value


def task(cluster: Cluster, opened: Opened, batch: int, partition: int) -> Actor:
    rows = INPUT[batch][partition]
    known = {
        "prefix": PREFIX,
        "token": opened.token,
        "query_id": QUERY,
        "batch_id": batch,
        "partition": partition,
        "state": opened.partial_state(QUERY, batch),
    }
    if opened.treatment(QUERY, batch, partition) is Treatment.DISCARD:
        return TaskResult(**known, discarded_count=len(rows))
    if not rows:
        return TaskResult(**known)
    key = protocol.transactional_id(PREFIX, partition)
    token = yield lambda: cluster.init(key)
    for row in rows:
        yield lambda row=row: cluster.write(key, token, [row])
    yield lambda: cluster.write_log(key, token, part_key(key), b"{}")
    return TaskResult(
        **known,
        row_count=len(rows),
        digest=sum(map(hash, rows)),
        transaction=Transaction(key, *token, cluster.version),
    )


class World:
    """Spark: a driver with its tasks, a checkpoint, and who was given up but still runs."""

    def __init__(self, version: int) -> None:
        self.cluster = Cluster(version)
        self.committed_batch = -1
        self.late: list[Actor] = []
        self.known: Token | None = None
        self.driver = self._drive(None)
        self.value: Any = None
        self.step_count = 0
        self.restart_count = 0

    @property
    def is_done(self) -> bool:
        return self.committed_batch == max(INPUT)

    def _drive(self, known: Token | None) -> Actor:
        for batch in range(self.committed_batch + 1, len(INPUT)):
            opened = yield from run(self.cluster, protocol.open_attempt(PREFIX, known))
            self.known = known = opened.token
            results: list[TaskResult] = []
            try:
                for partition in INPUT[batch]:
                    # A second attempt of each task may run at any time, also much later.
                    self.late.append(task(self.cluster, opened, batch, partition))
                    results.append((yield from task(self.cluster, opened, batch, partition)))
                decision = protocol.plan(results)
                if decision is not None:
                    yield from run(self.cluster, protocol.commit(decision, PREFIX))
            except (Fenced, NoAnswer, protocol.BatchLostError):
                open_ones = tuple(each.transaction for each in results if each.transaction)
                yield from run(self.cluster, protocol.abort(PREFIX, opened.token, open_ones))
                raise
            # One action, so that a driver that was given up notes nothing afterwards.
            yield lambda batch=batch: self._note(batch)

    def _note(self, batch: int) -> None:
        self.committed_batch = max(self.committed_batch, batch)

    def advance(self, *, answered: bool = True) -> None:
        """A step of the driver; one that failed is started again, in the same process."""
        self.step_count += 1
        try:
            self.value = step_of(self.driver, self.value, answered=answered)
        except StopIteration:
            assert self.is_done
        except (Fenced, NoAnswer, protocol.BatchLostError):
            self.restart(is_same_process=True)

    def restart(self, *, is_same_process: bool = False) -> None:
        self.restart_count += 1
        assert self.restart_count < 200, "the query never gets on"
        self.driver, self.value = self._drive(self.known if is_same_process else None), None

    def crash(self) -> Actor:
        """The driver is dead for Spark; in truth it may only be slow."""
        abandoned = _resumed(self.driver, self.value)
        self.late.append(abandoned)
        self.restart()
        return abandoned

    def finish(self) -> None:
        self.late.clear()
        if self.is_done:
            # Nothing runs any more that could abort what late tasks have opened.
            for key in self.cluster.ids:
                self.cluster.time_out(key)
            return
        self.restart()
        while not self.is_done:
            self.advance()

    def check(self) -> None:
        wanted = sorted(row for parts in INPUT.values() for rows in parts.values() for row in rows)
        assert sorted(self.cluster.output) == wanted
        assert not self.cluster.open_ids(), "readers of committed records wait"


def _resumed(abandoned: Actor, value: Any) -> Actor:
    """A driver that goes on where it was. What it notes in a checkpoint is of no effect, for
    Spark's log of commits has a fence of its own."""
    error: Exception | None = None
    while True:
        try:
            action = abandoned.send(value) if error is None else abandoned.throw(error)
        except (StopIteration, Fenced, NoAnswer, protocol.SinkError):
            return
        error = None
        try:
            value = yield (lambda: None) if "_drive" in action.__qualname__ else action
        except (Fenced, NoAnswer) as caught:
            error = caught


def step_of(actor: Actor, value: Any, *, answered: bool = True) -> Any:
    """Let an actor go on to its next action, and do that."""
    action = actor.send(value)
    while True:
        try:
            result = action()
        except Fenced as error:
            action = actor.throw(error)
            continue
        if not answered:
            action = actor.throw(NoAnswer())
            answered = True
            continue
        return result


def advance_late(late: Actor, values: dict[Actor, Any]) -> bool:
    """Whether it has more to do."""
    try:
        values[late] = step_of(late, values.get(late))
    except (StopIteration, Fenced, NoAnswer, protocol.SinkError):
        return False
    return True


def clean_step_count(version: int) -> int:
    world = World(version)
    while not world.is_done:
        world.advance()
    world.check()
    return world.step_count


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("times_out", [False, True], ids=["in time", "after the timeout"])
def test_crash_at_every_step_and_return_at_every_later_one(version: int, times_out: bool) -> None:
    total = clean_step_count(version)
    for crash in range(total):
        for comeback in range(0, total, 2):
            world = World(version)
            for _ in range(crash):
                world.advance()
            abandoned = world.crash()
            if times_out:
                for key in list(world.cluster.ids):
                    world.cluster.time_out(key)
            for _ in range(comeback):
                if not world.is_done:
                    world.advance()
            values: dict[Actor, Any] = {}
            while advance_late(abandoned, values):
                pass
            while not world.is_done:
                world.advance()
            world.finish()
            world.check()


def play(seed: int, version: int) -> World:
    """A story of crashes, returns, timeouts and lost answers, by a seed."""
    choose = random.Random(seed)
    world = World(version)
    values: dict[Actor, Any] = {}
    for _ in range(choose.randrange(20, 160)):
        if world.is_done:
            break
        dice = choose.random()
        if dice < 0.72 or not world.late:
            world.advance(answered=choose.random() > 0.02)
        elif dice < 0.94:
            late = choose.choice(world.late[-8:])
            if not advance_late(late, values):
                world.late.remove(late)
        elif dice < 0.97:
            world.crash()
        else:
            world.cluster.time_out(choose.choice(sorted(world.cluster.ids)))
    world.finish()
    return world


@pytest.mark.parametrize("version", [1, 2])
def test_any_story_ends_with_every_row_once(version: int) -> None:
    for seed in range(500):
        world = play(seed, version)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"{seed=}") from error


def _notices(version: int) -> bool:
    for seed in range(500):
        try:
            play(seed, version).check()
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("version", [1, 2])
def test_model_notices_a_part_that_is_written_again(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchState, "treatment", lambda *_: Treatment.WRITE)
    assert _notices(version)


@pytest.mark.parametrize("version", [1, 2])
def test_model_notices_conclusions_from_the_coordinator_alone(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SinksLog, "holds", lambda *_: False)
    assert _notices(version)


def test_model_notices_a_driver_that_is_not_shut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(self: Cluster, transactional_id: str, token: Token) -> Producing:
        known = self.ids[transactional_id]
        is_current = (known.producer_id, known.epoch) == token
        if not is_current and not transactional_id.endswith("coordinator"):
            raise Fenced(transactional_id)
        known.state = "Ongoing"
        return known

    def end(self: Cluster, transactional_id: str, token: Token, is_commit: bool) -> None:
        if transactional_id.endswith("coordinator"):
            self._end(self.ids[transactional_id], "CompleteCommit")
        else:
            strict_end(self, transactional_id, token, is_commit)

    strict_end = Cluster.end
    monkeypatch.setattr(Cluster, "_current", accept)
    monkeypatch.setattr(Cluster, "end", end)
    assert _notices(1)
