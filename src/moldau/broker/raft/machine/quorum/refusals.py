"""Whether a request is refused before it is looked at: by its epoch, or by what this node is."""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.voters import ReplicaKey
from moldau.wire.errors import ErrorCode


def voter_request_refusal(state: QuorumState, node_id: int, epoch: int) -> ErrorCode:
    """Of a request that a candidate or a leader sends to a voter."""
    if epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if node_id < 0 else ErrorCode.NONE


def leader_request_refusal(state: QuorumState, epoch: int) -> ErrorCode:
    """Of a request that only the leader of `epoch` answers."""
    if epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > state.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not state.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if state.shutting_down else ErrorCode.NONE


def is_for(local: ReplicaKey, voter: ReplicaKey | None) -> bool:
    """Whether the sender means this node; old versions of the protocol leave it out."""
    return voter is None or voter.matches(local)
