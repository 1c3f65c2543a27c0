"""Many quorum machines over a bad network and bad disks, in virtual time, from one seed.

Each node is the real QuorumMachine with a log in memory. Requests and answers are lost, delayed and
doubled; nodes are cut off, crash and lose what they had not synced. After every step the world
checks what a quorum promises; `Broken` names the promise.
"""

from __future__ import annotations

import heapq
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.quorum.roles import Leader
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    Peer,
    Reply,
    Request,
    SnapshotReply,
    VoterAdditionAsked,
    VoterRemovalAsked,
)
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.snapshots import SnapshotId
from moldau.wire.errors import ErrorCode

LISTENER = "CONTROLLER"
REQUEST_TIMEOUT_MS = 2000


class Broken(AssertionError):
    """A promise of the quorum is broken."""


@dataclass(frozen=True, slots=True)
class Entry:
    epoch: int
    payload: Any


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    payloads: tuple[Any, ...]
    kraft_version: int
    voters: VoterSet | None


class MemoryLog:
    """A log in memory that knows which part of it would survive a power failure."""

    def __init__(self, *, keep_diverging: bool = False) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.synced_offset = 0
        self.stored: dict[SnapshotId, StoredSnapshot] = {}
        self._keep_diverging = keep_diverging
        # What a truncation that is not synced yet might bring back at a crash.
        self._cut_off: list[Entry] = []

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def snapshots(self) -> list[SnapshotId]:
        return sorted(self.stored)

    @property
    def last_epoch(self) -> int:
        if self.entries:
            return self.entries[-1].epoch
        return self.snapshots[-1].epoch if self.stored else 0

    def end_of_epoch(self, epoch: int) -> EndOfEpoch:
        if self._keep_diverging:
            return EndOfEpoch(epoch=epoch, end_offset=self.end_offset)
        known = [x.epoch for x in self.entries if x.epoch <= epoch]
        if not self.entries or epoch > self.entries[-1].epoch:
            return EndOfEpoch(epoch=self.last_epoch, end_offset=self.end_offset)
        if not known:
            if self.stored and self.snapshots[0].epoch <= epoch:
                oldest = self.snapshots[0]
                return EndOfEpoch(epoch=oldest.epoch, end_offset=self.start_offset)
            return EndOfEpoch(epoch=epoch, end_offset=self.start_offset)
        return EndOfEpoch(epoch=known[-1], end_offset=self.start_offset + len(known))

    def entry(self, offset: int) -> Entry | None:
        index = offset - self.start_offset
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def append(self, entries: list[Entry]) -> int:
        offset = self.end_offset
        self.entries += entries
        return offset

    def truncate_to(self, offset: int) -> None:
        index = offset - self.start_offset
        self._cut_off = self.entries[index:]
        del self.entries[index:]
        self.synced_offset = min(self.synced_offset, offset)

    def sync(self, offset: int) -> None:
        self.synced_offset = max(self.synced_offset, min(offset, self.end_offset))
        self._cut_off = []

    def install(self, snapshot_id: SnapshotId, snapshot: StoredSnapshot) -> None:
        self.stored = {snapshot_id: snapshot}
        self.start_offset = self.synced_offset = snapshot_id.end_offset
        self.entries, self._cut_off = [], []

    def compact(self, snapshot_id: SnapshotId, snapshot: StoredSnapshot) -> None:
        """Take a snapshot and drop the log before the one before it."""
        older = self.snapshots[-1:]
        self.stored[snapshot_id] = snapshot
        for old in older:
            if old.end_offset > self.start_offset:
                del self.entries[: old.end_offset - self.start_offset]
                self.start_offset = old.end_offset
            self.stored = {i: s for i, s in self.stored.items() if i >= old}

    def lose_power(self, rng: random.Random) -> None:
        kept = rng.randint(self.synced_offset, self.end_offset)
        if self._cut_off and kept == self.end_offset and rng.random() < 0.5:
            self.entries += self._cut_off
        else:
            del self.entries[kept - self.start_offset :]
        self._cut_off = []
        self.synced_offset = min(self.synced_offset, self.end_offset)


@dataclass
class Faults:
    """What to do wrong on purpose."""

    forget_vote: bool = False  # a vote is granted but not remembered
    lose_vote_file: bool = False  # a restart forgets whom it voted for
    commit_older_epoch: bool = False
    acknowledge_before_sync: bool = False
    keep_diverging: bool = False  # logs are not compared, so nothing is cut


def forget_votes(machine: QuorumMachine) -> None:
    def record_vote(candidate: ReplicaKey) -> None:
        pass

    machine.state.record_vote = record_vote  # type: ignore[method-assign]


@dataclass
class Node:
    key: ReplicaKey
    log: MemoryLog
    election: Election = field(default_factory=Election)
    machine: QuorumMachine | None = None
    incarnation: int = 0
    alarm_ms: int = -1
    incoming: list[bytes] = field(default_factory=list)
    committed: int = 0


class World:
    def __init__(
        self,
        seed: int,
        *,
        voters: int = 3,
        observers: int = 0,
        dynamic: bool = False,
        faults: Faults | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.faults = faults or Faults()
        self.now_ms = 0
        self.loss = 0.0
        self.delay_ms_max = 10
        self.doubling = 0.0
        self.batch_max = 5
        self.falls_after_vote = 0.0
        self.cut: set[tuple[int, int]] = set()
        self.dynamic = dynamic
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._token = 0
        self._answers: dict[int, Callable[[Reply], None]] = {}
        self._proposed = 0
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, Entry] = {}
        self.commit_count = 0
        self.changes_done = 0
        self.nodes: dict[int, Node] = {}
        ids = range(1, voters + observers + 1)
        for i in ids:
            log = MemoryLog(keep_diverging=self.faults.keep_diverging)
            self.nodes[i] = Node(ReplicaKey(i, UUID(int=i * 100)), log)
        self.first_voters = VoterSet.of(self.voter_of(i) for i in range(1, voters + 1))
        if dynamic:
            for i in range(1, voters + 1):
                first = StoredSnapshot((), 1, self.first_voters)
                self.nodes[i].log.stored[SnapshotId(0, 0)] = first
        for i in ids:
            self.start(i)

    def voter_of(self, node_id: int) -> Voter:
        end = VoterEndpoint(name=LISTENER, host=f"node-{node_id}", port=node_id)
        key = self.nodes[node_id].key if self.dynamic else ReplicaKey(node_id)
        return Voter(key=key, endpoints=(end,))

    # Life -------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        static = VoterSet() if self.dynamic else self.first_voters
        history = VoterHistory(static)
        known = 0
        if node.log.stored:
            newest = node.log.snapshots[-1]
            stored = node.log.stored[newest]
            known = newest.end_offset
            history.reset(known - 1, stored.kraft_version, stored.voters)
        for offset in range(max(known, node.log.start_offset), node.log.end_offset):
            entry = node.log.entry(offset)
            if entry is not None and isinstance(entry.payload, VoterSet):
                history.add_kraft_version(offset, 1)
                history.add_voters(offset, entry.payload)
        election = node.election
        if self.faults.lose_vote_file:
            election = Election(epoch=election.epoch, leader_id=election.leader_id)
        settings = QuorumSettings(
            listener_name=LISTENER,
            bootstrap=tuple(
                Peer(id=-2 - i, host=f"node-{i}", port=i) for i in self.nodes if i != node_id
            ),
        )
        local = Voter(key=node.key, endpoints=self.voter_of(node_id).endpoints)
        node.machine = QuorumMachine(
            local,
            history,
            election,
            node.log,
            settings,
            random_below=self.rng.randrange,
            high_watermark=known,
        )
        if self.faults.forget_vote:
            forget_votes(node.machine)
        node.incarnation += 1
        node.committed = known
        node.incoming = []
        self.step(node, e.Started())
        self._sync_later(node)

    def crash(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.machine is not None:
            node.machine = None
            node.incarnation += 1
            node.log.lose_power(self.rng)

    def bounce(self, node: Node) -> None:
        self.crash(node.key.id)
        self.start(node.key.id)

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, action))

    def run(self, for_ms: int) -> None:
        end_ms = self.now_ms + for_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = end_ms

    def _on_node(self, node: Node, action: Callable[[], None]) -> Callable[[], None]:
        """`action`, unless the node is another one by then."""
        incarnation = node.incarnation

        def guarded() -> None:
            if node.machine is not None and node.incarnation == incarnation:
                action()

        return guarded

    # Steps ------------------------------------------------------------------------------

    def step(self, node: Node, event: e.Event) -> None:
        events = [event]
        while events and node.machine is not None:
            before = node.machine.high_watermark
            for effect in node.machine.step(events.pop(0), self.now_ms):
                self._perform(node, effect, events)
            if node.machine.high_watermark < before:
                raise Broken("the high watermark retreated")
        self._arm(node)

    def _arm(self, node: Node) -> None:
        machine = node.machine
        deadline_ms = None if machine is None else machine.deadline_ms
        if deadline_ms is None or deadline_ms == node.alarm_ms:
            return
        node.alarm_ms = deadline_ms

        def ring() -> None:
            if node.alarm_ms == self.now_ms:
                node.alarm_ms = -1
                self.step(node, e.TimePassed())

        self.at(max(0, deadline_ms - self.now_ms), self._on_node(node, ring))

    def _perform(self, node: Node, effect: e.Effect, events: list[e.Event]) -> None:
        log = node.log
        match effect:
            case e.PersistElection(election):
                if election.epoch < node.election.epoch:
                    raise Broken("the epoch went back")
                node.election = election
                if election.voted is not None and self.rng.random() < self.falls_after_vote:
                    self.at(self.rng.randint(1, 60), self._on_node(node, lambda: self.bounce(node)))
            case e.Send():
                self._send(node, effect)
            case e.Answer():
                self._answer(effect.token, effect.reply)
            case e.AnswerRecords():
                offset = effect.reply.read_from or 0
                found = log.entries[offset - log.start_offset :][
                    : self.rng.randint(1, self.batch_max)
                ]
                self._answer(effect.token, effect.reply.with_records(_packed(found)))
            case e.AnswerChunk():
                self._answer(effect.token, self._chunk(node, effect))
            case e.BecomeLeader():
                self._on_leader(node, effect)
                role = None if node.machine is None else node.machine.role
                if self.faults.commit_older_epoch and isinstance(role, Leader):
                    role.leadership.epoch_start_offset = -1
                new = [Entry(effect.epoch, f"leader {node.key.id}")]
                offset = log.append(new)
                changes: tuple[e.QuorumChange, ...] = ()
                if effect.voters_record is not None:
                    offset = log.append([Entry(effect.epoch, effect.voters_record)])
                    changes = (
                        e.QuorumChange(offset=offset, voters=effect.voters_record, kraft_version=1),
                    )
                events.append(e.Appended(changes=changes))
                self._sync_later(node)
            case e.AppendVoters(voters):
                offset = log.append([Entry(self._epoch(node), voters)])
                change = e.QuorumChange(offset=offset, voters=voters, kraft_version=1)
                events.append(e.Appended(changes=(change,)))
                self._sync_later(node)
            case e.AppendRecords(records):
                self._append_fetched(node, pickle.loads(bytes(records)), events)
            case e.TruncateTo(offset):
                if offset < node.committed:
                    raise Broken("a committed entry was cut off")
                log.truncate_to(offset)
                self._sync_later(node)
            case e.StartSnapshot():
                node.incoming = []
            case e.AppendChunk(chunk):
                node.incoming.append(bytes(chunk))
            case e.FinishSnapshot(snapshot_id):
                self._install(node, snapshot_id)
            case e.CommitUpTo(offset):
                self._on_commit(node, offset)
            case e.StepDown() | e.LeaderChanged() | e.DropSnapshot():
                pass

    def _epoch(self, node: Node) -> int:
        return 0 if node.machine is None else node.machine.epoch

    def _append_fetched(self, node: Node, entries: list[Entry], events: list[e.Event]) -> None:
        offset = node.log.append(entries)
        changes = tuple(
            e.QuorumChange(offset=offset + i, voters=entry.payload, kraft_version=1)
            for i, entry in enumerate(entries)
            if isinstance(entry.payload, VoterSet)
        )
        events.append(e.Appended(changes=changes))
        self._sync_later(node)

    def _sync_later(self, node: Node) -> None:
        up_to = node.log.end_offset

        def synced() -> None:
            if not self.faults.acknowledge_before_sync:
                node.log.sync(up_to)
            self.step(node, e.Synced(min(up_to, node.log.end_offset)))

        if self.faults.acknowledge_before_sync:
            self.at(0, self._on_node(node, synced))
            self.at(self.rng.randint(1, 30), self._on_node(node, lambda: node.log.sync(up_to)))
        else:
            self.at(self.rng.randint(0, 8), self._on_node(node, synced))

    # Snapshots --------------------------------------------------------------------------

    def take_snapshot(self, node_id: int) -> None:
        node = self.nodes[node_id]
        log = node.log
        end = node.committed
        if node.machine is None or end <= log.start_offset or end > log.end_offset:
            return
        entry = log.entry(end - 1)
        if entry is None or any(s.end_offset >= end for s in log.stored):
            return
        version, voters = node.machine.history.at(end)
        payloads = tuple(self.committed[i].payload for i in range(end))
        stored = StoredSnapshot(payloads, version, voters if self.dynamic else None)
        log.compact(SnapshotId(end, entry.epoch), stored)

    def _chunk(self, node: Node, effect: e.AnswerChunk) -> SnapshotReply:
        data = pickle.dumps(node.log.stored[effect.request.snapshot_id])
        position = effect.request.position
        if position >= len(data):
            return SnapshotReply(
                error=ErrorCode.POSITION_OUT_OF_RANGE,
                epoch=effect.reply.epoch,
                leader_id=effect.reply.leader_id,
            )
        reply = effect.reply
        return SnapshotReply(
            epoch=reply.epoch,
            leader_id=reply.leader_id,
            endpoints=reply.endpoints,
            snapshot_id=reply.snapshot_id,
            size=len(data),
            position=position,
            chunk=data[position : position + self.rng.randint(100, 1000)],
        )

    def _install(self, node: Node, snapshot_id: SnapshotId) -> None:
        stored: StoredSnapshot = pickle.loads(b"".join(node.incoming))

        def installed() -> None:
            for offset, payload in enumerate(stored.payloads):
                if self.committed[offset].payload != payload:
                    raise Broken("a snapshot differs from what was committed")
            node.log.install(snapshot_id, stored)
            node.committed = max(node.committed, snapshot_id.end_offset)
            event = e.SnapshotInstalled(
                snapshot_id=snapshot_id, kraft_version=stored.kraft_version, voters=stored.voters
            )
            self.step(node, event)

        self.at(self.rng.randint(0, 10), self._on_node(node, installed))

    # The network ------------------------------------------------------------------------

    def _send(self, node: Node, effect: e.Send) -> None:
        to = effect.to.port
        # Answers come over the connection of the process that asked.
        incarnation = node.incarnation

        def answered(reply: Reply | None, refused: bool = False) -> None:
            if node.machine is not None and node.incarnation == incarnation:
                event = e.Answered(request_id=effect.request_id, reply=reply, refused=refused)
                self.step(node, event)

        self.at(REQUEST_TIMEOUT_MS, lambda: answered(None))
        for _ in range(self._copies(node.key.id, to)):
            self.at(self._delay(), lambda: self._deliver(node, to, effect, answered))

    def _copies(self, sender: int, receiver: int) -> int:
        if (sender, receiver) in self.cut or self.rng.random() < self.loss:
            return 0
        return 2 if self.rng.random() < self.doubling else 1

    def _delay(self) -> int:
        return self.rng.randint(0, self.delay_ms_max)

    def _deliver(
        self, sender: Node, to: int, effect: e.Send, answered: Callable[..., None]
    ) -> None:
        receiver = self.nodes[to]
        if receiver.machine is None:
            # The process is gone and its machine says so; or the machine is gone too.
            if self.rng.random() < 0.7 and self._copies(to, sender.key.id):
                self.at(self._delay(), lambda: answered(None, refused=True))
            return

        def answer(reply: Reply) -> None:
            for _ in range(self._copies(to, sender.key.id)):
                self.at(self._delay(), lambda: answered(reply))

        self.ask(receiver, effect.request, answer)

    def ask(self, node: Node, request: Request, answer: Callable[[Reply], None]) -> None:
        self._token += 1
        self._answers[self._token] = answer
        self.step(node, e.Received(token=self._token, request=request))

    def _answer(self, token: int, reply: Reply) -> None:
        self._answers.pop(token)(reply)

    # What users do ----------------------------------------------------------------------

    def leader(self) -> Node | None:
        """The one that leads the newest epoch."""
        leading = [n for n in self.nodes.values() if n.machine is not None and n.machine.is_leader]
        return max(leading, key=self._epoch, default=None)

    def propose(self) -> None:
        node = self.rng.choice(list(self.nodes.values()))
        if node.machine is None or not node.machine.is_leader:
            return
        self._proposed += 1
        node.log.append([Entry(node.machine.epoch, self._proposed)])
        self.step(node, e.Appended())
        self._sync_later(node)

    def change_voters(self, node_id: int) -> None:
        leader = self.leader()
        if leader is None or leader.machine is None:
            return
        voter = self.voter_of(node_id)
        request: Request = VoterAdditionAsked(voter=voter)
        if node_id in leader.machine.voters.voters:
            request = VoterRemovalAsked(voter=voter.key)

        def done(reply: Reply) -> None:
            self.changes_done += reply.error is ErrorCode.NONE

        self.ask(leader, request, done)

    # Promises ---------------------------------------------------------------------------

    def _on_leader(self, node: Node, effect: e.BecomeLeader) -> None:
        known = self.leaders.setdefault(effect.epoch, node.key.id)
        if known != node.key.id:
            raise Broken(f"epoch {effect.epoch} has the leaders {known} and {node.key.id}")
        for offset, entry in self.committed.items():
            if offset >= node.log.start_offset and node.log.entry(offset) != entry:
                raise Broken(f"leader {node.key.id} lacks the committed entry {offset}")

    def _on_commit(self, node: Node, offset: int) -> None:
        for at in range(max(node.committed, node.log.start_offset), offset):
            entry = node.log.entry(at)
            if entry is None:
                raise Broken(f"node {node.key.id} commits {at}, which it does not have")
            if self.committed.setdefault(at, entry) != entry:
                raise Broken(f"the committed entry {at} differs between nodes")
        node.committed = max(node.committed, offset)
        self.commit_count += 1
        machine = node.machine
        if machine is not None and isinstance(machine.role, Leader):
            self._check_durable(machine, offset)
            last = node.log.entry(offset - 1)
            if last is not None and last.epoch != machine.epoch:
                # A later leader with an entry of an epoch in between could still overwrite it.
                raise Broken(f"{offset} is committed by an entry of the older epoch {last.epoch}")

    def _check_durable(self, machine: QuorumMachine, offset: int) -> None:
        """A majority would still have it if the power failed everywhere now."""
        holders = sum(
            1
            for node_id in machine.voters.voters
            if self.nodes[node_id].log.synced_offset >= offset
            and self._agrees(self.nodes[node_id].log, offset)
        )
        if holders < machine.voters.majority:
            raise Broken(f"{offset} is committed, but only {holders} voters have it on disk")

    def _agrees(self, log: MemoryLog, offset: int) -> bool:
        return offset <= log.start_offset or log.entry(offset - 1) == self.committed[offset - 1]


def _packed(entries: list[Entry]) -> bytes:
    return pickle.dumps(entries) if entries else b""
