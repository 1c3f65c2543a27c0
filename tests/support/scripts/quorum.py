"""The stage of quorum scripts: real quorum machines, memory logs, and a network under control.

Time passes only by `wait`, and messages travel only by `deliver`. Nodes draw no random numbers:
node N waits N * 100 ms longer than the shortest election timeout.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from moldau.broker.raft.machine.election_file import NO_NODE, Election
from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.rpcs import (
    EpochBegun,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Peer,
    Reply,
    Request,
    VersionsAsked,
    VersionsReply,
    VoteAsked,
    VoterAdditionAsked,
    VoteReply,
    VoterRemovalAsked,
)
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.wire.errors import ErrorCode
from support.memory_log import Entry, MemoryLog, StoredSnapshot
from support.raft_world import LISTENER
from support.scripts.files import Command, ScriptError

_STEPS_MAX = 500


@dataclass
class Node:
    id: int
    key: ReplicaKey
    log: MemoryLog
    election: Election
    machine: QuorumMachine | None = None
    holds_syncs: bool = False


@dataclass(frozen=True)
class InFlight:
    """A request on its way, or the answer to one."""

    sender: int
    receiver: int
    text: str
    arrive: Callable[[], None]
    fail: Callable[[], None]


@dataclass(frozen=True)
class Unanswered:
    """A request that a node has and has not answered yet."""

    receiver: int
    reply: Callable[[Reply], None]
    fail: Callable[[], None]


class QuorumStage:
    def __init__(self) -> None:
        self.now_ms = 0
        self.nodes: dict[int, Node] = {}
        self.network: list[InFlight] = []
        self._cut: set[frozenset[int]] = set()
        self._dynamic = False
        self._voters = VoterSet()
        self._trace: list[str] = []
        self._tokens = 0
        self._unanswered: dict[int, Unanswered] = {}

    # Commands ---------------------------------------------------------------------------

    def on_quorum(self, command: Command) -> list[str]:
        """quorum voters=1,2,3 [observers=4] [dynamic] [elected]: start nodes with empty logs;
        `elected` lets node 1 win the first election, without a trace."""
        self._dynamic = "dynamic" in command.words
        voters = command.numbers("voters")
        for node_id in (*voters, *command.numbers("observers")):
            key = ReplicaKey(node_id, UUID(int=node_id) if self._dynamic else None)
            self.nodes[node_id] = Node(node_id, key, MemoryLog(), Election())
        self._voters = VoterSet.of(self._voter(node_id) for node_id in voters)
        if self._dynamic:
            first = StoredSnapshot((), 1, self._voters)
            for node_id in voters:
                self.nodes[node_id].log.stored[SnapshotId(0, 0)] = first
        for node in self.nodes.values():
            self._start(node)
        if "elected" in command.words:
            self._run(1100)
            self._trace = [self._state_of(node) for node in self.nodes.values()]
        return self._traced()

    def on_run(self, command: Command) -> list[str]:
        """run MS: let time pass and deliver every message at once; messages are not traced."""
        self._run(int(command.words[0]))
        self._trace = [line for line in self._trace if " ms  " in line]
        return self._traced()

    def _run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        everything = Command("deliver", (), {})
        self._deliver(everything)
        while self._pass_time(end_ms, steps=1):
            self._deliver(everything)
        self._pass_time(end_ms)

    def on_wait(self, command: Command) -> list[str]:
        """wait MS: let time pass; nodes act at their deadlines, messages stay where they are."""
        self._pass_time(self.now_ms + int(command.words[0]))
        return self._traced()

    def _pass_time(self, end_ms: int, steps: int = _STEPS_MAX) -> bool:
        """Have nodes act at their deadlines, at most so many times; False when `end_ms` is here."""
        for _ in range(steps):
            due = [
                (node.machine.deadline_ms, node.id)
                for node in self.nodes.values()
                if node.machine is not None and node.machine.deadline_ms is not None
            ]
            at_ms, node_id = min(due, default=(end_ms + 1, 0))
            if at_ms > end_ms:
                self.now_ms = end_ms
                return False
            self.now_ms = max(self.now_ms, at_ms)
            self._step(self.nodes[node_id], e.TimePassed())
        return True

    def on_deliver(self, command: Command) -> list[str]:
        """deliver [FROM TO]: hand over messages, oldest first, until none is left."""
        self._deliver(command)
        return self._traced()

    def _deliver(self, command: Command) -> None:
        for _ in range(_STEPS_MAX):
            message = self._first(command)
            if message is None:
                return
            self.network.remove(message)
            if frozenset((message.sender, message.receiver)) in self._cut:
                message.fail()
                continue
            self._trace.append(f"{message.sender} -> {message.receiver} {message.text}")
            message.arrive()
        raise ScriptError(f"messages keep coming after {_STEPS_MAX} deliveries")

    def on_drop(self, command: Command) -> list[str]:
        """drop FROM TO: lose what is on its way; the sender learns that no answer came."""
        while (message := self._first(command)) is not None:
            self.network.remove(message)
            self._trace.append(f"lost: {message.sender} -> {message.receiver} {message.text}")
            message.fail()
        return self._traced()

    def on_cut(self, command: Command) -> list[str]:
        """cut A B: messages between them are lost from now on."""
        self._cut.add(frozenset((command.node(0), command.node(1))))
        return []

    def on_heal(self, command: Command) -> list[str]:
        """heal: all nodes reach one another again."""
        self._cut.clear()
        return []

    def on_propose(self, command: Command) -> list[str]:
        """propose NODE [count=1]: append records, as the controller on that node would."""
        node = self.nodes[command.node()]
        machine = self._alive(node)
        if not machine.is_leader:
            return ["not the leader"]
        count = command.number("count", 1)
        node.log.append([Entry(machine.epoch, f"record {i}") for i in range(count)])
        self._step(node, e.Appended())
        self._sync(node)
        return self._traced()

    def on_hold_syncs(self, command: Command) -> list[str]:
        """hold-syncs NODE: its disk is slow; nothing is synced before `sync`."""
        self.nodes[command.node()].holds_syncs = True
        return []

    def on_sync(self, command: Command) -> list[str]:
        """sync NODE: everything in its log is on disk; later appends sync at once."""
        node = self.nodes[command.node()]
        node.holds_syncs = False
        self._sync(node)
        return self._traced()

    def on_crash(self, command: Command) -> list[str]:
        """crash NODE: the process ends, its connections break, unsynced records are lost."""
        node = self.nodes[command.node()]
        node.machine = None
        del node.log.entries[node.log.synced_offset - node.log.start_offset :]
        for token, request in list(self._unanswered.items()):
            if request.receiver == node.id:
                del self._unanswered[token]
                request.fail()
        return self._traced()

    def on_restart(self, command: Command) -> list[str]:
        node = self.nodes[command.node()]
        node.holds_syncs = False
        self._start(node)
        return self._traced()

    def on_shutdown(self, command: Command) -> list[str]:
        """shutdown NODE: stop in order; a leader resigns."""
        self._step(self.nodes[command.node()], e.ShutDown())
        return self._traced()

    def on_add_voter(self, command: Command) -> list[str]:
        """add-voter NODE to=LEADER"""
        request = VoterAdditionAsked(voter=self._voter(command.node()), timeout_ms=10_000)
        return self._ask(command.number("to", 0), request)

    def on_remove_voter(self, command: Command) -> list[str]:
        """remove-voter NODE to=LEADER"""
        request = VoterRemovalAsked(voter=self.nodes[command.node()].key)
        return self._ask(command.number("to", 0), request)

    def on_state(self, command: Command) -> list[str]:
        """state: what each node takes itself and the quorum for."""
        return [self._state_of(node) for node in self.nodes.values()]

    # Nodes ------------------------------------------------------------------------------

    def _voter(self, node_id: int) -> Voter:
        endpoint = VoterEndpoint(name=LISTENER, host=f"node-{node_id}", port=node_id)
        return Voter(key=self.nodes[node_id].key, endpoints=(endpoint,))

    def _alive(self, node: Node) -> QuorumMachine:
        if node.machine is None:
            raise ScriptError(f"node {node.id} is down")
        return node.machine

    def _start(self, node: Node) -> None:
        history, _ = node.log.history(VoterSet() if self._dynamic else self._voters)
        # Voters know one another; only others ask bootstrap servers for the leader.
        servers = () if node.id in self._voters.voters else sorted(self._voters.voters)
        settings = QuorumSettings(
            listener_name=LISTENER,
            bootstrap=tuple(Peer(id=-2 - i, host=f"node-{i}", port=i) for i in servers),
        )
        node.machine = QuorumMachine(
            self._voter(node.id),
            history,
            node.election,
            node.log,
            settings,
            random_below=lambda limit: min(limit - 1, node.id * 100),
        )
        self._step(node, e.Started())
        self._sync(node)

    def _state_of(self, node: Node) -> str:
        machine = node.machine
        if machine is None:
            return f"{node.id} down"
        leader = "-" if machine.election.leader_id == NO_NODE else machine.election.leader_id
        return (
            f"{node.id} {machine.role_name.name} epoch={machine.epoch} leader={leader}"
            f" log={node.log.start_offset}..{node.log.end_offset}"
            f" committed={machine.high_watermark}"
            f" voters={','.join(map(str, sorted(machine.voters.voters)))}"
        )

    def _sync(self, node: Node) -> None:
        if not node.holds_syncs:
            node.log.sync(node.log.end_offset)
            self._step(node, e.Synced(node.log.end_offset))

    def _step(self, node: Node, event: e.Event) -> None:
        events: list[e.Event | None] = [event]
        while events and node.machine is not None:
            machine = node.machine
            before = machine.role_name
            next_event = events.pop(0)
            if next_event is None:
                self._sync(node)
                continue
            effects = machine.step(next_event, self.now_ms)
            if machine.role_name is not before:
                self._say(node, f"{before.name} => {machine.role_name.name} epoch={machine.epoch}")
            for effect in effects:
                self._perform(node, effect, events)

    def _perform(self, node: Node, effect: e.Effect, events: list[e.Event | None]) -> None:
        log = node.log
        match effect:
            case e.PersistElection(election):
                node.election = election
                leader = "-" if election.leader_id == NO_NODE else election.leader_id
                voted = "-" if election.voted is None else election.voted.id
                self._say(node, f"persists epoch={election.epoch} leader={leader} voted={voted}")
            case e.Send():
                self._send(node, effect)
            case e.Answer():
                self._answer(effect.token, effect.reply)
            case e.AnswerRecords():
                records = log.packed(effect.reply.read_from or 0, log.end_offset)
                self._answer(effect.token, effect.reply.with_records(records))
            case e.BecomeLeader() | e.AppendVoters() | e.AppendRecords():
                before = log.end_offset
                appended = log.perform(effect, node.id, self._alive(node).epoch)
                self._say_appended(node, effect, appended, before)
                events += [appended, None]
            case e.TruncateTo(offset):
                self._say(node, f"truncates to {offset}")
                log.truncate_to(offset)
                events.append(None)
            case e.CommitUpTo(offset):
                self._say(node, f"commits up to {offset}")
            case e.StepDown(epoch):
                self._say(node, f"steps down from epoch {epoch}")
            case e.LeaderChanged():
                leader = "-" if effect.leader_id == NO_NODE else effect.leader_id
                self._say(node, f"publishes leader={leader} epoch={effect.epoch}")
            case _:
                raise ScriptError(f"scripts do not play {type(effect).__name__} yet")

    def _say_appended(
        self,
        node: Node,
        effect: e.BecomeLeader | e.AppendVoters | e.AppendRecords,
        appended: e.Appended,
        before: int,
    ) -> None:
        if isinstance(effect, e.AppendRecords):
            self._say(node, f"appends {before}..{node.log.end_offset}")
            return
        if isinstance(effect, e.BecomeLeader):
            granting = ", ".join(str(each.id) for each in effect.granting)
            self._say(node, f"leads epoch {effect.epoch}, elected by {granting}")
        for change in appended.changes:
            ids = ",".join(map(str, sorted(change.voters.voters if change.voters else ())))
            self._say(node, f"appends voters {ids} at {change.offset}")

    # The network ------------------------------------------------------------------------

    def _first(self, command: Command) -> InFlight | None:
        wanted = tuple(int(word) for word in command.words)
        for message in self.network:
            if not wanted or (message.sender, message.receiver) == wanted:
                return message
        return None

    def _send(self, node: Node, effect: e.Send) -> None:
        machine = self._alive(node)
        receiver = self.nodes[effect.to.port]

        def answered(reply: Reply | None) -> None:
            if node.machine is machine:
                self._step(node, e.Answered(request_id=effect.request_id, reply=reply))

        def reply_with(reply: Reply) -> None:
            answer = InFlight(
                receiver.id,
                node.id,
                _reply_text(reply),
                lambda: answered(reply),
                lambda: answered(None),
            )
            self.network.append(answer)

        def arrive() -> None:
            if receiver.machine is None:
                self._trace.append(f"  {receiver.id} is down")
                answered(None)
            elif isinstance(effect.request, VersionsAsked):
                reply_with(VersionsReply(levels=(0, 1)))
            else:
                self._receive(receiver, effect.request, reply_with, lambda: answered(None))

        text = _request_text(effect.request)
        message = InFlight(node.id, receiver.id, text, arrive, lambda: answered(None))
        self.network.append(message)

    def _receive(
        self,
        node: Node,
        request: Request,
        reply: Callable[[Reply], None],
        fail: Callable[[], None] = lambda: None,
    ) -> None:
        self._tokens += 1
        self._unanswered[self._tokens] = Unanswered(node.id, reply, fail)
        self._step(node, e.Received(token=self._tokens, request=request))

    def _answer(self, token: int, reply: Reply) -> None:
        self._unanswered.pop(token).reply(reply)

    def _ask(self, node_id: int, request: Request) -> list[str]:
        """An operator asks; the answer is traced when it comes."""
        node = self.nodes[node_id]
        text = _request_text(request)
        self._receive(
            node, request, lambda reply: self._say(node, f"answers {text}: {_reply_text(reply)}")
        )
        return self._traced()

    # The trace --------------------------------------------------------------------------

    def _say(self, node: Node, text: str) -> None:
        self._trace.append(f"  {self.now_ms} ms  {node.id} {text}")

    def _traced(self) -> list[str]:
        lines, self._trace = self._trace, []
        return lines


def _request_text(request: Request) -> str:
    match request:
        case VoteAsked():
            kind = "PreVote" if request.pre_vote else "Vote"
            return f"{kind} epoch={request.epoch} log={request.end_offset}@{request.last_epoch}"
        case FetchAsked():
            return (
                f"Fetch epoch={request.epoch} from={request.offset}@{request.last_epoch}"
                f" committed={request.high_watermark}"
            )
        case EpochBegun():
            return f"BeginQuorumEpoch epoch={request.epoch}"
        case EpochEnded():
            successors = ",".join(str(each.id) for each in request.successors)
            return f"EndQuorumEpoch epoch={request.epoch} successors={successors}"
        case VoterAdditionAsked():
            return f"AddRaftVoter {request.voter.key.id}"
        case VoterRemovalAsked():
            return f"RemoveRaftVoter {request.voter.id}"
        case _:
            return type(request).__name__


def _reply_text(reply: Reply) -> str:
    if reply.error is not ErrorCode.NONE:
        return f"{reply.error.name} epoch={reply.epoch} leader={reply.leader_id}"
    match reply:
        case VoteReply():
            return f"{'granted' if reply.granted else 'denied'} epoch={reply.epoch}"
        case FetchReply() if reply.diverging is not None:
            end = reply.diverging
            return f"diverging at {end.end_offset}@{end.epoch}"
        case FetchReply():
            count = len(pickle.loads(bytes(reply.records))) if reply.records else 0
            return f"records={count} committed={reply.high_watermark}"
        case _:
            return "done"
