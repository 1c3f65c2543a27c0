"""SnapshotFetching: fetches a snapshot of the leader, chunk by chunk.

Invariants: chunks are appended in order, without gaps; the snapshot replaces the log only when it
is complete.
"""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.events import (
    AppendChunk,
    DropSnapshot,
    FinishSnapshot,
    StartSnapshot,
)
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.roles import Follower, SnapshotProgress
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.quorum.timeouts import Timeouts
from moldau.broker.raft.machine.rpcs import Peer, Reply, SnapshotAsked, SnapshotReply
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.wire.errors import ErrorCode


class SnapshotFetching:
    def __init__(self, state: QuorumState, outbox: Outbox, timeouts: Timeouts) -> None:
        self._state = state
        self._outbox = outbox
        self._timeouts = timeouts

    def start(self, role: Follower, snapshot_id: SnapshotId) -> None:
        role.snapshot = SnapshotProgress(snapshot_id)
        self._outbox.add(StartSnapshot(snapshot_id))

    def fetch(self, progress: SnapshotProgress, leader: Peer) -> None:
        if progress.installing:
            return
        state = self._state
        request = SnapshotAsked(
            epoch=state.epoch,
            replica=state.local,
            snapshot_id=progress.snapshot_id,
            position=progress.position,
            max_bytes=state.settings.fetch_snapshot_max_bytes,
        )
        self._outbox.send(leader, request, state.now_ms)

    def on_reply(self, request: SnapshotAsked, reply: Reply) -> bool:
        """False when the peer is not asked again for a while."""
        state = self._state
        role = state.role
        if not isinstance(role, Follower) or not isinstance(reply, SnapshotReply):
            return False
        progress = role.snapshot
        if progress is None or progress.snapshot_id != request.snapshot_id:
            # It is no longer being fetched.
            return True
        if reply.error is ErrorCode.SNAPSHOT_NOT_FOUND or (
            reply.error is ErrorCode.NONE and reply.snapshot_id is None
        ):
            role.snapshot = None
            self._outbox.add(DropSnapshot())
            role.note_contact(state.after(self._timeouts.fetch_ms()))
            return True
        if reply.error is not ErrorCode.NONE:
            return False
        if reply.snapshot_id != progress.snapshot_id or reply.position != progress.position:
            return False
        self._take_chunk(progress, reply)
        role.note_contact(state.after(self._timeouts.fetch_ms()))
        return bool(len(reply.chunk))

    def _take_chunk(self, progress: SnapshotProgress, reply: SnapshotReply) -> None:
        self._outbox.add(AppendChunk(reply.chunk))
        progress.position += len(reply.chunk)
        if progress.position >= reply.size:
            progress.installing = True
            self._outbox.add(FinishSnapshot(progress.snapshot_id))
