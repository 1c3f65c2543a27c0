"""Decides which appended records are committed, and which replicas count as in sync.

A record is committed when every replica in the ISR has it and the ISR has at least the effective
minimum of members (KIP-966). While a change of the ISR is proposed, the union of both sets counts
(the maximal ISR): the controller may have made the change or not. A replica that is about to join
is waited for too, otherwise a busy leader would stay ahead of it forever.

Invariants, checked after every step: the high watermark never goes back and never passes the log
end offset; the log end offset never goes back; the ISR contains the leader and only replicas; the
maximal ISR contains the ISR, and is larger only while a proposal is pending; the partition epoch
never goes back. At most one proposal is pending, and only the controller makes the ISR smaller.

Transitions: Appended and FollowerFetched move log end offsets, IsrCommitted and IsrAccepted change
which replicas count, MinIsrChanged how many must count; each may commit more. FollowerFetched may
propose a larger ISR, Tick a smaller one. IsrRefused withdraws a proposal that the controller did
not carry out, repeats it where that helps, and otherwise waits for the metadata log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from moldau.broker.replication.machine.events import (
    Appended,
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
from moldau.invariant import InvariantError
from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.constants import UNKNOWN_OFFSET
from moldau.wire.errors import ApiError, ErrorCode

NO_BROKER_EPOCH = -1
_NEVER_MS = -(2**62)

# The change was not made and this leader's epochs are current: return to the ISR before it.
_NOT_MADE = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# The controller has newer metadata, which the metadata log is about to deliver.
_OUTDATED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class Brokers(Protocol):
    """What the metadata says about brokers."""

    def alive_epoch(self, broker_id: int) -> int | None:
        """The epoch of its registration; None while it is fenced or not registered."""
        ...

    def is_shutting_down(self, broker_id: int) -> bool: ...

    def own_epoch(self) -> int:
        """The epoch of this broker's registration, -1 before there is one."""
        ...


class Follower:
    """What the leader knows about another replica."""

    __slots__ = (
        "broker_epoch",
        "end_offset",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end = UNKNOWN_OFFSET
        self.last_fetch_ms = _NEVER_MS
        self.last_caught_up_ms = last_caught_up_ms
        # None: it has not fetched from this leader yet.
        self.broker_epoch: int | None = None

    def is_caught_up(self, leader_end: int, now_ms: ElapsedMs, lag_ms_max: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_ms_max

    def fetched(self, event: FollowerFetched, leader_end: int) -> None:
        """A follower that fetches from the previous log end offset had everything then: under a
        steady stream of appends a follower is never seen at the current end."""
        if event.fetch_offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, event.now_ms)
        elif event.fetch_offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = event.fetch_offset
        self.log_start_offset = event.log_start_offset
        self.last_fetch_leader_end = max(self.last_fetch_leader_end, leader_end)
        self.last_fetch_ms = event.now_ms
        self.broker_epoch = event.broker_epoch

    def take_over(
        self, former: Follower, leader_end: int, in_sync: bool, now_ms: ElapsedMs
    ) -> None:
        """Copy what the same leader knew about it in the previous epoch."""
        self.end_offset = former.end_offset
        self.log_start_offset = former.log_start_offset
        self.last_fetch_leader_end = leader_end
        # One that is not in sync does not count as having fetched: it must fetch before it joins.
        self.last_fetch_ms = now_ms if in_sync else _NEVER_MS
        self.broker_epoch = former.broker_epoch


class PartitionLeader:
    """The leader of one partition in one leader epoch."""

    __slots__ = (
        "_brokers",
        "_end_offset",
        "_epoch_start_offset",
        "_followers",
        "_isr",
        "_lag_ms_max",
        "_leader_id",
        "_maximal_isr",
        "_min_insync_replicas",
        "_pending",
        "_replicas",
        "alone",
        "high_watermark",
        "leader_epoch",
        "partition_epoch",
    )

    def __init__(
        self,
        leader_id: int,
        *,
        replicas: tuple[int, ...],
        isr: frozenset[int],
        min_insync_replicas: int,
        end_offset: int,
        high_watermark: int,
        brokers: Brokers,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        now_ms: ElapsedMs = ELAPSED_ZERO,
        lag_ms_max: Callable[[], int] = lambda: 30_000,
        former: PartitionLeader | None = None,
    ) -> None:
        """`former` is this node's leader of the previous epoch, if it led that one too."""
        self._leader_id = leader_id
        self._brokers = brokers
        self._lag_ms_max = lag_ms_max
        self._min_insync_replicas = min_insync_replicas
        self._end_offset = end_offset
        self._epoch_start_offset = end_offset
        self._followers: dict[int, Follower] = {}
        self._pending: ProposeIsr | None = None
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.high_watermark = high_watermark
        # No other replica counts: what is appended is committed.
        self.alone = False
        self._assign(replicas, isr, now_ms)
        if former is not None:
            for replica_id, follower in self._followers.items():
                known = former._followers.get(replica_id)
                if known is not None:
                    follower.take_over(known, end_offset, replica_id in isr, now_ms)

        self._check(high_watermark)

    def step(self, event: Event) -> list[Effect]:
        before = self.high_watermark
        effects = self._step(event)
        self._check(before)
        return effects

    def _step(self, event: Event) -> list[Effect]:
        match event:
            case Appended(next_offset, now_ms):
                before = self.high_watermark
                return self._commit_beyond(before, self.appended(next_offset, now_ms))
            case FollowerFetched():
                return self._on_follower_fetched(event)
            case IsrCommitted():
                return self._on_isr_committed(event)
            case IsrAccepted():
                return self._on_isr_accepted(event)
            case IsrRefused(proposal, error):
                return self._on_isr_refused(proposal, error)
            case MinIsrChanged(min_insync_replicas, now_ms):
                self._min_insync_replicas = min_insync_replicas
                return self._advanced(now_ms)
            case Tick(now_ms):
                return self._on_tick(now_ms)
            case _:
                assert_never(event)

    def _check(self, high_watermark_before: int) -> None:
        # Spelled out: this is part of every fetch of a follower, and messages cost more than tests.
        if not high_watermark_before <= self.high_watermark <= self._end_offset:
            raise InvariantError(
                f"the high watermark moved from {high_watermark_before} to {self.high_watermark},"
                f" the log ends at {self._end_offset}"
            )
        if self._pending is None and self._maximal_isr is not self._isr:
            raise InvariantError(
                f"no change is proposed, but {sorted(self._maximal_isr)} count instead of the ISR"
                f" {sorted(self._isr)}"
            )

    # What is committed.

    def appended(self, next_offset: int, now_ms: ElapsedMs = ELAPSED_ZERO) -> int:
        """The high watermark after Appended(next_offset).

        Every produced batch takes this step, so it does without event and effect objects.
        """
        if next_offset < self._end_offset:
            raise InvariantError(f"the log end went back from {self._end_offset} to {next_offset}")
        self._end_offset = next_offset
        if self.alone:
            if next_offset > self.high_watermark:
                self.high_watermark = next_offset
            return self.high_watermark
        if len(self._maximal_isr) > 1:
            # A follower cannot have it yet.
            return self.high_watermark
        return self._advance(now_ms)

    @property
    def has_enough_in_sync(self) -> bool:
        """Whether the ISR is large enough for acks=all."""
        return len(self._isr) >= self._effective_min_isr()

    @property
    def has_kept_enough(self) -> bool:
        """Whether enough replicas have the records that are now committed, for acks=all."""
        return len(self._maximal_isr) >= self._effective_min_isr()

    def _effective_min_isr(self) -> int:
        return min(self._min_insync_replicas, len(self._replicas))

    def _advance(self, now_ms: ElapsedMs) -> int:
        if not self.has_enough_in_sync:
            return self.high_watermark
        committed = self._end_offset
        for replica_id, follower in self._followers.items():
            if follower.end_offset < committed and (
                replica_id in self._maximal_isr or self._is_about_to_join(replica_id, now_ms)
            ):
                committed = follower.end_offset
        if committed > self.high_watermark:
            self.high_watermark = committed
        return self.high_watermark

    def _is_about_to_join(self, replica_id: int, now_ms: ElapsedMs) -> bool:
        return self._followers[replica_id].is_caught_up(
            self._end_offset, now_ms, self._lag_ms_max()
        ) and self._is_eligible(replica_id)

    def _advanced(self, now_ms: ElapsedMs) -> list[Effect]:
        self.alone = self._is_alone()
        before = self.high_watermark
        return self._commit_beyond(before, self._advance(now_ms))

    @staticmethod
    def _commit_beyond(before: int, after: int) -> list[Effect]:
        return [CommitUpTo(after)] if after > before else []

    def _is_alone(self) -> bool:
        return not self._followers and len(self._maximal_isr) == 1 and self.has_enough_in_sync

    # Metadata.

    def _assign(self, replicas: tuple[int, ...], isr: frozenset[int], now_ms: ElapsedMs) -> None:
        self._replicas = replicas
        self._set_isr(isr)
        former = self._followers
        self._followers = {}
        for replica_id in replicas:
            if replica_id != self._leader_id:
                # One in the ISR has its time to fetch; one that is not holds nothing back.
                self._followers[replica_id] = former.get(replica_id) or Follower(
                    now_ms if replica_id in isr else _NEVER_MS
                )
        self.alone = self._is_alone()

    def _set_isr(self, isr: frozenset[int]) -> None:
        # Spelled out: a start takes the ISRs of thousands, and messages cost more than tests.
        if self._leader_id not in isr:
            raise InvariantError(f"leader {self._leader_id} is not in its own ISR {sorted(isr)}")
        if not isr.issubset(self._replicas):
            raise InvariantError(
                f"the ISR {sorted(isr)} has members that are not among the replicas"
                f" {sorted(self._replicas)}"
            )
        self._isr = self._maximal_isr = isr
        self._pending = None

    def _on_isr_committed(self, event: IsrCommitted) -> list[Effect]:
        if event.partition_epoch < self.partition_epoch:
            # The controller's response came before the metadata log, and is newer.
            return []
        if event.partition_epoch == self.partition_epoch and self._pending is not None:
            # Its response had the same already, and the next change is proposed: that one counts.
            return []
        self.partition_epoch = event.partition_epoch
        self._assign(event.replicas, event.isr, event.now_ms)
        return self._advanced(event.now_ms)

    # The ISR.

    def check_follower_epoch(self, replica_id: int, broker_epoch: int) -> None:
        """Raise if the request was sent by a previous incarnation of the follower."""
        alive_epoch = self._brokers.alive_epoch(replica_id)
        if alive_epoch is not None and NO_BROKER_EPOCH != broker_epoch < alive_epoch:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica_id} fetched with broker epoch {broker_epoch} after it registered"
                f" with epoch {alive_epoch}",
            )

    def _on_follower_fetched(self, event: FollowerFetched) -> list[Effect]:
        follower = self._followers.get(event.replica_id)
        if follower is None:
            return []
        if event.fetch_offset > self._end_offset:
            raise InvariantError(
                f"replica {event.replica_id} ends at {event.fetch_offset}, the leader at"
                f" {self._end_offset}"
            )
        end_before = follower.end_offset
        follower.fetched(event, self._end_offset)
        effects: list[Effect] = []
        if self._may_join(event.replica_id):
            effects.append(self._propose(self._isr | {event.replica_id}))
        if follower.end_offset != end_before:
            effects += self._advanced(event.now_ms)
        return effects

    def _may_join(self, replica_id: int) -> bool:
        """Whether it has everything that is committed.

        That is everything below the high watermark, and what the previous leader may have committed
        without this one knowing it yet: at most what the log held when this epoch began.
        """
        end_offset = self._followers[replica_id].end_offset
        return (
            self._pending is None
            and replica_id not in self._isr
            and end_offset >= self.high_watermark
            and end_offset >= self._epoch_start_offset
            and self._is_eligible(replica_id)
        )

    def _is_eligible(self, replica_id: int) -> bool:
        broker_epoch = self._followers[replica_id].broker_epoch
        alive_epoch = self._brokers.alive_epoch(replica_id)
        return (
            broker_epoch is not None
            and alive_epoch is not None
            and broker_epoch in (NO_BROKER_EPOCH, alive_epoch)
            and not self._brokers.is_shutting_down(replica_id)
        )

    def _on_tick(self, now_ms: ElapsedMs) -> list[Effect]:
        effects: list[Effect] = []
        out_of_sync = self.out_of_sync(now_ms)
        if out_of_sync and self._pending is None:
            effects.append(self._propose(self._isr - out_of_sync))
        return effects + self._advanced(now_ms)

    def out_of_sync(self, now_ms: ElapsedMs) -> frozenset[int]:
        """Members of the ISR that have been behind for longer than replica.lag.time.max.ms."""
        lag_ms_max = self._lag_ms_max()
        return frozenset(
            replica_id
            for replica_id in self._isr
            if replica_id != self._leader_id
            and not (
                replica_id in self._followers
                and self._followers[replica_id].is_caught_up(self._end_offset, now_ms, lag_ms_max)
            )
        )

    def _propose(self, isr: frozenset[int]) -> ProposeIsr:
        self._pending = ProposeIsr(
            self.leader_epoch,
            self.partition_epoch,
            tuple((replica_id, self._broker_epoch(replica_id)) for replica_id in sorted(isr)),
        )
        self._maximal_isr = self._isr | isr
        self.alone = self._is_alone()
        return self._pending

    def _broker_epoch(self, replica_id: int) -> int:
        if replica_id == self._leader_id:
            return self._brokers.own_epoch()
        follower = self._followers.get(replica_id)
        if follower is None or follower.broker_epoch is None:
            # It is in the ISR already. If it restarts in the meantime, the controller removes it
            # and rejects this proposal for its partition epoch.
            return NO_BROKER_EPOCH
        return follower.broker_epoch

    def _on_isr_accepted(self, event: IsrAccepted) -> list[Effect]:
        if event.proposal != self._pending:
            return []
        if event.leader_epoch != self.leader_epoch or event.partition_epoch < self.partition_epoch:
            # Newer metadata is on its way, or has been applied already.
            return []
        self.partition_epoch = event.partition_epoch
        self._set_isr(event.isr)
        return self._advanced(event.now_ms)

    def _on_isr_refused(self, proposal: ProposeIsr, error: ErrorCode) -> list[Effect]:
        if proposal != self._pending:
            return []
        if error in _NOT_MADE:
            self._pending = None
            self._maximal_isr = self._isr
            self.alone = self._is_alone()
            return []
        if error in _OUTDATED:
            return []
        return [proposal]

    # Queries.

    @property
    def isr(self) -> frozenset[int]:
        """The in-sync replicas as the controller last committed them."""
        return self._isr

    @property
    def is_replicated(self) -> bool:
        return bool(self._followers)

    def follower(self, replica_id: int) -> Follower | None:
        return self._followers.get(replica_id)

    def low_watermark(self, log_start_offset: int) -> int:
        """The smallest log start offset of all replicas whose brokers are alive."""
        lowest = log_start_offset
        for replica_id, follower in self._followers.items():
            if (
                follower.log_start_offset < lowest
                and self._brokers.alive_epoch(replica_id) is not None
            ):
                lowest = follower.log_start_offset
        return lowest

    def readable_replicas(self, fetch_offset: int) -> list[int]:
        """Followers that a consumer at `fetch_offset` may be redirected to (KIP-392)."""
        return [
            replica_id
            for replica_id, follower in self._followers.items()
            if replica_id in self._isr
            and follower.log_start_offset <= fetch_offset <= follower.end_offset
        ]
