"""RaftNode: runs the quorum machine over the metadata log, the clock and the network.

Invariants: effects are performed in order, all of them before the next event; a vote is on disk
before it is sent; what is fetched is on disk before it is acknowledged; the listener gets committed
batches in the order of the log, once each, and nothing that is not committed. After a failed write
the node takes part no more, because it is not known what is on its disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any

from moldau.broker.raft.batch_log import BatchLog
from moldau.broker.raft.calls import Address, PeerCalls
from moldau.broker.raft.incoming_snapshot import IncomingSnapshot
from moldau.broker.raft.listener import RaftListener
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.batches import (
    DamagedBatch,
    MetadataBatch,
    leader_change,
    quorum_controls,
)
from moldau.broker.raft.machine.description import describe_quorum
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.quorum.roles import Follower, Leader
from moldau.broker.raft.machine.rpcs import Peer, Reply, Request
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import Voter, VoterSet
from moldau.broker.raft.open_requests import OpenRequests
from moldau.broker.raft.snapshots import Snapshot
from moldau.broker.raft.syncer import LogSyncer
from moldau.broker.raft.wakeup import Wakeup
from moldau.clock import Clock
from moldau.invariant import present
from moldau.peers.channel import ConnectionRefused, Transport
from moldau.peers.machine.backoff import RandomSource
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeQuorumResponse

# Informing the others is a courtesy: they notice by themselves.
STOP_TIMEOUT_MS = 1_000

logger = logging.getLogger(__name__)


class RaftNode:
    def __init__(
        self,
        log: RaftLog,
        *,
        local: Voter,
        static_voters: VoterSet,
        newest_snapshot: tuple[SnapshotId, Snapshot] | None,
        settings: QuorumSettings,
        cluster_id: str,
        transport: Transport,
        clock: Clock,
        random: RandomSource,
        listener: RaftListener,
    ) -> None:
        """`log` is open; `static_voters` are those of the configuration, none if dynamic;
        `newest_snapshot` is that of the log, which its owner needs, too: it is read once."""
        self.log = log
        self.cluster_id = cluster_id
        self._listener = listener
        self._clock = clock
        self._events: deque[e.Event] = deque()
        self._stepping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._stopped = False
        self._finished = asyncio.Event()
        self._requests = OpenRequests()
        self._incoming = IncomingSnapshot(log)
        self.batch_log = BatchLog(log)
        history = self.batch_log.load(static_voters, newest_snapshot)
        self.machine = QuorumMachine(
            local,
            history,
            log.load_election(),
            log,
            settings,
            random_below=random.randrange,
            high_watermark=self.batch_log.delivered_offset,
        )
        self._calls = PeerCalls(
            transport, clock, settings, cluster_id=cluster_id, voters=self._other_voters
        )
        self._syncer = LogSyncer(
            log,
            clock,
            on_synced=lambda end_offset: self.step(e.Synced(end_offset)),
            on_failure=self._fail,
        )
        self._wakeup = Wakeup(clock, lambda: self.step(e.TimePassed()))

    def _other_voters(self) -> list[Address]:
        others = self.machine.voters.others(self.machine.local)
        return [(end.host, end.port) for voter in others for end in voter.endpoints]

    # Views ------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.machine.epoch

    @property
    def leader_id(self) -> int:
        return self.machine.election.leader_id

    @property
    def high_watermark(self) -> int:
        return self.machine.high_watermark

    @property
    def is_leader(self) -> bool:
        return self.machine.is_leader and self._failure is None

    def leader_address(self) -> Peer | None:
        return self.machine.leader

    @property
    def has_contact(self) -> bool:
        """Whether this node leads, or the leader answers its fetches."""
        role, now_ms = self.machine.role, self._clock.elapsed_ms()
        if isinstance(role, Follower):
            return role.has_fetched and role.fetch_deadline_ms > now_ms
        return isinstance(role, Leader)

    def voters_reached(self, within_ms: int) -> int:
        """How many voters, this node included, have answered anything lately."""
        reached = self._calls.reached(within_ms)
        return sum(
            voter.key.id == self.machine.local.id
            or any((end.host, end.port) in reached for end in voter.endpoints)
            for voter in self.machine.voters.voters.values()
        )

    def batches(self, from_offset: int) -> Iterator[MetadataBatch]:
        """Every batch that ends after `from_offset`, in order, committed or not."""
        return self.batch_log.read(from_offset)

    def describe_quorum(self) -> DescribeQuorumResponse.PartitionData:
        """ApiError NOT_LEADER_OR_FOLLOWER unless this node leads."""
        return describe_quorum(self.machine, self._clock.elapsed_ms(), self._clock.now_ms())

    # Start and stop ---------------------------------------------------------------------

    def start(self) -> None:
        self.step(e.Started())
        self._syncer.sync()

    async def stop(self) -> None:
        """Inform the other voters, for a bounded time, then stop; the log stays open."""
        self.step(e.ShutDown())
        if not self.machine.is_finished and self._failure is None:
            alarm = self._clock.call_later(STOP_TIMEOUT_MS, self._finished.set)
            await self._finished.wait()
            alarm.cancel()
        self._stopped = True
        await self._syncer.wait()
        self._wakeup.set(None)
        self._calls.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._requests.fail_all(ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "this node is stopping"))
        self._incoming.drop()

    # What the leader appends ------------------------------------------------------------

    def append(self, data: bytes, *, epoch: int, batch: MetadataBatch | None = None) -> int:
        """Append a batch that has the log end offset and `epoch`; returns the new end offset.

        `batch` is `data` decoded; without it, `data` is decoded when it is committed.
        """
        self._check_leading(epoch)
        try:
            self.batch_log.append(data, epoch=epoch, now_ms=self._clock.now_ms(), batch=batch)
        except Exception as error:
            self._fail(error)
            raise
        end_offset = self.log.end_offset
        self.step(e.Appended())
        self._syncer.sync()
        return end_offset

    def upgrade_kraft_version(self, version: int, *, epoch: int) -> None:
        """Append a new kraft.version with the voters; ApiError if that is not possible now."""
        self._check_leading(epoch)
        controls = quorum_controls(version, self.machine.check_upgrade(version))
        before = self.log.end_offset
        try:
            self._append_controls(controls)
        except Exception as error:
            self._fail(error)
            raise
        self.step(e.Appended(changes=self.batch_log.changes_since(before)))
        self._syncer.sync()

    def _check_leading(self, epoch: int) -> None:
        if not self.is_leader or epoch != self.epoch:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")

    def _append_controls(self, controls: list[Any]) -> None:
        self.batch_log.append_controls(
            controls, epoch=self.machine.epoch, now_ms=self._clock.now_ms()
        )

    async def ask(self, request: Request) -> Reply:
        """The machine's response to another node's request."""
        if self._failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log has failed")
        if self._stopped:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "this node is stopping")
        token, response = self._requests.open()
        try:
            self.step(e.Received(token=token, request=request))
            return await response
        finally:
            self._requests.close(token)

    # Steps ------------------------------------------------------------------------------

    def step(self, event: e.Event) -> None:
        self._events.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._events and self._failure is None:
                effects = self.machine.step(self._events.popleft(), self._clock.elapsed_ms())
                for effect in effects:
                    self._perform(effect)
        except Exception as error:
            self._fail(error)
        finally:
            self._stepping = False
        if self.machine.is_finished:
            self._finished.set()
        is_over = self._failure is not None or self._stopped
        self._wakeup.set(None if is_over else self.machine.deadline_ms)

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case e.Send():
                self._spawn(self._call(effect))
            case e.Answer():
                self._requests.answer(effect.token, effect.reply)
            case e.AnswerRecords():
                offset = present(effect.reply.read_from, "records are read from an offset")
                data = self.log.read_bytes(offset, effect.request.max_bytes)
                self._requests.answer(effect.token, effect.reply.with_records(data))
            case e.AnswerChunk():
                self._answer_chunk(effect)
            case e.CommitUpTo(offset):
                batches = self.batch_log.commit(offset)
                if batches:
                    self._listener.on_committed(batches)
            case e.StepDown(epoch):
                logger.info("no longer leading the metadata quorum in epoch %d", epoch)
                self._listener.on_step_down(epoch)
            case e.LeaderChanged():
                self._publish_leader(effect)
            case e.StartSnapshot(snapshot_id):
                self._incoming.start(snapshot_id)
            case e.AppendChunk(chunk):
                self._incoming.append(chunk)
            case e.FinishSnapshot(snapshot_id):
                self._spawn(self._install(snapshot_id))
            case e.DropSnapshot():
                self._incoming.drop()
            case _:
                self._write(effect)

    def _write(
        self,
        effect: e.PersistElection
        | e.BecomeLeader
        | e.AppendVoters
        | e.AppendRecords
        | e.TruncateTo,
    ) -> None:
        history = self.machine.history
        before = self.log.end_offset
        match effect:
            case e.PersistElection(election):
                self.log.save_election(
                    election, kraft_version=history.kraft_version, voters=history.voters
                )
                return
            case e.TruncateTo(offset):
                self._syncer.note_truncation()
                self.batch_log.truncate_to(offset, now_ms=self._clock.now_ms())
                self._syncer.sync()
                return
            case e.BecomeLeader():
                local_id = self.machine.local.id
                controls: list[Any] = [leader_change(local_id, effect.voters, effect.granting)]
                if effect.voters_record is not None:
                    controls += quorum_controls(history.kraft_version, effect.voters_record)
                self._append_controls(controls)
            case e.AppendVoters(voters):
                self._append_controls([voters.to_record()])
            case e.AppendRecords(records):
                self._append_fetched(records)
        self._events.append(e.Appended(changes=self.batch_log.changes_since(before)))
        self._syncer.sync()

    def _append_fetched(self, records: bytes | memoryview) -> None:
        try:
            self.batch_log.append_fetched(records, now_ms=self._clock.now_ms())
        except (ApiError, DamagedBatch) as error:
            self._events.append(e.AppendFailed())
            self._calls.complain(f"the metadata leader's records do not fit the log: {error}")

    def _answer_chunk(self, effect: e.AnswerChunk) -> None:
        request = effect.request
        size, chunk = self.log.read_chunk(request.snapshot_id, request.position, request.max_bytes)
        reply = replace(effect.reply, size=size, chunk=chunk)
        if not 0 <= request.position < size:
            reply = replace(effect.reply, error=ErrorCode.POSITION_OUT_OF_RANGE, snapshot_id=None)
        self._requests.answer(effect.token, reply)

    def _publish_leader(self, effect: e.LeaderChanged) -> None:
        known = effect.leader_id >= 0
        leader = f"node {effect.leader_id} leads" if known else "no leader yet"
        logger.info("epoch %d of the metadata quorum: %s", effect.epoch, leader)
        self._listener.on_leader(effect.epoch, effect.leader_id)

    # Slow work --------------------------------------------------------------------------

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, effect: e.Send) -> None:
        reply, refused = None, False
        try:
            reply = await self._calls.call(effect.to, effect.request)
        except ConnectionRefused as error:
            logger.debug("%s", error)
            refused = True
        except MetadataError as error:
            self._fail(error)
            return
        self.step(e.Answered(request_id=effect.request_id, reply=reply, refused=refused))

    async def _install(self, snapshot_id: SnapshotId) -> None:
        try:
            await self._incoming.finish()
            if not self._is_awaited(snapshot_id):
                # Another leader may have filled the log meanwhile, and knows what this node has.
                self.log.drop_fetched(snapshot_id)
                return
            self._syncer.note_truncation()
            snapshot = self.log.install_snapshot(snapshot_id, now_ms=self._clock.now_ms())
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._fail(error)
            return
        self.batch_log.begin_at(snapshot_id.end_offset)
        self._listener.on_snapshot(snapshot_id, snapshot)
        self.step(
            e.SnapshotInstalled(
                snapshot_id=snapshot_id,
                kraft_version=snapshot.kraft_version,
                voters=snapshot.voters,
            )
        )

    def _is_awaited(self, snapshot_id: SnapshotId) -> bool:
        role = self.machine.role
        progress = role.snapshot if isinstance(role, Follower) else None
        return progress is not None and progress.installing and progress.snapshot_id == snapshot_id

    def _fail(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        self._syncer.stop()
        expected = isinstance(error, OSError | MetadataError | ApiError)
        logger.critical(
            "this node of the metadata quorum has failed: %s",
            error,
            exc_info=None if expected else error,
        )
        self._finished.set()
        self._requests.fail_all(
            ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log has failed: {error}")
        )
        self._listener.on_failure(error)
