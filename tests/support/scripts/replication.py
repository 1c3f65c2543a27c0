"""The stage of replication scripts: one partition, real leader and follower machines, memory logs.

Nothing happens by itself: followers fetch, the controller answers and time passes by commands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moldau.broker.replication.machine.events import (
    CommitUpTo,
    Effect,
    Event,
    FollowerFetched,
    IsrAccepted,
    IsrCommitted,
    IsrRefused,
    MinIsrChanged,
    ProposeIsr,
    Tick,
)
from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.broker.replication.machine.follower import FetchedPartition, Fetcher
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.invariant import InvariantError
from moldau.wire.errors import ErrorCode
from support.replication_model import KEY, MemoryLog
from support.scripts.files import Command, ScriptError

_LAG_MS = 100


@dataclass
class Replica:
    id: int
    log: MemoryLog = field(default_factory=MemoryLog)
    leader: PartitionLeader | None = None
    fetcher: Fetcher | None = None
    leader_epoch: int = -1
    failed: str = ""


class ReplicationStage:
    def __init__(self) -> None:
        self.now_ms = 0
        self._replicas: dict[int, Replica] = {}
        self._leader_id = -1
        self._leader_epoch = -1
        self._partition_epoch = 0
        self._isr: frozenset[int] = frozenset()
        self._min_isr = 1
        self._fenced: set[int] = set()
        self._broker_epochs: dict[int, int] = {}
        self._proposal: ProposeIsr | None = None
        self._trace: list[str] = []
        self._value = 0
        self._session = 0

    # What a leader asks of the metadata -----------------------------------------------------

    def alive_epoch(self, broker_id: int) -> int | None:
        return None if broker_id in self._fenced else self._broker_epochs.get(broker_id)

    def is_shutting_down(self, broker_id: int) -> bool:
        return False

    def own_epoch(self) -> int:
        return self._broker_epochs[self._leader_id]

    # Commands -------------------------------------------------------------------------------

    def on_partition(self, command: Command) -> list[str]:
        """partition replicas=1,2,3 [isr=1,2,3] [leader=1] [min-isr=1]"""
        ids = command.numbers("replicas")
        self._replicas = {each: Replica(each) for each in ids}
        self._broker_epochs = {each: 10 * each for each in ids}
        self._isr = frozenset(command.numbers("isr", command.options["replicas"]))
        self._min_isr = command.number("min-isr", 1)
        self._elect(command.number("leader", ids[0]))
        return self._traced()

    def on_elect(self, command: Command) -> list[str]:
        """elect NODE [isr=...] [unaware=...]: the controller makes it leader in a new epoch; those
        that are unaware have not seen the metadata yet."""
        if "isr" in command.options:
            self._isr = frozenset(command.numbers("isr"))
        self._elect(command.node(), unaware=command.numbers("unaware"))
        return self._traced()

    def on_append(self, command: Command) -> list[str]:
        """append COUNT [to=NODE]: produce with acks=all; `to` names a leader that is outdated."""
        replica = self._replicas[command.number("to", self._leader_id)]
        leader = replica.leader
        if leader is None:
            return ["NOT_LEADER_OR_FOLLOWER"]
        if not leader.has_enough_in_sync:
            return ["NOT_ENOUGH_REPLICAS"]
        for _ in range(int(command.words[0])):
            self._value += 1
            replica.log.append(leader.leader_epoch, self._value)
        before = leader.high_watermark
        after = leader.appended(replica.log.log_end_offset, self.now_ms)
        self._say(f"{replica.id} appends up to {replica.log.log_end_offset}")
        if after > before:
            self._perform(replica, CommitUpTo(after))
        return self._traced()

    def on_fetch(self, command: Command) -> list[str]:
        """fetch NODE...: each of them fetches once from the leader and handles the answer."""
        for word in command.words:
            self._fetch(self._replicas[int(word)])
        return self._traced()

    def on_wait(self, command: Command) -> list[str]:
        """wait MS: let time pass, then have the leader look at its followers."""
        self.now_ms += int(command.words[0])
        self._step(self._leader(), Tick(self.now_ms))
        return self._traced()

    def on_accept(self, command: Command) -> list[str]:
        """accept: the controller makes the proposed change of the ISR and answers."""
        proposal = self._proposed()
        self._isr = proposal.members
        self._partition_epoch += 1
        accepted = IsrAccepted(
            proposal=proposal,
            leader_epoch=self._leader_epoch,
            partition_epoch=self._partition_epoch,
            isr=self._isr,
            now_ms=self.now_ms,
        )
        self._step(self._leader(), accepted)
        return self._traced()

    def on_commit_isr(self, command: Command) -> list[str]:
        """commit-isr 1,2: the metadata log brings an ISR that the controller decided itself."""
        self._isr = frozenset(int(each) for each in command.words[0].split(","))
        self._partition_epoch += 1
        event = IsrCommitted(tuple(self._replicas), self._isr, self._partition_epoch, self.now_ms)
        self._step(self._leader(), event)
        return self._traced()

    def on_refuse(self, command: Command) -> list[str]:
        """refuse ERROR: the controller answers the proposal with an error."""
        event = IsrRefused(self._proposed(), ErrorCode[command.words[0]])
        self._step(self._leader(), event)
        return self._traced()

    def on_min_isr(self, command: Command) -> list[str]:
        """min-isr N: min.insync.replicas is changed."""
        self._min_isr = int(command.words[0])
        self._step(self._leader(), MinIsrChanged(self._min_isr, self.now_ms))
        return self._traced()

    def on_fence(self, command: Command) -> list[str]:
        """fence NODE: the controller takes the broker for dead; its registration is void."""
        self._fenced.add(command.node())
        return []

    def on_register(self, command: Command) -> list[str]:
        """register NODE: the broker is back, with a new broker epoch."""
        self._fenced.discard(command.node())
        self._broker_epochs[command.node()] += 1
        return []

    def on_state(self, command: Command) -> list[str]:
        lines = []
        for replica in self._replicas.values():
            role = "leader" if replica.leader else "follower"
            values = " ".join(f"{value}@{epoch}" for epoch, value in replica.log.entries)
            failed = f" failed: {replica.failed}" if replica.failed else ""
            lines.append(
                f"{replica.id} {role} epoch={replica.leader_epoch}"
                f" high-watermark={replica.log.high_watermark} log=[{values}]{failed}"
            )
        proposed = "" if self._proposal is None else f" proposed={_ids(self._proposal.members)}"
        return [*lines, f"isr={_ids(self._isr)}{proposed}"]

    # How it is played -----------------------------------------------------------------------

    def _leader(self) -> Replica:
        return self._replicas[self._leader_id]

    def _proposed(self) -> ProposeIsr:
        if self._proposal is None:
            raise ScriptError("no change of the ISR is proposed")
        proposal, self._proposal = self._proposal, None
        return proposal

    def _elect(self, node_id: int, unaware: tuple[int, ...] = ()) -> None:
        self._leader_id = node_id
        self._leader_epoch += 1
        self._partition_epoch += 1
        self._proposal = None
        for replica in self._replicas.values():
            if replica.id in unaware:
                continue
            replica.leader_epoch = self._leader_epoch
            if replica.id == node_id:
                self._lead(replica)
            else:
                self._follow(replica)

    def _lead(self, replica: Replica) -> None:
        replica.log.epochs.assign(self._leader_epoch, replica.log.log_end_offset)
        replica.fetcher = None
        replica.leader = PartitionLeader(
            replica.id,
            replicas=tuple(self._replicas),
            isr=self._isr,
            min_insync_replicas=self._min_isr,
            end_offset=replica.log.log_end_offset,
            high_watermark=replica.log.high_watermark,
            leader_epoch=self._leader_epoch,
            partition_epoch=self._partition_epoch,
            now_ms=self.now_ms,
            lag_ms_max=lambda: _LAG_MS,
            brokers=self,
        )
        self._say(
            f"{replica.id} leads epoch {self._leader_epoch} from {replica.log.log_end_offset}"
        )

    def _follow(self, replica: Replica) -> None:
        def failed(key: Any, reason: str) -> None:
            replica.failed = reason

        replica.leader = None
        replica.failed = ""
        replica.fetcher = Fetcher(
            backoff_ms=lambda: 10,
            max_bytes=lambda: 1000,
            on_failed=failed,
            on_fenced=lambda key, epoch: self._say(f"{replica.id} is fenced in epoch {epoch}"),
        )
        replica.fetcher.add(KEY, "t", replica.log, leader_epoch=self._leader_epoch)

    def _fetch(self, replica: Replica) -> None:
        fetcher = replica.fetcher
        if fetcher is None:
            raise ScriptError(f"node {replica.id} leads")
        self._reset(replica, fetcher)
        request = fetcher.request(self.now_ms)
        state = fetcher.state(KEY)
        if request is None or state is None:
            self._say(f"{replica.id} has nothing to fetch")
            return
        wanted = PartitionFetch(
            0,
            state.leader_epoch,
            state.fetch_offset,
            state.last_fetched_epoch,
            replica.log.log_start_offset,
            1000,
        )
        self._say(
            f"{replica.id} fetches from {wanted.fetch_offset} epoch={wanted.current_leader_epoch}"
            f" last-epoch={wanted.last_fetched_epoch}"
        )
        answer = self._read(replica, wanted)
        self._session += 1
        end_before = replica.log.log_end_offset
        fetcher.on_response(
            error=ErrorCode.NONE,
            session_id=request.session_id or self._session,
            partitions={KEY: answer},
            now_ms=self.now_ms,
        )
        self._say_outcome(replica, answer, end_before)

    def _reset(self, replica: Replica, fetcher: Fetcher) -> None:
        """Answer what a follower that is out of range asks: the leader's first and last offset."""
        log = self._leader().log
        for reset in fetcher.resets(self.now_ms):
            ends = f"{log.log_start_offset}..{log.log_end_offset}"
            self._say(f"{replica.id} asks for the ends: {ends}")
            fetcher.on_reset(
                reset,
                error=ErrorCode.NONE,
                latest=log.log_end_offset,
                earliest=log.log_start_offset,
                now_ms=self.now_ms,
            )

    def _read(self, replica: Replica, wanted: PartitionFetch) -> FetchedPartition:
        """What the leader's handler does with the fetch of a follower."""
        owner = self._leader()
        leader, log = owner.leader, owner.log
        if leader is None or wanted.current_leader_epoch > leader.leader_epoch:
            return FetchedPartition(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if wanted.current_leader_epoch < leader.leader_epoch:
            return FetchedPartition(ErrorCode.FENCED_LEADER_EPOCH)
        if wanted.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
            if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
                return FetchedPartition(diverging_epoch=(epoch, end_offset))
        if wanted.fetch_offset > log.log_end_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        fetched = FollowerFetched(
            replica_id=replica.id,
            fetch_offset=wanted.fetch_offset,
            log_start_offset=wanted.log_start_offset,
            broker_epoch=self._broker_epochs[replica.id],
            now_ms=self.now_ms,
        )
        self._step(owner, fetched)
        records: Any = log.entries[wanted.fetch_offset :]
        return FetchedPartition(
            high_watermark=log.high_watermark, log_start_offset=0, records=records or None
        )

    def _say_outcome(self, replica: Replica, answer: FetchedPartition, end_before: int) -> None:
        log = replica.log
        if answer.error is not ErrorCode.NONE:
            self._say(f"{replica.id} is answered {answer.error.name}")
        elif answer.diverging_epoch is not None:
            epoch, end_offset = answer.diverging_epoch
            self._say(
                f"{replica.id} diverges: epoch {epoch} ends at {end_offset},"
                f" truncates {end_before} to {log.log_end_offset}"
            )
        else:
            self._say(
                f"{replica.id} has up to {log.log_end_offset}, high watermark {log.high_watermark}"
            )

    def _step(self, replica: Replica, event: Event) -> None:
        if replica.leader is None:
            raise ScriptError(f"node {replica.id} does not lead")
        try:
            effects = replica.leader.step(event)
        except InvariantError as error:
            self._say(f"{replica.id} invariant broken: {error}")
            return
        for effect in effects:
            self._perform(replica, effect)

    def _perform(self, replica: Replica, effect: Effect) -> None:
        match effect:
            case CommitUpTo(offset):
                replica.log.high_watermark = offset
                self._say(f"{replica.id} commits up to {offset}")
            case ProposeIsr():
                self._proposal = effect
                members = " ".join(f"{node}@{epoch}" for node, epoch in effect.isr)
                self._say(f"{replica.id} proposes isr {members}")

    def _say(self, text: str) -> None:
        self._trace.append(text)

    def _traced(self) -> list[str]:
        lines, self._trace = self._trace, []
        return lines


def _ids(members: frozenset[int]) -> str:
    return ",".join(map(str, sorted(members)))
