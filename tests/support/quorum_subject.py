"""One quorum machine under test, node one of three unless said otherwise."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum.events import (
    Answer,
    Answered,
    Effect,
    Received,
    Send,
    Started,
    Synced,
    TimePassed,
)
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    EpochBegun,
    VoteAsked,
    VoteReply,
)
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.snapshots import SnapshotId
from moldau.wire.errors import ErrorCode

ONE, TWO, THREE, FOUR = (ReplicaKey(i, UUID(int=i * 100)) for i in (1, 2, 3, 4))
ELECTION_MS, FETCH_MS, BACKOFF_MS = 1000, 2000, 1000


class FixedLog:
    """A log that ends where the test says, all of it in one epoch."""

    def __init__(self, end_offset: int, last_epoch: int) -> None:
        self.end_offset = end_offset
        self.last_epoch = last_epoch
        self.start_offset = 0
        self.snapshots: list[SnapshotId] = []

    def end_of_epoch(self, epoch: int) -> EndOfEpoch:
        return EndOfEpoch(epoch=min(epoch, self.last_epoch), end_offset=self.end_offset)


def voter(key: ReplicaKey) -> Voter:
    end = VoterEndpoint(name="CONTROLLER", host=f"node-{key.id}", port=key.id)
    return Voter(key=key, endpoints=(end,))


class Subject:
    """Node one, with answers and requests made short."""

    def __init__(
        self,
        *keys: ReplicaKey,
        local: ReplicaKey = ONE,
        election: Election | None = None,
        log: FixedLog | None = None,
    ) -> None:
        self.local = local
        self.log = log or FixedLog(0, 0)
        voters = VoterSet.of(voter(key) for key in keys or (ONE, TWO, THREE))
        self.machine = QuorumMachine(
            voter(local),
            VoterHistory(voters, kraft_version=1),
            election or Election(),
            self.log,
            QuorumSettings(
                election_timeout_ms=ELECTION_MS,
                fetch_timeout_ms=FETCH_MS,
                election_backoff_max_ms=BACKOFF_MS,
            ),
            random_below=lambda bound: 0,
        )
        self.now_ms = 0
        self.effects = self.step(Started())

    @property
    def state(self) -> str:
        return self.machine.role_name.name

    def step(self, event: Any, *, later_ms: int = 0) -> list[Effect]:
        self.now_ms += later_ms
        self.effects = self.machine.step(event, self.now_ms)
        return self.effects

    def wait(self, delay_ms: int) -> list[Effect]:
        return self.step(TimePassed(), later_ms=delay_ms)

    def sent(self, kind: type[Any]) -> list[Any]:
        return [x for x in self.effects if isinstance(x, Send) and isinstance(x.request, kind)]

    def ask(self, request: Any) -> Any:
        effects = self.step(Received(token=1, request=request))
        return next((x.reply for x in effects if isinstance(x, Answer)), None)

    def grant(self, send: Send, *, granted: bool = True) -> None:
        reply = VoteReply(epoch=self.machine.epoch, granted=granted)
        self.step(Answered(request_id=send.request_id, reply=reply))

    def lead(self) -> None:
        self.wait(ELECTION_MS)
        self.grant(self.sent(VoteAsked)[0])
        self.grant(self.sent(VoteAsked)[0])
        assert self.state == "LEADER"
        self.log.end_offset += 1
        self.log.last_epoch = self.machine.epoch
        self.step(Synced(self.log.end_offset))

    def follow(self, leader: ReplicaKey = TWO, epoch: int = 5) -> None:
        begun = EpochBegun(
            epoch=epoch, leader_id=leader.id, voter=self.local, endpoints=voter(leader).endpoints
        )
        assert self.ask(begun).error is ErrorCode.NONE
        assert self.state == "FOLLOWER"
