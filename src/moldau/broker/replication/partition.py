"""One partition hosted on this node: its log, its role, and the leader's decisions.

Invariants: every client operation gets `error` unless this node leads the partition and its log is
online (`machine/role.py`). The log's high watermark is what the leader decided, raised before
anything that waits for it is called. A watcher is called once and must register again.
"""

from __future__ import annotations

from uuid import UUID

from moldau.broker.log.context import AppendInfo, AppendOrigin
from moldau.broker.log.log import Log
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.machine.topics import INTERNAL_TOPICS
from moldau.broker.metrics.topics import PartitionMeters
from moldau.broker.replication import reading
from moldau.broker.replication.machine.events import (
    CommitUpTo,
    Event,
    FollowerFetched,
    IsrCommitted,
    MinIsrChanged,
    ProposeIsr,
    Tick,
)
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.broker.replication.machine.role import PartitionRole
from moldau.broker.replication.machine.waiting import CommitWaiter, PartitionWaiters
from moldau.broker.replication.surroundings import Surroundings
from moldau.times import ELAPSED_ZERO, WallMs
from moldau.wire.constants import ACKS_ALL, NO_EPOCH
from moldau.wire.errors import ApiError, ErrorCode


class Partition:
    """A replica on this node. Only the replica manager calls `lead`, `follow`, `stop` and
    `configure`."""

    __slots__ = (
        "_leader",
        "_node_id",
        "_surroundings",
        "awaiting_copy",
        "index",
        "internal",
        "leader_epoch_start_offset",
        "log",
        "meters",
        "replicas",
        "role",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self,
        *,
        node_id: int,
        topic: str,
        index: int,
        topic_id: UUID,
        log: Log,
        surroundings: Surroundings,
        meters: PartitionMeters | None = None,
    ) -> None:
        """`meters` count what goes in and out; without them nothing is counted."""
        self.meters = meters
        self.topic = topic
        self.index = index
        self.internal = topic in INTERNAL_TOPICS
        self.topic_id = topic_id
        self.log = log
        self.role = PartitionRole(f"{topic}-{index}")
        self.waiters = PartitionWaiters()
        self.leader_epoch_start_offset = 0
        self.replicas: tuple[int, ...] = ()
        self._surroundings = surroundings
        self._node_id = node_id
        # Set exactly while this node leads.
        self._leader: PartitionLeader | None = None
        # While the log is exchanged for its copy: waiters for a flush of the copy (durability.py).
        self.awaiting_copy: list[tuple[int, CommitWaiter]] | None = None

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} epoch={self.leader_epoch}>"

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def error(self) -> ErrorCode | None:
        """Why this node does not serve as the leader; None if it does."""
        return self.role.error

    @property
    def leader_epoch(self) -> int:
        return self.role.leader_epoch

    @property
    def leader_id(self) -> int:
        return self.role.leader_id

    @property
    def partition_epoch(self) -> int:
        return self.role.partition_epoch

    @property
    def leadership(self) -> PartitionLeader | None:
        """What this node decides as the partition's leader; None while it does not lead."""
        return self._leader

    # Metadata.

    def lead(
        self,
        *,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...],
        isr: frozenset[int],
    ) -> None:
        """Lead in `leader_epoch`, or apply another change within the same epoch."""
        now_ms = self._surroundings.elapsed_ms()
        is_new = self.role.lead(
            self._node_id, leader_epoch=leader_epoch, partition_epoch=partition_epoch
        )
        self.replicas = replicas
        if not is_new:
            self._assign_epoch()
            self.step(IsrCommitted(replicas, isr, partition_epoch, now_ms))
            self.waiters.notify_deleted(self.low_watermark)
            return
        self.leader_epoch_start_offset = self.log.log_end_offset
        self._assign_epoch()
        self._leader = PartitionLeader(
            self._node_id,
            replicas=replicas,
            isr=isr,
            min_insync_replicas=self.log.config.min_insync_replicas,
            end_offset=self.log.log_end_offset,
            high_watermark=self.log.high_watermark,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            now_ms=now_ms,
            lag_ms_max=self._surroundings.lag_ms_max,
            brokers=self._surroundings.brokers,
            former=self._leader,
        )
        # A single replica has everything there is, so its records are committed.
        self.step(Tick(now_ms))
        self.waiters.notify_changed()

    def _assign_epoch(self) -> None:
        """Record where this epoch begins, before anything is written in it.

        After several elections in a row a follower may have batches of a later epoch than any batch
        here; this entry shows it where to truncate. Consumers get the epoch from ListOffsets and
        Metadata and ask for its end, also if there is a single replica.
        """
        if self.log.latest_epoch < self.leader_epoch:
            self.log.assign_epoch(self.leader_epoch, self.leader_epoch_start_offset)

    def follow(
        self,
        *,
        leader_id: int,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...],
    ) -> bool:
        """Follow `leader_id`, NO_LEADER if there is none.

        Whether the epoch is new: then everything still being fetched for the previous one is void,
        and fetching must start again.
        """
        is_new = self.role.follow(
            leader_id, leader_epoch=leader_epoch, partition_epoch=partition_epoch
        )
        self.replicas = replicas
        if is_new:
            self.leader_epoch_start_offset = 0
            self._resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return is_new

    def stop(self, error: ErrorCode) -> None:
        """Serve no longer: the log is offline, or the partition is no longer on this node."""
        self.role.stop(error)
        self._resign(error)

    def _resign(self, error: ErrorCode) -> None:
        self._leader = None
        self.waiters.fail_all(error)

    def configure(self) -> None:
        """The log's config has changed."""
        if self._leader is not None:
            self.step(
                MinIsrChanged(self.log.config.min_insync_replicas, self._surroundings.elapsed_ms())
            )

    # Appending.

    def append(
        self,
        batch: memoryview,
        *,
        now_ms: WallMs,
        acks: int = 1,
        produce_version: int = 13,
        guard: Verification | None = None,
    ) -> AppendInfo:
        """Append one client batch; on return, what could be committed immediately is committed.

        If the result says that a flush is due, acknowledge it only after that (durability.py).
        """
        leader = self._leading(acks_all=acks == ACKS_ALL)
        info = self.log.append_as_leader(
            batch,
            leader_epoch=leader.leader_epoch,
            now_ms=now_ms,
            produce_version=produce_version,
            guard=guard,
        )
        if not info.duplicate:
            self._on_appended(leader, info.last_offset + 1)
        return info

    def append_as_coordinator(
        self,
        batch: memoryview | bytearray,
        *,
        now_ms: WallMs,
        acks_all: bool,
        transaction_version: int = 0,
        guard: Verification | None = None,
    ) -> AppendInfo:
        """Append one batch that the broker itself has made (see coordinator_appends.py)."""
        leader = self._leading(acks_all=acks_all)
        info = self.log.append_as_leader(
            batch,
            leader_epoch=leader.leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
            guard=guard,
        )
        self._on_appended(leader, info.last_offset + 1)
        return info

    def _leading(self, *, acks_all: bool) -> PartitionLeader:
        """This node's leadership; raises if it has none, or if the ISR is too small for
        `acks_all`."""
        leader = self._leader
        if leader is None:
            raise self.role.unavailable()
        if acks_all and not leader.alone and not leader.has_enough_in_sync:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The ISR of partition {self.topic}-{self.index} is smaller than"
                " min.insync.replicas",
            )
        return leader

    def _on_appended(self, leader: PartitionLeader, next_offset: int) -> None:
        before = leader.high_watermark
        now_ms = ELAPSED_ZERO if leader.alone else self._surroundings.elapsed_ms()
        high_watermark = leader.appended(next_offset, now_ms)
        if high_watermark != before:
            self._commit_up_to(high_watermark)
        if self.waiters.appends:
            self.waiters.notify_appended()

    def step(self, event: Event) -> None:
        """Pass an event to the leader, if this node leads, and do what it decides."""
        if self._leader is None:
            return
        isr = self._leader.isr
        for effect in self._leader.step(event):
            match effect:
                case CommitUpTo(offset):
                    self._commit_up_to(offset)
                case ProposeIsr():
                    self._surroundings.propose(self, effect)
        self.role.isr_changed(self._leader.partition_epoch)
        if self._leader.isr != isr:
            self._surroundings.isr_changed(isr, self._leader.isr)

    def tick(self) -> None:
        """Check whether a follower has been behind for too long."""
        if self._leader is not None and self._leader.is_replicated:
            self.step(Tick(self._surroundings.elapsed_ms()))

    def _commit_up_to(self, offset: int) -> None:
        self.log.set_high_watermark(offset)
        waiters = self.waiters
        if waiters.commits:
            waiters.notify_committed(offset, self._committed_error())
        if waiters.changes:
            waiters.notify_changed()

    # Waiting.

    def when_committed(self, next_offset: int, waiter: CommitWaiter) -> None:
        """Call `waiter` once the high watermark reaches `next_offset`, or with an error."""
        if self.error is not None:
            waiter(self.error)
        elif self.log.high_watermark >= next_offset:
            waiter(self._committed_error())
        else:
            self.waiters.commits.add(waiter, next_offset)

    def forget_waiter(self, waiter: CommitWaiter) -> None:
        self.waiters.commits.forget(waiter)

    def _committed_error(self) -> ErrorCode:
        # The ISR may have shrunk since the append: then fewer replicas than required have it.
        if self._leader is not None and self._leader.has_kept_enough:
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    # Reading.

    def check_online(self) -> None:
        """Raise unless this node leads the partition and its log can be used."""
        self.role.check_online()

    def check_follower(self, replica_id: int, broker_epoch: int, current_leader_epoch: int) -> None:
        """Raise unless this node leads and the other is a replica in its current incarnation."""
        self.role.check_leader_epoch(current_leader_epoch)
        leader = self._leader
        if leader is None or leader.follower(replica_id) is None:
            # The follower may see a reassignment before this leader does, and will try again.
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if current_leader_epoch == NO_EPOCH
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is not a replica of {self.topic}-{self.index}",
            )
        leader.check_follower_epoch(replica_id, broker_epoch)

    def follower_fetched(
        self,
        replica_id: int,
        broker_epoch: int,
        *,
        fetch_offset: int,
        log_start_offset: int,
        last_fetched_epoch: int,
        current_leader_epoch: int,
    ) -> None:
        """Record that a follower has everything below `fetch_offset`, unless the leader's log
        differs: then the read that follows returns where."""
        self.check_follower(replica_id, broker_epoch, current_leader_epoch)
        log = self.log
        if not log.log_start_offset <= fetch_offset <= log.log_end_offset or (
            last_fetched_epoch != NO_EPOCH
            and reading.diverging_epoch(log, fetch_offset, last_fetched_epoch) is not None
        ):
            return
        self.step(
            FollowerFetched(
                replica_id=replica_id,
                fetch_offset=fetch_offset,
                log_start_offset=log_start_offset,
                broker_epoch=broker_epoch,
                now_ms=self._surroundings.elapsed_ms(),
            )
        )
        if self.waiters.deletions:
            self.waiters.notify_deleted(self.low_watermark)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of all replicas that are alive."""
        start = self.log.log_start_offset
        return start if self._leader is None else self._leader.low_watermark(start)
