"""Many quorum machines over a bad network and bad disks, in virtual time, from one seed.

Each node is the real QuorumMachine with a log in memory. Requests and answers are lost, delayed and
doubled; nodes are cut off, crash and lose what they had not synced. After every step a QuorumWatch
checks the invariants, as in the simulator, and here also that a majority has on disk what is
committed; a Violation names the invariant.
"""

from __future__ import annotations

import heapq
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.quorum.roles import Follower, Leader
from moldau.broker.raft.machine.rpcs import (
    Peer,
    Reply,
    Request,
    SnapshotReply,
    VoterAdditionAsked,
    VoterRemovalAsked,
)
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.snapshots import SnapshotId
from moldau.sim.quorum_watch import QuorumWatch
from moldau.sim.world import Invariant, require
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode
from support.memory_log import Entry, MemoryLog, StoredSnapshot

LISTENER = "CONTROLLER"
REQUEST_TIMEOUT_MS = 2000


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
        self.watch = QuorumWatch()
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
        history, known = node.log.history(static)
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
            now_ms = ElapsedMs(self.now_ms)
            for effect in node.machine.step(events.pop(0), now_ms):
                self._perform(node, effect, events)
            if node.machine is not None:
                self.watch.look(node.key.id, node.incarnation, node.machine, node.log)
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
                node.election = election
                if election.voted is not None and self.rng.random() < self.falls_after_vote:
                    self.at(self.rng.randint(1, 60), self._on_node(node, lambda: self.bounce(node)))
            case e.Send():
                self._send(node, effect)
            case e.Answer():
                self._answer(effect.token, effect.reply)
            case e.AnswerRecords():
                count = self.rng.randint(1, self.batch_max)
                records = log.packed(effect.reply.read_from or 0, count)
                self._answer(effect.token, effect.reply.with_records(records))
            case e.AnswerChunk():
                self._answer(effect.token, self._chunk(node, effect))
            case e.BecomeLeader() | e.AppendVoters() | e.AppendRecords():
                role = None if node.machine is None else node.machine.role
                if self.faults.commit_older_epoch and isinstance(role, Leader):
                    role.leadership.epoch_start_offset = -1
                events.append(log.perform(effect, node.key.id, self._epoch(node)))
                self._sync_later(node)
            case e.TruncateTo(offset):
                require(
                    offset >= node.committed,
                    Invariant.METADATA_SURVIVES,
                    lambda: f"{node.committed} is committed, the log is truncated to {offset}",
                )
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
        payloads = tuple(self.watch.committed[i].content for i in range(end))
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
            if not self._is_awaited(node, snapshot_id):
                return
            for offset, payload in enumerate(stored.payloads):
                require(
                    self.watch.committed[offset].content == payload,
                    Invariant.QUORUM_COMMIT_AGREES,
                    lambda: "a snapshot differs from what was committed",
                )
            node.log.install(snapshot_id, stored)
            node.committed = max(node.committed, snapshot_id.end_offset)
            event = e.SnapshotInstalled(
                snapshot_id=snapshot_id, kraft_version=stored.kraft_version, voters=stored.voters
            )
            self.step(node, event)

        self.at(self.rng.randint(0, 10), self._on_node(node, installed))

    def _is_awaited(self, node: Node, snapshot_id: SnapshotId) -> bool:
        role = None if node.machine is None else node.machine.role
        progress = role.snapshot if isinstance(role, Follower) else None
        return progress is not None and progress.installing and progress.snapshot_id == snapshot_id

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

    # What is committed ------------------------------------------------------------------

    def _on_commit(self, node: Node, offset: int) -> None:
        node.committed = max(node.committed, offset)
        self.commit_count += 1
        if node.machine is not None and node.machine.is_leader:
            self._check_durable(node, node.machine.voters, offset)

    def _check_durable(self, leader: Node, voters: VoterSet, offset: int) -> None:
        """A majority would still have it if the power failed everywhere now."""
        last = leader.log.entry(offset - 1)
        holders = 0
        for node_id in voters.voters:
            log = self.nodes[node_id].log
            agrees = offset <= log.start_offset or log.entry(offset - 1) == last
            holders += log.synced_offset >= offset and agrees
        require(
            holders >= voters.majority,
            Invariant.METADATA_SURVIVES,
            lambda: f"{offset} is committed, but only {holders} voters have it on disk",
        )
