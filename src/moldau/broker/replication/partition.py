"""One partition hosted on this node: its log, its leader's decisions, and who waits for it.

What always holds: `error` is None exactly while this node leads the partition and its log is
online, and every client operation answers `error` otherwise; `read_error` is None also while it
follows, when consumers may read what is committed (KIP-392). The log's high watermark is what the
leader decided, raised before anybody is told. A watcher is told once and must watch again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from moldau.broker.log.context import AppendInfo, AppendOrigin
from moldau.broker.log.log import Log
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.machine.topics import INTERNAL_TOPICS
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
from moldau.broker.replication.machine.waiting import OffsetWaiters, Watcher
from moldau.broker.replication.reading import NO_EPOCH, PartitionRead
from moldau.broker.replication.surroundings import ALONE, Surroundings
from moldau.invariant import invariant
from moldau.times import ELAPSED_ZERO, WallMs
from moldau.wire.compression import Compression
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import NO_PRODUCER_ID, encode_batch_buffer, encode_end_txn_marker

__all__ = ["NO_EPOCH", "NO_LEADER", "Partition", "PartitionRead", "Watcher"]

NO_LEADER = -1
ACKS_ALL = -1

CommitWaiter = Callable[[ErrorCode], None]
DeleteWaiter = Callable[[ErrorCode, int], None]


class Partition:
    """A replica on this node. Only the replica manager calls `lead`, `follow`, `stop` and
    `configure`."""

    __slots__ = (
        "_awaiting_copy",
        "_commit_waiters",
        "_delete_waiters",
        "_leader",
        "_node_id",
        "_surroundings",
        "append_watchers",
        "error",
        "index",
        "internal",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "partition_epoch",
        "read_error",
        "replicas",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        *,
        node_id: int,
        topic: str,
        index: int,
        topic_id: UUID,
        log: Log,
        surroundings: Surroundings = ALONE,
    ) -> None:
        self.topic = topic
        self.index = index
        self.internal = topic in INTERNAL_TOPICS
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.partition_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.leader_id = NO_LEADER
        self.error: ErrorCode | None = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.read_error: ErrorCode | None = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.watchers: dict[Watcher, None] = {}
        # Who may read what is not committed yet: the fetches of followers.
        self.append_watchers: dict[Watcher, None] = {}
        self._delete_waiters: OffsetWaiters[DeleteWaiter] = OffsetWaiters()
        self._surroundings = surroundings
        self._node_id = node_id
        self._leader: PartitionLeader | None = None
        self._commit_waiters: OffsetWaiters[CommitWaiter] = OffsetWaiters()
        # While the log is exchanged for its copy: who waits for a flush that the copy has to do.
        self._awaiting_copy: list[tuple[int, CommitWaiter]] | None = None

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} epoch={self.leader_epoch}>"

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    # What the metadata log decides.

    def lead(
        self,
        *,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...],
        isr: frozenset[int],
    ) -> None:
        """Lead in `leader_epoch`, or learn of another change within the same one."""
        now_ms = self._surroundings.elapsed_ms()
        former = self._leader
        self.replicas = replicas
        if former is not None and leader_epoch == self.leader_epoch:
            self.partition_epoch = max(partition_epoch, self.partition_epoch)
            self._assign_epoch()
            self.step(IsrCommitted(replicas, isr, partition_epoch, now_ms))
            self._tell_deleted()
            return
        self.leader_epoch = leader_epoch
        self.leader_id = self._node_id
        self.partition_epoch = partition_epoch
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
            former=former,
        )
        self.error = self.read_error = None
        # A single replica has everything there is, so what it holds is committed.
        self.step(Tick(now_ms))
        self._tell_watchers()

    def _assign_epoch(self) -> None:
        """Note where this epoch begins, before anything is written in it.

        A follower may hold batches of a later epoch than any batch here, after several elections
        in a row; by this it finds out where to cut. Consumers receive the epoch from ListOffsets
        and Metadata and ask for its end, also of a sole replica.
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
        """Be a follower of `leader_id`, NO_LEADER if there is none now.

        Whether this is news: then whatever is still fetched for the former epoch is void, and
        fetching has to begin anew.
        """
        is_new = self._leader is not None or leader_epoch != self.leader_epoch
        is_new = is_new or self.read_error is not None
        self.replicas = replicas
        self.partition_epoch = partition_epoch
        self.leader_id = leader_id
        if is_new:
            self.leader_epoch = leader_epoch
            self.leader_epoch_start_offset = 0
            self.read_error = None
            self._resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return is_new

    def stop(self, error: ErrorCode) -> None:
        """Serve no longer: leadership is lost, the log is offline or the topic is gone."""
        self.read_error = error
        self._resign(error)

    def _resign(self, error: ErrorCode) -> None:
        self.error = error
        self._leader = None
        for waiter in self._commit_waiters.take_all():
            waiter(error)
        for tell in self._delete_waiters.take_all():
            tell(error, -1)
        self._tell_watchers()
        self._tell_append_watchers()

    def configure(self) -> None:
        """Take over what changed in the log's config."""
        if self._leader is not None:
            self.step(
                MinIsrChanged(self.log.config.min_insync_replicas, self._surroundings.elapsed_ms())
            )

    def replace_log(self, exchange: Callable[[], Log], now_ms: WallMs) -> None:
        """Go on with the copy in another directory that `exchange` puts in the log's place.

        Producers that wait for a flush wait on: their records are in the copy.
        """
        awaiting = self._awaiting_copy = []
        try:
            log = exchange()
        except BaseException:
            for _, waiter in awaiting:
                waiter(ErrorCode.KAFKA_STORAGE_ERROR)
            raise
        finally:
            self._awaiting_copy = None
        invariant(
            log.log_end_offset == self.log.log_end_offset,
            f"{log.dir} ends at {log.log_end_offset}, {self.log.dir} at {self.log.log_end_offset}",
        )
        self.log = log
        for next_offset, waiter in awaiting:
            self.when_durable(next_offset, now_ms, waiter)
        self._tell_watchers()

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
        """Append one client batch; on return what could be committed at once is committed.

        If the outcome says that a flush is due, `when_durable` tells when it may be acknowledged.
        """
        leader = self._leading(acks_all=acks == ACKS_ALL)
        info = self.log.append_as_leader(
            batch,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            produce_version=produce_version,
            guard=guard,
        )
        if not info.duplicate:
            self._on_appended(leader, info.last_offset + 1)
        return info

    def append_coordinator_records(
        self,
        records: Sequence[tuple[bytes | None, bytes | None]],
        now_ms: WallMs,
        *,
        compression: Compression = Compression.NONE,
        acks_all: bool = False,
        producer: tuple[int, int] | None = None,
        guard: Verification | None = None,
    ) -> int:
        """Append (key, value) pairs of a coordinator as one batch; their first offset.

        `producer` (id and epoch) makes it a batch of that producer's transaction, whose being
        open `guard` proves. `acks_all` refuses when too few replicas could take it.
        """
        leader = self._leading(acks_all=acks_all)
        producer_id, producer_epoch = (NO_PRODUCER_ID, NO_EPOCH) if producer is None else producer
        batch = encode_batch_buffer(
            [(key, value, now_ms, ()) for key, value in records],
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer is not None,
        )
        info = self.log.append_as_leader(
            memoryview(batch),
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
            guard=guard,
        )
        self._on_appended(leader, info.last_offset + 1)
        if info.flush_due:
            self.log.request_flush(now_ms=now_ms)
        return info.base_offset

    def start_verification(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: WallMs,
    ) -> Verification:
        """The guard that a transactional batch needs, as `ProducerStates` gives it."""
        self._leading(acks_all=False)
        return self.log.producers.start_verification(
            producer_id,
            epoch,
            first_sequence,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def append_marker(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int,
        now_ms: WallMs,
    ) -> AppendInfo:
        """End a producer's transaction here; `when_committed` tells when that is certain."""
        leader = self._leading(acks_all=True)
        batch = encode_end_txn_marker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            committed=committed,
            timestamp=now_ms,
        )
        info = self.log.append_as_leader(
            bytearray(batch),
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )
        self._on_appended(leader, info.last_offset + 1)
        return info

    def _leading(self, *, acks_all: bool) -> PartitionLeader:
        """This node's leadership; raises if it has none, or could not keep what `acks_all` asks."""
        leader = self._leader
        if leader is None or self.error is not None:
            raise self._unavailable()
        if acks_all and not leader.has_enough_in_sync:
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
        if self.append_watchers:
            self._tell_append_watchers()

    def step(self, event: Event) -> None:
        """Something happened to this leader: do what it decides."""
        if self._leader is None:
            return
        for effect in self._leader.step(event):
            match effect:
                case CommitUpTo(offset):
                    self._commit_up_to(offset)
                case ProposeIsr():
                    self._surroundings.propose(self, effect)
        self.partition_epoch = max(self.partition_epoch, self._leader.partition_epoch)

    def tick(self) -> None:
        """Time has passed: see whether somebody has fallen behind for too long."""
        if self._leader is not None and self._leader.is_replicated:
            self.step(Tick(self._surroundings.elapsed_ms()))

    def _commit_up_to(self, offset: int) -> None:
        self.log.set_high_watermark(offset)
        if self._commit_waiters:
            self._tell_committed(offset)
        if self.watchers:
            self._tell_watchers()

    # Waiting.

    def when_committed(self, next_offset: int, waiter: CommitWaiter) -> None:
        """Call `waiter` once the high watermark reaches `next_offset`, or with why it cannot."""
        if self.error is not None:
            waiter(self.error)
        elif self.log.high_watermark >= next_offset:
            waiter(self._committed_error())
        else:
            self._commit_waiters.add(waiter, next_offset)

    def when_durable(self, next_offset: int, now_ms: WallMs, waiter: CommitWaiter) -> None:
        """Flush, and call `waiter` once everything below `next_offset` is on disk."""

        def flushed(error: BaseException | None) -> None:
            if error is not None and self._awaiting_copy is not None:
                self._awaiting_copy.append((next_offset, waiter))
                return
            waiter(ErrorCode.NONE if error is None else ErrorCode.KAFKA_STORAGE_ERROR)

        self.log.flusher.request(next_offset, now_ms, flushed)

    def forget_waiter(self, waiter: CommitWaiter) -> None:
        self._commit_waiters.forget(waiter)

    def _committed_error(self) -> ErrorCode:
        # The ISR may have shrunk since the append: then fewer replicas than promised have it.
        if self._leader is not None and self._leader.has_kept_enough:
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _tell_committed(self, offset: int) -> None:
        error = self._committed_error()
        for waiter in self._commit_waiters.take(offset):
            waiter(error)

    def _tell_watchers(self) -> None:
        watchers, self.watchers = self.watchers, {}
        for watcher in watchers:
            watcher.on_partition_changed()

    def _tell_append_watchers(self) -> None:
        watchers, self.append_watchers = self.append_watchers, {}
        for watcher in watchers:
            watcher.on_partition_changed()

    def on_replicated(self) -> None:
        """What is committed here has changed while following."""
        self._tell_watchers()

    # Reading.

    def check_online(self) -> None:
        """Raise unless this node leads the partition and its log can be used."""
        if self.error is not None:
            raise self._unavailable()

    def check_readable(self, current_leader_epoch: int) -> None:
        """As `check_leader_epoch`, but a follower will do."""
        if self.read_error is not None:
            raise self._unavailable()
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            raise self._wrong_epoch(current_leader_epoch)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raise unless this node leads and the client's idea of the leader epoch is not wrong."""
        if self.error is not None:
            raise self._unavailable()
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            raise self._wrong_epoch(current_leader_epoch)

    def _wrong_epoch(self, current_leader_epoch: int) -> ApiError:
        older = current_leader_epoch < self.leader_epoch
        return ApiError(
            ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch {current_leader_epoch} of {self.topic}-{self.index} is"
            f" {'older' if older else 'newer'} than the current {self.leader_epoch}",
        )

    def read(
        self,
        fetch_offset: int,
        max_bytes: int,
        *,
        min_one_batch: bool,
        read_committed: bool = False,
        up_to_log_end: bool = False,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> PartitionRead:
        """As `reading.read`; `check_leader_epoch` comes first."""
        return reading.read(
            self.log,
            fetch_offset,
            max_bytes,
            min_one_batch=min_one_batch,
            read_committed=read_committed,
            up_to_log_end=up_to_log_end,
            last_fetched_epoch=last_fetched_epoch,
        )

    def check_follower(self, replica_id: int, broker_epoch: int, current_leader_epoch: int) -> None:
        """Raise unless this node leads and the other is a replica, of this very incarnation."""
        self.check_leader_epoch(current_leader_epoch)
        leader = self._leader
        if leader is None or leader.follower(replica_id) is None:
            # The follower may know of a reassignment before this leader does, and will ask again.
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if current_leader_epoch == NO_EPOCH
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{replica_id} is no replica of {self.topic}-{self.index}",
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
        """Take note that a follower has everything below `fetch_offset`, unless the leader's log
        says otherwise: then the reading that comes next will tell it."""
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
        if self._delete_waiters:
            self._tell_deleted()

    def delete_records(self, offset: int) -> int:
        """Advance the log start to `offset` (-1: the high watermark); the low watermark."""
        if self.error is not None:
            raise self._unavailable()
        if "delete" not in self.log.config.cleanup_policy:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"records of {self.topic}-{self.index} cannot be deleted: its cleanup.policy"
                " has no delete",
            )
        if offset == -1:
            offset = self.log.high_watermark
        if offset < 0 or offset > self.log.high_watermark:
            raise reading.out_of_range(self.log, offset)
        if offset > self.log.log_start_offset:
            self.log.advance_log_start_offset(offset)
            self._tell_watchers()
        return self.low_watermark

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of all replicas that are alive."""
        start = self.log.log_start_offset
        return start if self._leader is None else self._leader.low_watermark(start)

    def when_deleted(self, offset: int, waiter: DeleteWaiter) -> None:
        """Call `waiter` with the low watermark once no living replica has records below `offset`,
        or with why that cannot be known any more."""
        if self.error is not None:
            waiter(self.error, -1)
        elif (low_watermark := self.low_watermark) >= offset:
            waiter(ErrorCode.NONE, low_watermark)
        else:
            self._delete_waiters.add(waiter, offset)

    def forget_delete_waiter(self, waiter: DeleteWaiter) -> None:
        self._delete_waiters.forget(waiter)

    def _tell_deleted(self) -> None:
        low_watermark = self.low_watermark
        for waiter in self._delete_waiters.take(low_watermark):
            waiter(ErrorCode.NONE, low_watermark)

    @property
    def leadership(self) -> PartitionLeader | None:
        """What this node decides as the partition's leader; None while it does not lead."""
        return self._leader

    def _unavailable(self) -> ApiError:
        code = self.error or self.read_error or ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ApiError(code, f"partition {self.topic}-{self.index} is not served by this node")
