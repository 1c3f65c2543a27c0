"""Random clients, zombies, repeated and late requests, failing markers, doubtful writes, crashes.

The shard is driven by requests whose answers may be lost, over a log whose end a crash may cut,
against partitions that refuse old epochs as real ones do. Checked all the way: what is reloaded
equals what is live, producers only go forward, no two of them share an epoch. Checked in the
end: every transaction had exactly one decision, its own client asked for it if it is a commit,
who was told was told the truth, and every partition with records got that marker.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moldau.broker.coordinator.transaction.machine.events import AbortTimedOut, SendMarkers
from moldau.broker.coordinator.transaction.machine.metadata import (
    EPOCH_MAX,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import TransactionLogKey, TransactionLogValue
from moldau.wire.record_values import decode_coordinator_record
from support.transaction_stage import Reply, TransactionStage

IDS = ("a", "b")
PARTITIONS = (0, 1, 2)
STEPS = 350
Tag = int
"""Stands for one transaction as a client sees it."""


@dataclass
class Batch:
    """Records of one client transaction in one partition, until a marker ends them."""

    tag: Tag
    begun_at: int
    """Offset of the record that began the coordinator's transaction."""


@dataclass
class Producer:
    epoch: int = -1
    open: list[Batch] = field(default_factory=list)


@dataclass
class Client:
    transactional_id: str
    version: int = 2
    producer: tuple[int, int] | None = None
    tag: Tag = -1
    written: bool = False
    reply: Reply | None = None
    request: str = ""
    partition: int = 0
    committed: bool = True
    broken: bool = False


@dataclass
class Sender:
    prepared: TransactionMetadata
    begun_at: int
    remaining: set[TopicPartition]
    completing: Reply | None = None


class World:
    def __init__(self, seed: int, level: int | None) -> None:
        """A level of None: it is raised and lowered under way, and clients differ."""
        self.random = random.Random(seed)
        self.stage = TransactionStage(level or 2, transactional_id_expiration_ms=10**12)
        self.level = level
        for each in IDS:
            self.stage.init(each, timeout_ms=20_000)
            near = replace(self.stage.metadata(each), producer_epoch=EPOCH_MAX - 6)
            record = near.to_record(level or 2)
            self.stage.shard.replay(len(self.stage.written), -1, record.key, record.value)
            self.stage.written.append(record.encode())
        self.stage.commit()
        self.stage.holding = True
        self.clients: list[Client] = []
        self.senders: list[Sender] = []
        self.partitions = [dict[int, Producer]() for _ in PARTITIONS]
        self.late: list[tuple[str, tuple[Any, ...]]] = []
        self.tags = 0
        self.tag_client: dict[Tag, Client] = {}
        self.asked_to_commit: set[Tag] = set()
        self.told: dict[Tag, bool] = {}
        self.tags_in: dict[int, set[Tag]] = {}
        self.outcomes: dict[int, dict[tuple[int, Tag], bool]] = {}
        self.owners: dict[tuple[int, int], Client] = {}
        self.decisions: dict[tuple[int, int], bool] = {}

    # The log.

    def history(self, transactional_id: str) -> list[tuple[int, TransactionMetadata]]:
        found = []
        for offset, (key, value) in enumerate(self.stage.written):
            name, message = decode_coordinator_record("transaction", key, value)
            assert isinstance(name, TransactionLogKey)
            assert isinstance(message, TransactionLogValue)
            if name.transactional_id == transactional_id:
                found.append((offset, TransactionMetadata.from_value(transactional_id, message)))
        return found

    def begun_at(self, transactional_id: str) -> int:
        """Where the coordinator's current or last transaction began."""
        begun = -1
        before = None
        for offset, metadata in self.history(transactional_id):
            begins = metadata.state is ONGOING and before is not ONGOING
            if begins or (metadata.state in PREPARED and before is not ONGOING):
                begun = offset
            before = metadata.state
        return begun

    # Steps.

    def step(self) -> None:
        (action,) = self.random.choices(
            [self.act, self.commit, self.give_up, self.crash, self.send, self.pass_time,
             self.newcomer, self.deliver_late, self.fail_append, self.change_level],
            [30, 25, 2, 2, 25, 3, 3, 6, 2, 1],
        )  # fmt: skip
        action()
        self.take_actions()
        for client in self.clients:
            self.hear(client)

    def act(self) -> None:
        ready = [each for each in self.clients if each.reply is None and not each.broken]
        if not ready:
            self.newcomer()
            return
        client = self.random.choice(ready)
        if client.producer is None:
            self.ask_init(client, None)
        elif not client.written:
            self.ask_add(client, self.random.choice(PARTITIONS))
        else:
            roll = self.random.random()
            if roll < 0.4:
                self.ask_add(client, self.random.choice(PARTITIONS))
            elif roll < 0.95:
                self.ask_end(client, self.random.random() < 0.7)
            else:
                self.ask_init(client, client.producer)

    def newcomer(self) -> None:
        if len(self.clients) > 6:
            self.clients.pop(0)
        level = self.level or self.random.choice((1, 2))
        client = Client(self.random.choice(IDS), version=2 if level == 2 else 0)
        self.clients.append(client)
        self.new_tag(client)

    def new_tag(self, client: Client) -> None:
        self.tags += 1
        client.tag, client.written = self.tags, False
        self.tag_client[self.tags] = client

    def ask_init(self, client: Client, expected: tuple[int, int] | None) -> None:
        client.request = "recover" if expected else "init"
        client.reply = self.stage.start_init(
            client.transactional_id, expected=expected, timeout_ms=20_000
        )

    def ask_add(self, client: Client, partition: int) -> None:
        assert client.producer is not None
        client.request, client.partition = "add", partition
        client.reply = self.stage.start_add(
            client.producer,
            partition,
            transactional_id=client.transactional_id,
            version=client.version,
        )
        if client.version >= 2 and self.random.random() < 0.3:
            self.late.append(
                ("produce", (client.transactional_id, client.producer, partition, client.tag))
            )

    def ask_end(self, client: Client, committed: bool) -> None:
        assert client.producer is not None
        client.request, client.committed = "end", committed
        if committed:
            self.asked_to_commit.add(client.tag)
        client.reply = self.stage.start_end(
            client.producer,
            committed,
            transactional_id=client.transactional_id,
            version=client.version,
        )
        if client.version >= 2 and self.random.random() < 0.5:
            self.late.append(("end", (client.transactional_id, client.producer, committed)))

    def deliver_late(self) -> None:
        """A copy of an earlier request turns up. Below version 2 nothing could tell it from a
        new one, which is why there is a version 2."""
        if not self.late:
            return
        kind, copy = self.late.pop(self.random.randrange(len(self.late)))
        if kind == "end":
            transactional_id, producer, committed = copy
            self.stage.start_end(producer, committed, transactional_id=transactional_id, version=2)
            return
        transactional_id, producer, partition, tag = copy
        reply = self.stage.start_add(
            producer, partition, transactional_id=transactional_id, version=2
        )
        if isinstance(reply.outcome, tuple):
            self.append(transactional_id, producer, partition, tag)

    def append(
        self, transactional_id: str, producer: tuple[int, int], partition: int, tag: Tag
    ) -> None:
        known = self.partitions[partition].setdefault(producer[0], Producer())
        if producer[1] < known.epoch:
            return
        known.epoch = producer[1]
        begun_at = self.begun_at(transactional_id)
        known.open.append(Batch(tag, begun_at))
        self.tags_in.setdefault(begun_at, set()).add(tag)

    def hear(self, client: Client) -> None:
        if not client.reply:
            return
        outcome, client.reply = client.reply.outcome, None
        if self.random.random() < 0.1:
            # The answer is lost. A client that recovers asks the same again.
            if client.request == "end":
                self.ask_end(client, client.committed)
            elif client.request == "recover":
                self.ask_init(client, client.producer)
            return
        if isinstance(outcome, tuple):
            self.on_success(client, outcome)
        elif outcome in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            if client.request == "end":
                self.ask_end(client, client.committed)
            elif client.request == "recover":
                self.ask_init(client, client.producer)
        else:
            client.broken = True

    def on_success(self, client: Client, outcome: tuple[int, int]) -> None:
        match client.request:
            case "init" | "recover":
                self.own(client, outcome)
                self.new_tag(client)
            case "add":
                assert client.producer is not None
                if client.version < 2:
                    # As the partition's leader does it: asked again right before the append.
                    verified = self.stage.verify(
                        client.producer, client.partition, transactional_id=client.transactional_id
                    )
                    if verified != {("topic", client.partition): ErrorCode.NONE}:
                        return
                self.append(client.transactional_id, client.producer, client.partition, client.tag)
                client.written = True
            case "end":
                assert self.told.setdefault(client.tag, client.committed) == client.committed
                if client.version >= 2:
                    self.own(client, outcome)
                self.new_tag(client)

    def own(self, client: Client, producer: tuple[int, int]) -> None:
        assert producer[1] < EPOCH_MAX, "that epoch is the coordinator's"
        assert self.owners.setdefault(producer, client) is client, "two with one epoch"
        client.producer = producer

    def commit(self) -> None:
        self.stage.append_error = ErrorCode.NONE
        self.stage.commit()

    def give_up(self) -> None:
        self.stage.give_up()

    def change_level(self) -> None:
        if self.level is None:
            self.stage.transaction_version = self.random.choice((1, 2))

    def fail_append(self) -> None:
        self.stage.append_error = ErrorCode.NOT_ENOUGH_REPLICAS

    def crash(self) -> None:
        assert self.stage.reloaded().transactions == self.stage.shard.transactions
        self.stage.append_error = ErrorCode.NONE
        kept = self.random.randint(self.stage.committed_count, len(self.stage.written))
        self.stage.crash(kept)
        self.senders.clear()
        for client in self.clients:
            if client.reply is not None and not client.reply:
                client.reply = Reply(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def pass_time(self) -> None:
        self.stage.advance(self.random.choice([10, 600, 10_000]))

    def take_actions(self) -> None:
        while self.stage.actions:
            match self.stage.actions.pop(0):
                case AbortTimedOut(transactional_ids):
                    for each in transactional_ids:
                        self.stage.abort_timed_out(each)
                case SendMarkers(prepared):
                    self.on_decided(prepared)

    def on_decided(self, prepared: TransactionMetadata) -> None:
        offset, stored = self.history(prepared.transactional_id)[-1]
        assert stored == prepared
        assert offset < self.stage.committed_count, "told before it is certain"
        committed = prepared.state is PREPARE_COMMIT
        if prepared.client_transaction_version >= 2:
            assert self.decisions.setdefault(prepared.producer, committed) == committed
        assert not any(
            each.prepared.transactional_id == prepared.transactional_id
            and self.stage.shard.is_current(each.prepared)
            for each in self.senders
        ), "two of them send at once"
        begun_at = self.begun_at(prepared.transactional_id)
        self.senders.append(Sender(prepared, begun_at, set(prepared.partitions)))

    def send(self) -> None:
        if not self.senders:
            return
        sender = self.random.choice(self.senders)
        if not self.stage.shard.is_current(sender.prepared):
            self.senders.remove(sender)
            return
        for place in sorted(sender.remaining):
            if self.random.random() < 0.6:
                self.mark(sender, place[1])
                sender.remaining.discard(place)
        if not sender.remaining and (sender.completing is None or sender.completing):
            sender.completing = self.stage.complete(sender.prepared)

    def mark(self, sender: Sender, partition: int) -> None:
        marker = sender.prepared
        known = self.partitions[partition].setdefault(marker.producer_id, Producer())
        if marker.client_transaction_version >= 2:
            again = marker.producer_epoch == known.epoch and not known.open
            assert marker.producer_epoch > known.epoch or again, "a marker is refused"
        else:
            assert marker.producer_epoch >= known.epoch, "a marker is refused"
        known.epoch = marker.producer_epoch
        committed = marker.state is PREPARE_COMMIT
        for batch in known.open:
            assert batch.begun_at == sender.begun_at, "a marker ends a foreign transaction"
            outcomes = self.outcomes.setdefault(batch.begun_at, {})
            assert outcomes.setdefault((partition, batch.tag), committed) == committed
        known.open.clear()

    # The end.

    def settle(self) -> None:
        for _ in range(200):
            self.commit()
            self.stage.advance(10_000)
            self.take_actions()
            self.send()
        assert not any(
            metadata.state is ONGOING or metadata.state in PREPARED
            for metadata in self.stage.shard.transactions.values()
        )

    def check(self) -> None:
        for partition in self.partitions:
            assert not any(each.open for each in partition.values()), "readers wait for ever"
        for begun_at, outcomes in self.outcomes.items():
            assert len(set(outcomes.values())) == 1, f"{begun_at} is partly visible"
        for begun_at, tags in self.tags_in.items():
            assert begun_at in self.outcomes
            (committed,) = set(self.outcomes[begun_at].values())
            if any(self.tag_client[tag].version >= 2 for tag in tags):
                assert len(tags) == 1, "a late message entered a new transaction"
            if committed:
                assert tags <= self.asked_to_commit
            for tag in tags & self.told.keys():
                assert self.told[tag] == committed, "the client was told otherwise"
        for each in IDS:
            seen: list[int] = []
            before = (-1, -1)
            for _, metadata in self.history(each):
                if metadata.producer_id != before[0]:
                    assert metadata.producer_id not in seen
                    seen.append(metadata.producer_id)
                else:
                    assert metadata.producer_epoch >= before[1]
                before = metadata.producer
        assert self.stage.reloaded().transactions == self.stage.shard.transactions


@pytest.mark.parametrize("level", [1, 2, None])
@pytest.mark.parametrize("seed", range(25))
def test_one_decision_for_everybody(seed: int, level: int | None) -> None:
    world = World(seed, level)
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.check()
    assert len(world.outcomes) > 1, "the world must not stand still"
