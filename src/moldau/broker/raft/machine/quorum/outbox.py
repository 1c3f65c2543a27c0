"""Outbox: the effects of a step in the order in which they are performed.

Invariants: an election is persisted before any request or response of its epoch is sent; a peer has
one request in flight at a time; a leader is published once.
"""

from __future__ import annotations

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum.events import (
    Answer,
    AnswerChunk,
    AnswerRecords,
    Effect,
    LeaderChanged,
    PersistElection,
    Send,
)
from moldau.broker.raft.machine.quorum.peers import Peers
from moldau.broker.raft.machine.rpcs import Peer, Reply, Request
from moldau.broker.raft.machine.voters import VoterEndpoint
from moldau.invariant import invariant
from moldau.times import ElapsedMs


class Outbox:
    def __init__(self, retry_backoff_ms: int) -> None:
        self.peers = Peers(retry_backoff_ms)
        self.effects: list[Effect] = []
        self._published: tuple[int, int, tuple[VoterEndpoint, ...]] | None = None

    def add(self, effect: Effect) -> None:
        self.effects.append(effect)

    def take(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def answer(self, token: int, reply: Reply) -> None:
        self.effects.append(Answer(token=token, reply=reply))

    def send(self, peer: Peer, request: Request, now_ms: ElapsedMs) -> int | None:
        """The id of the request; None if the peer has one in flight, or has failed just now."""
        if not self.peers.is_ready(peer.id, now_ms):
            return None
        request_id = self.peers.sending(peer, request)
        self.effects.append(Send(request_id=request_id, to=peer, request=request))
        return request_id

    def persist(self, election: Election) -> None:
        invariant(
            all(_epoch_sent(effect) != election.epoch for effect in self.effects),
            f"{election} is persisted after a message of its epoch",
        )
        self.effects.append(PersistElection(election))

    def publish_leader(self, election: Election, endpoints: tuple[VoterEndpoint, ...]) -> None:
        """Publish the leader and its address unless that was the last one published."""
        leader = election.epoch, election.leader_id, endpoints
        if self._published != leader:
            self._published = leader
            self.effects.append(LeaderChanged(epoch=election.epoch, leader_id=election.leader_id))


def _epoch_sent(effect: Effect) -> int | None:
    """The epoch in a message; None where there is no message, or no epoch in it."""
    if isinstance(effect, Answer | AnswerRecords | AnswerChunk):
        return effect.reply.epoch
    if isinstance(effect, Send):
        return getattr(effect.request, "epoch", None)
    return None
