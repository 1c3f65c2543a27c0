"""However late batches, answers and markers are, no batch joins a transaction that is not its own.

A producer, a partition and a coordinator, with everything between them delayed at will: batches
arrive long after their producer has given up on them, the coordinator's answers are overtaken by
its markers, requests are sent twice. The partition's rules are the real ones.

With transaction version 2 a batch enters its own transaction or none. With version 1 an epoch
spans many transactions, and a batch may enter a later one that has the partition too; but never
does it open a transaction that nobody ends.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from moldau.broker.log.machine.producer_state import ONGOING, ProducerStates, Verification
from moldau.wire.errors import ApiError

PID = 7


@dataclass
class Batch:
    transaction: int
    epoch: int
    sequence: int
    guard: Verification | None = None


@dataclass
class Coordinator:
    version: int
    epoch: int = 0
    transaction: int = 0
    has_partition: bool = False
    ending: bool = False
    """Decided, but the marker is still on its way."""

    def answer(self, batch: Batch) -> bool:
        """May the batch's partition take part in the ongoing transaction?"""
        if batch.epoch != self.epoch or self.ending:
            return False
        if self.version == 2:
            self.has_partition = True
        return self.has_partition


@dataclass
class World:
    version: int
    coordinator: Coordinator = field(init=False)
    states: ProducerStates = field(default_factory=ProducerStates)
    sequence: int = 0
    travelling: list[Batch] = field(default_factory=list)
    asked: list[Batch] = field(default_factory=list)
    answered: list[tuple[Batch, bool]] = field(default_factory=list)
    offset: int = 0
    entered: list[tuple[int, int]] = field(default_factory=list)
    """The transaction a batch was of, and the one it entered."""

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(self.version)

    # What may happen next, in any order; `choice` picks among what is under way.

    def send(self, choice: int) -> None:
        coordinator = self.coordinator
        if coordinator.ending:
            return
        if self.version == 1:
            # An older client adds the partition before it sends to it.
            coordinator.has_partition = True
        batch = Batch(coordinator.transaction, coordinator.epoch, self.sequence)
        self.sequence += 1
        self.travelling += [batch, Batch(batch.transaction, batch.epoch, batch.sequence)]

    def arrive(self, choice: int) -> None:
        if not self.travelling:
            return
        batch = self.travelling.pop(choice % len(self.travelling))
        try:
            batch.guard = self.states.start_verification(
                PID,
                batch.epoch,
                batch.sequence,
                supports_epoch_bump=self.version == 2,
                now_ms=0,
            )
        except ApiError:
            return
        if batch.guard is ONGOING:
            self.append(batch)
        else:
            self.asked.append(batch)

    def ask(self, choice: int) -> None:
        if self.asked:
            batch = self.asked.pop(choice % len(self.asked))
            self.answered.append((batch, self.coordinator.answer(batch)))

    def hear(self, choice: int) -> None:
        if self.answered:
            batch, agreed = self.answered.pop(choice % len(self.answered))
            if agreed:
                self.append(batch)

    def end(self, choice: int) -> None:
        """The transaction is committed, aborted, or has timed out."""
        coordinator = self.coordinator
        if not coordinator.ending:
            coordinator.ending = True
            if self.version == 2:
                coordinator.epoch += 1
                self.sequence = 0

    def mark(self, choice: int) -> None:
        coordinator = self.coordinator
        if not coordinator.ending:
            return
        if coordinator.has_partition:
            self.states.check_marker(PID, coordinator.epoch, 0, self.version)
            completed = self.states.record_marker(
                PID,
                coordinator.epoch,
                coordinator_epoch=0,
                offset=self.offset,
                timestamp=0,
                aborted=True,
            )
            if completed is not None:
                self.states.complete(completed)
            self.offset += 1
            self.states.on_high_watermark(self.offset)
        coordinator.ending = coordinator.has_partition = False
        coordinator.transaction += 1

    def append(self, batch: Batch) -> None:
        states = self.states
        if states.find_duplicate(PID, batch.epoch, batch.sequence, batch.sequence):
            return
        try:
            states.check(PID, batch.epoch, batch.sequence, transactional=True, guard=batch.guard)
        except ApiError:
            return
        states.record_batch(
            PID,
            batch.epoch,
            batch.sequence,
            first_offset=self.offset,
            last_offset=self.offset,
            timestamp=0,
            transactional=True,
        )
        self.offset += 1
        self.states.on_high_watermark(self.offset)
        self.entered.append((batch.transaction, self.coordinator.transaction))

    def check(self, seed: int = 0) -> None:
        open_here = self.states.first_unstable_offset is not None
        assert not open_here or self.coordinator.has_partition, f"{seed=}: a transaction hangs"
        if self.version == 2:
            strays = [(own, entered) for own, entered in self.entered if own != entered]
            assert not strays, f"{seed=}: batches entered another transaction"


STEPS = ("send", "arrive", "ask", "hear", "end", "mark")


@pytest.mark.parametrize("version", [1, 2])
def test_no_batch_joins_a_transaction_that_is_not_its_own(version: int) -> None:
    for seed in range(2_000):
        chance = random.Random(seed)
        world = World(version)
        for _ in range(60):
            getattr(world, chance.choice(STEPS))(chance.randrange(10))
            world.check(seed)


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_on_time_gets_in(version: int) -> None:
    """The rules above would also hold for a partition that takes nothing."""
    world = World(version)
    for transaction in range(3):
        for _ in range(2):
            for step in ("send", "arrive", "ask", "hear", "arrive"):
                getattr(world, step)(0)
        assert world.entered == [(each, each) for each in range(transaction + 1) for _ in range(2)]
        world.end(0)
        world.mark(0)
        world.check()
