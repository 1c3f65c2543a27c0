"""RaftNode: runs the quorum machine over the metadata log, the clock and the network.

What always holds: effects are performed in order, before the next event; a vote is on disk before
it is told; what is fetched is on disk before it is acknowledged; the listener hears of committed
batches in log order, once each, and of nothing that is not committed. After a failed write the node
takes part no more, because nobody knows what is on that disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from moldau.broker.raft.calls import Address, PeerCalls
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.batches import (
    DamagedBatch,
    MetadataBatch,
    decode_metadata_batches,
    encode_controls,
    leader_change,
    quorum_controls,
)
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.quorum.roles import Follower, Leader
from moldau.broker.raft.machine.recent_batches import RecentBatches
from moldau.broker.raft.machine.rpcs import Peer, Reply, Request
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import Voter, VoterSet
from moldau.broker.raft.snapshots import Snapshot, SnapshotId, SnapshotWriter
from moldau.clock import Alarm, Clock
from moldau.invariant import invariant
from moldau.peers.channel import ConnectionRefused, Transport
from moldau.peers.machine.backoff import RandomSource
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeQuorumResponse, KRaftVersionRecord, VotersRecord

# Telling the others is a courtesy: they find out by themselves.
STOP_TIMEOUT_MS = 1_000

logger = logging.getLogger(__name__)


class RaftListener(Protocol):
    """The metadata layer."""

    def on_committed(self, batches: Sequence[MetadataBatch]) -> None: ...

    def on_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Forget everything; this is what is committed."""
        ...

    def on_leader(self, epoch: int, leader_id: int) -> None:
        """Who leads, -1 while nobody is known; this node's own id: append may be called."""
        ...

    def on_step_down(self, epoch: int) -> None:
        """What was appended in `epoch` and is not committed may never be."""
        ...

    def on_failure(self, error: BaseException) -> None: ...


class RaftNode:
    def __init__(
        self,
        log: RaftLog,
        *,
        local: Voter,
        static_voters: VoterSet,
        settings: QuorumSettings,
        cluster_id: str,
        transport: Transport,
        clock: Clock,
        random: RandomSource,
        listener: RaftListener,
    ) -> None:
        """`log` is open; `static_voters` are those of the configuration, none if dynamic."""
        self.log = log
        self.cluster_id = cluster_id
        self._listener = listener
        self._clock = clock
        self._events: deque[e.Event] = deque()
        self._stepping = False
        self._alarm: Alarm | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._last_token = 0
        self._syncing: asyncio.Task[None] | None = None
        self._cuts = 0
        self._incoming: SnapshotWriter | None = None
        self._failure: BaseException | None = None
        self._stopped = False
        self._finished = asyncio.Event()
        self._armed_ms: int | None = None
        self._recent = RecentBatches()
        history, self._delivered = self._load_history(static_voters)
        self.machine = QuorumMachine(
            local,
            history,
            log.load_election(),
            log,
            settings,
            random_below=random.randrange,
            high_watermark=self._delivered,
        )
        self._calls = PeerCalls(
            transport, clock, settings, cluster_id=cluster_id, voters=self._other_voters
        )

    def _other_voters(self) -> list[Address]:
        others = self.machine.voters.others(self.machine.local)
        return [(end.host, end.port) for voter in others for end in voter.endpoints]

    def _load_history(self, static_voters: VoterSet) -> tuple[VoterHistory, int]:
        history = VoterHistory(static_voters)
        found = self.log.latest_snapshot()
        offset = self.log.start_offset
        if found is not None:
            snapshot_id, snapshot = found
            offset = snapshot_id.end_offset
            history.reset(offset - 1, snapshot.kraft_version, snapshot.voters)
        for batch in self.log.read(offset):
            self._recent.add(batch)
            for change in _changes(batch):
                if change.kraft_version is not None:
                    history.add_kraft_version(change.offset, change.kraft_version)
                if change.voters is not None:
                    history.add_voters(change.offset, change.voters)
        return history, offset

    # What others ask --------------------------------------------------------------------

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
        """Whether this node leads, or hears from the leader."""
        role, now_ms = self.machine.role, self._clock.elapsed_ms()
        if isinstance(role, Follower):
            return role.has_fetched and role.fetch_deadline_ms > now_ms
        return isinstance(role, Leader)

    def voters_heard(self, within_ms: int) -> int:
        """How many voters, this node included, have answered anything lately."""
        heard = self._calls.heard(within_ms)
        return sum(
            voter.key.id == self.machine.local.id
            or any((end.host, end.port) in heard for end in voter.endpoints)
            for voter in self.machine.voters.voters.values()
        )

    def batches(self, from_offset: int) -> Iterator[MetadataBatch]:
        """Every batch that ends after `from_offset`, in order, committed or not."""
        recent = self._recent.start_offset
        if recent is None or recent > from_offset:
            for batch in self.log.read(from_offset):
                if batch.base_offset == recent:
                    break
                yield batch
            else:
                return
        yield from self._recent.from_offset(from_offset)

    def describe_quorum(self) -> DescribeQuorumResponse.PartitionData:
        """ApiError NOT_LEADER_OR_FOLLOWER unless this node leads."""
        role = self.machine.role
        if not isinstance(role, Leader):
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")
        elapsed_ms, now_ms = self._clock.elapsed_ms(), self._clock.now_ms()

        def state(progress: Any) -> DescribeQuorumResponse.ReplicaState:
            is_local = progress.key.id == self.machine.local.id
            fetched, caught_up = progress.last_fetch_ms, progress.caught_up_ms
            return DescribeQuorumResponse.ReplicaState(
                replica_id=progress.key.id,
                replica_directory_id=progress.key.directory_id,
                log_end_offset=self.log.end_offset if is_local else progress.end_offset,
                last_fetch_timestamp=now_ms
                if is_local
                else (-1 if fetched < 0 else now_ms - elapsed_ms + fetched),
                last_caught_up_timestamp=now_ms
                if is_local
                else (-1 if caught_up < 0 else now_ms - elapsed_ms + caught_up),
            )

        established = self.machine.established_high_watermark
        return DescribeQuorumResponse.PartitionData(
            leader_id=self.machine.local.id,
            leader_epoch=self.epoch,
            high_watermark=-1 if established is None else established,
            current_voters=[state(each) for each in role.leadership.voter_progress()],
            observers=[state(each) for each in role.leadership.observer_progress(elapsed_ms)],
        )

    # Life -------------------------------------------------------------------------------

    def start(self) -> None:
        self.step(e.Started())
        self._sync()

    async def stop(self) -> None:
        """Tell the others, for a bounded time, then let go; the log stays open."""
        self.step(e.ShutDown())
        if not self.machine.is_finished and self._failure is None:
            alarm = self._clock.call_later(STOP_TIMEOUT_MS, self._finished.set)
            await self._finished.wait()
            alarm.cancel()
        self._stopped = True
        if self._syncing is not None:
            await asyncio.gather(self._syncing, return_exceptions=True)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._calls.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for future in self._answers.values():
            if not future.done():
                future.set_exception(ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "stopping"))
        if self._incoming is not None:
            self._incoming.abandon()

    def append(self, data: bytes, *, epoch: int, batch: MetadataBatch | None = None) -> int:
        """Append a batch stamped with the log's end and `epoch`; the new end of the log.

        `batch` is what `data` says, which need not be decoded then.
        """
        if not self.is_leader or epoch != self.epoch:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")
        try:
            self.log.append(data, epoch=epoch, now_ms=self._clock.now_ms())
        except Exception as error:
            self._fail(error)
            raise
        end_offset = self.log.end_offset
        if batch is None:
            self._recent.clear()
        else:
            self._recent.add(batch)
        self.step(e.Appended())
        self._sync()
        return end_offset

    def upgrade_kraft_version(self, version: int, *, epoch: int) -> None:
        """Write the quorum's new feature level with its voters; ApiError if it cannot be now."""
        if not self.is_leader or epoch != self.epoch:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")
        controls = quorum_controls(version, self.machine.check_upgrade(version))
        before = self.log.end_offset
        try:
            self._append_controls(controls, self._clock.now_ms())
        except Exception as error:
            self._fail(error)
            raise
        changes = [change for batch in self.batches(before) for change in _changes(batch)]
        self.step(e.Appended(changes=tuple(changes)))
        self._sync()

    async def ask(self, request: Request) -> Reply:
        """The machine's answer to another node's request."""
        if self._failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log has failed")
        if self._stopped:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "this node is stopping")
        self._last_token += 1
        token = self._last_token
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._answers[token] = future
        try:
            self.step(e.Received(token=token, request=request))
            return await future
        finally:
            self._answers.pop(token, None)

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
        self._arm()

    def _arm(self) -> None:
        deadline_ms = (
            None if self._failure is not None or self._stopped else (self.machine.deadline_ms)
        )
        if deadline_ms == self._armed_ms and (self._alarm is not None or deadline_ms is None):
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._armed_ms = deadline_ms
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - self._clock.elapsed_ms())
            self._alarm = self._clock.call_later(delay_ms, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self.step(e.TimePassed())

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case e.PersistElection(election):
                history = self.machine.history
                self.log.save_election(
                    election, kraft_version=history.kraft_version, voters=history.voters
                )
            case e.Send():
                self._spawn(self._call(effect))
            case e.Answer():
                self._answer(effect.token, effect.reply)
            case e.AnswerRecords():
                offset = effect.reply.read_from
                invariant(offset is not None, "records are read from somewhere")
                data = self.log.read_bytes(offset or 0, effect.request.max_bytes)
                self._answer(effect.token, effect.reply.with_records(data))
            case e.AnswerChunk():
                self._answer_chunk(effect)
            case e.CommitUpTo(offset):
                self._commit(offset)
            case e.StepDown(epoch):
                logger.info("no longer leading the metadata quorum in epoch %d", epoch)
                self._listener.on_step_down(epoch)
            case e.LeaderChanged():
                who = f"node {effect.leader_id} leads" if effect.leader_id >= 0 else "no leader yet"
                logger.info("epoch %d of the metadata quorum: %s", effect.epoch, who)
                self._listener.on_leader(effect.epoch, effect.leader_id)
            case e.StartSnapshot(snapshot_id):
                self._drop_incoming()
                self._incoming = self.log.start_fetched_snapshot(snapshot_id)
            case e.AppendChunk(chunk):
                invariant(self._incoming is not None, "chunks belong to a snapshot")
                if self._incoming is not None:
                    self._incoming.append(bytes(chunk))
            case e.FinishSnapshot(snapshot_id):
                self._spawn(self._install(snapshot_id))
            case e.DropSnapshot():
                self._drop_incoming()
            case _:
                self._write(effect)

    def _write(
        self, effect: e.BecomeLeader | e.AppendVoters | e.AppendRecords | e.TruncateTo
    ) -> None:
        log, now_ms = self.log, self._clock.now_ms()
        before = log.end_offset
        match effect:
            case e.BecomeLeader():
                controls: list[Any] = [
                    leader_change(self.machine.local.id, effect.voters, effect.granting)
                ]
                if effect.voters_record is not None:
                    version = self.machine.history.kraft_version
                    controls += quorum_controls(version, effect.voters_record)
                self._append_controls(controls, now_ms)
            case e.AppendVoters(voters):
                self._append_controls([voters.to_record()], now_ms)
            case e.AppendRecords(records):
                self._append_fetched(records, now_ms)
            case e.TruncateTo(offset):
                self._cuts += 1
                self._recent.truncate_to(offset)
                log.truncate_to(offset, now_ms=now_ms)
                self._sync()
                return
        changes = [change for batch in self.batches(before) for change in _changes(batch)]
        self._events.append(e.Appended(changes=tuple(changes)))
        self._sync()

    def _append_controls(self, controls: list[Any], now_ms: WallMs) -> None:
        log, epoch = self.log, self.machine.epoch
        data = encode_controls(controls, base_offset=log.end_offset, epoch=epoch, now_ms=now_ms)
        log.append(data, epoch=epoch, now_ms=now_ms)
        for batch in decode_metadata_batches(data, "the leader's own batch"):
            self._recent.add(batch)

    def _append_fetched(self, records: bytes | memoryview, now_ms: WallMs) -> None:
        try:
            # All of it is looked at before any of it is written.
            batches = list(decode_metadata_batches(records, "the leader's answer"))
            before = self.log.end_offset
            self.log.append_fetched(records, now_ms=now_ms)
            for batch in batches:
                if before <= batch.base_offset and batch.next_offset <= self.log.end_offset:
                    self._recent.add(batch)
        except (ApiError, DamagedBatch) as error:
            self._recent.clear()
            self._events.append(e.AppendFailed())
            self._calls.complain(f"the metadata leader sent what does not fit the log: {error}")

    def _answer(self, token: int, reply: Reply) -> None:
        future = self._answers.pop(token, None)
        if future is not None and not future.done():
            future.set_result(reply)

    def _answer_chunk(self, effect: e.AnswerChunk) -> None:
        request = effect.request
        size, chunk = self.log.read_chunk(request.snapshot_id, request.position, request.max_bytes)
        reply = replace(effect.reply, size=size, chunk=chunk)
        if not 0 <= request.position < size:
            reply = replace(effect.reply, error=ErrorCode.POSITION_OUT_OF_RANGE, snapshot_id=None)
        self._answer(effect.token, reply)

    def _commit(self, offset: int) -> None:
        self.log.commit(offset)
        batches = []
        if self._delivered < offset:
            for batch in self.batches(self._delivered):
                if batch.base_offset >= offset:
                    break
                batches.append(batch)
        self._delivered = offset
        self._recent.forget_before(offset)
        if batches:
            self._listener.on_committed(batches)

    # Slow work --------------------------------------------------------------------------

    def _spawn(self, coroutine: Any) -> None:
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

    def _sync(self) -> None:
        if self._syncing is None and self._failure is None:
            self._syncing = asyncio.get_running_loop().create_task(self._sync_appended())

    async def _sync_appended(self) -> None:
        """Sync until nothing new has come in between; what comes meanwhile shares the next."""
        synced = -1
        try:
            while self._failure is None and synced < self.log.end_offset:
                end_offset, cuts = self.log.end_offset, self._cuts
                if await self._sync_up_to(end_offset, cuts):
                    synced = end_offset
                    self.step(e.Synced(end_offset))
                if cuts != self._cuts:
                    synced = -1
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._fail(error)
        finally:
            self._syncing = None

    async def _sync_up_to(self, end_offset: int, cuts: int) -> bool:
        """False if the log was cut meanwhile: then nobody knows what the sync has covered."""
        try:
            await self.log.sync(end_offset, now_ms=self._clock.now_ms())
        except ApiError:
            if cuts == self._cuts:
                raise
        return cuts == self._cuts

    async def _install(self, snapshot_id: SnapshotId) -> None:
        writer, self._incoming = self._incoming, None
        invariant(writer is not None, "a fetched snapshot has been written")
        if writer is None:
            return
        try:
            await self.log.keep_fetched(writer)
            if not self._is_awaited(snapshot_id):
                # Another leader may have filled the log meanwhile, and knows what this node has.
                self.log.drop_fetched(snapshot_id)
                return
            self._cuts += 1
            snapshot = self.log.install_snapshot(snapshot_id, now_ms=self._clock.now_ms())
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._fail(error)
            return
        self._recent.clear()
        self._delivered = snapshot_id.end_offset
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

    def _drop_incoming(self) -> None:
        if self._incoming is not None:
            self._incoming.abandon()
            self._incoming = None

    def _fail(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        expected = isinstance(error, OSError | MetadataError | ApiError)
        logger.critical(
            "the metadata quorum's node has failed: %s",
            error,
            exc_info=None if expected else error,
        )
        self._finished.set()
        failure = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log has failed: {error}")
        for future in self._answers.values():
            if not future.done():
                future.set_exception(failure)
        self._listener.on_failure(error)


def _changes(batch: MetadataBatch) -> list[e.QuorumChange]:
    changes = []
    for index, control in enumerate(batch.controls):
        offset = batch.base_offset + index
        if isinstance(control, KRaftVersionRecord):
            changes.append(e.QuorumChange(offset=offset, kraft_version=control.kraft_version))
        elif isinstance(control, VotersRecord):
            voters = VoterSet.from_record(control)
            changes.append(e.QuorumChange(offset=offset, voters=voters))
    return changes
