"""IncomingSnapshot: a snapshot of the leader on its way to this node's disk."""

from __future__ import annotations

from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.snapshots import SnapshotId, SnapshotWriter
from moldau.invariant import present


class IncomingSnapshot:
    def __init__(self, log: RaftLog) -> None:
        self._log = log
        self._writer: SnapshotWriter | None = None

    def start(self, snapshot_id: SnapshotId) -> None:
        self.drop()
        self._writer = self._log.start_fetched_snapshot(snapshot_id)

    def append(self, chunk: bytes | memoryview) -> None:
        present(self._writer, "a chunk without a snapshot").append(bytes(chunk))

    async def finish(self) -> None:
        """Return when the whole snapshot is on disk."""
        writer, self._writer = self._writer, None
        await self._log.keep_fetched(present(writer, "no snapshot has been fetched"))

    def drop(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None
