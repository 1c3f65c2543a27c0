"""Decides what a follower fetches from one leader, and what it does with the responses.

A `Fetcher` copies any number of partitions from one node. For each it knows from where to fetch
next, in which leader epoch, and whether it has to pause. It fetches what follows the end of the
local log and sends the epoch of the last batch there; where the leader's log differs, the response
says up to where they agree (a diverging epoch), and the local log is truncated.

Invariants, checked with every response: appended records follow the log end offset, were requested
in the current leader epoch, and are of no later epoch (KAFKA-18723); the high watermark never goes
back and never passes the log end offset; the leader epoch of a partition never goes back. The log
is truncated only where the leader of the current epoch says that it differs.

Transitions of a partition (`TRANSITIONS`, also in README.md): it is added as FETCHING, truncated to
the high watermark first if its log has no epochs. A response with records moves its position; a
diverging epoch truncates the log. An offset out of range makes it RESETTING: the leader's first and
last offsets are requested, and the log is truncated or starts again there. A temporary error delays
it. A fenced epoch (FENCED) or a failure of its own log (FAILED) removes it until it is added again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol

from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.broker.replication.machine.fetch_session import (
    FollowerFetchSession,
    PartitionKey,
    SessionRequest,
)
from moldau.invariant import InvariantError, invariant
from moldau.times import ElapsedMs
from moldau.wire.constants import NO_EPOCH, UNDEFINED_OFFSET, Buffer
from moldau.wire.errors import ApiError, ErrorCode


class FollowerLog(Protocol):
    """The local replica; every call has completed when it returns, or raises an ApiError."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last batch, -1 when none is known."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(greatest epoch <= `epoch`, its end), (-1, -1) when it is not known."""
        ...

    def append_fetched(self, records: Buffer, *, leader_epoch: int) -> int:
        """Append whole batches before the first of an epoch after `leader_epoch`; their size."""
        ...

    def truncate_fetched(self, offset: int) -> None:
        """Truncate to `offset`, and drop the epochs that begin there or later."""
        ...

    def restart_at(self, offset: int) -> None:
        """Delete everything, and continue at `offset`."""
        ...

    def take_watermarks(self, *, high_watermark: int, log_start_offset: int) -> None:
        """Adopt the leader's offsets, as far as the local log reaches."""
        ...


# The first pause after an error that newer metadata will resolve.
FIRST_RETRY_MS = 10
_STALE_METADATA = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class FetchedPartition(NamedTuple):
    """The leader's response for one partition."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = UNDEFINED_OFFSET
    log_start_offset: int = UNDEFINED_OFFSET
    records: Buffer | None = None
    diverging_epoch: tuple[int, int] | None = None


class Phase(Enum):
    FETCHING = "fetching"
    RESETTING = "resetting"
    FENCED = "fenced"
    FAILED = "failed"


TRANSITIONS: Final = {
    Phase.FETCHING: frozenset({Phase.RESETTING, Phase.FENCED, Phase.FAILED}),
    Phase.RESETTING: frozenset({Phase.FETCHING, Phase.FENCED, Phase.FAILED}),
    Phase.FENCED: frozenset[Phase](),
    Phase.FAILED: frozenset[Phase](),
}


class FetchState:
    """A follower's progress with one partition."""

    __slots__ = (
        "delayed_until_ms",
        "fetch_offset",
        "index",
        "lag",
        "last_fetched_epoch",
        "leader_epoch",
        "log",
        "phase",
        "refusals",
        "topic",
    )

    def __init__(self, topic: str, index: int, log: FollowerLog, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.phase = Phase.FETCHING
        self.delayed_until_ms: int | None = None
        # How often the leader did not know yet that it leads in this epoch.
        self.refusals = 0
        # None until the first response.
        self.lag: int | None = None
        self.fetch_offset = 0
        self.last_fetched_epoch = NO_EPOCH

    def enter(self, phase: Phase) -> None:
        invariant(
            phase in TRANSITIONS[self.phase],
            f"{self.topic}-{self.index} is {self.phase.value} and cannot become {phase.value}",
        )
        self.phase = phase

    def check_position(self) -> None:
        """Records are appended where they were fetched from."""
        if self.fetch_offset != self.log.log_end_offset:
            raise InvariantError(
                f"{self.topic}-{self.index} was fetched from {self.fetch_offset}, but ends at"
                f" {self.log.log_end_offset}"
            )

    def check_copied(self, high_watermark_before: int) -> None:
        """Check the log after records and offsets of the leader have been applied."""
        log = self.log
        if not (
            self.fetch_offset <= log.log_end_offset
            and high_watermark_before <= log.high_watermark <= log.log_end_offset
        ):
            raise InvariantError(
                f"{self.topic}-{self.index} was fetched from {self.fetch_offset} and now ends at"
                f" {log.log_end_offset}, its high watermark moved from {high_watermark_before} to"
                f" {log.high_watermark}"
            )
        if log.latest_epoch > self.leader_epoch:
            raise InvariantError(
                f"{self.topic}-{self.index} has records of epoch {log.latest_epoch}, fetched in"
                f" epoch {self.leader_epoch}"
            )

    def take_position(self) -> None:
        """Fetch what follows the end of the local log."""
        self.fetch_offset = self.log.log_end_offset
        self.last_fetched_epoch = self.log.latest_epoch

    @property
    def is_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0

    @property
    def is_ready(self) -> bool:
        return self.phase is Phase.FETCHING and self.delayed_until_ms is None


class Reset(NamedTuple):
    """A partition for which the leader's first and last offsets must be requested."""

    key: PartitionKey
    topic: str
    partition: int
    leader_epoch: int


class Fetcher:
    """All partitions that are copied from one leader over one connection."""

    def __init__(
        self,
        *,
        backoff_ms: Callable[[], int],
        max_bytes: Callable[[], int],
        is_throttled: Callable[[PartitionKey], bool] = lambda key: False,
        on_failed: Callable[[PartitionKey, str], None] = lambda key, reason: None,
        on_fenced: Callable[[PartitionKey, int], None] = lambda key, leader_epoch: None,
    ) -> None:
        """`backoff_ms` is replica.fetch.backoff.ms, `max_bytes` replica.fetch.max.bytes;
        `is_throttled(key)`: no bytes are left now for a partition that is not in sync;
        `on_failed` is called for partitions that are not fetched until they are added again,
        `on_fenced` for those whose leader epoch has ended, which newer metadata will replace."""
        self._backoff_ms = backoff_ms
        self._max_bytes = max_bytes
        self._is_throttled = is_throttled
        self._on_failed = on_failed
        self._on_fenced = on_fenced
        self._states: dict[PartitionKey, FetchState] = {}
        self._session = FollowerFetchSession()
        # Partitions that the next request may have to mention, and those that pause: a request
        # costs what has changed, not what there is.
        self._changed: dict[PartitionKey, None] = {}
        self._delayed: dict[PartitionKey, None] = {}
        self._resetting: dict[PartitionKey, None] = {}
        self.failed: dict[PartitionKey, int] = {}

    def __len__(self) -> int:
        return len(self._states)

    def state(self, key: PartitionKey) -> FetchState | None:
        return self._states.get(key)

    def keys(self) -> Iterable[PartitionKey]:
        return self._states.keys()

    # Partitions.

    def add(self, key: PartitionKey, topic: str, log: FollowerLog, *, leader_epoch: int) -> None:
        """Copy the partition in `leader_epoch`; one that is copied in this epoch continues."""
        known = self._states.get(key)
        if known is not None and known.leader_epoch == leader_epoch and known.log is log:
            return
        invariant(
            known is None or known.leader_epoch <= leader_epoch,
            f"{topic}-{key[1]} goes back to leader epoch {leader_epoch}",
        )
        self.failed.pop(key, None)
        state = FetchState(topic, key[1], log, leader_epoch)
        self._states[key] = state
        self._delayed.pop(key, None)
        self._resetting.pop(key, None)
        self._changed[key] = None
        if log.latest_epoch == NO_EPOCH and not self._truncate(key, state, log.high_watermark):
            # The log does not say which leader wrote it, so only what was committed is certain.
            return
        state.take_position()

    def remove(self, key: PartitionKey) -> None:
        self.failed.pop(key, None)
        self._drop(key)

    def _drop(self, key: PartitionKey) -> None:
        if self._states.pop(key, None) is not None:
            self._delayed.pop(key, None)
            self._resetting.pop(key, None)
            self._changed[key] = None

    # Requests.

    def request(self, now_ms: ElapsedMs) -> SessionRequest | None:
        """The next Fetch, None if there is nothing to fetch now."""
        self._wake(now_ms)
        session = self._session
        changed, self._changed = self._changed, {}
        if session.is_full_next:
            changed = dict.fromkeys(self._states)
        max_bytes = self._max_bytes()
        partitions: dict[PartitionKey, PartitionFetch] = {}
        gone: list[PartitionKey] = []
        for key in changed:
            state = self._states.get(key)
            if state is None or not state.is_ready:
                gone.append(key)
            elif not state.is_in_sync and self._is_throttled(key):
                gone.append(key)
                # There may be bytes left for it when the next request is made.
                self._changed[key] = None
            else:
                partitions[key] = PartitionFetch(
                    key[1],
                    state.leader_epoch,
                    state.fetch_offset,
                    state.last_fetched_epoch,
                    state.log.log_start_offset,
                    max_bytes,
                )
        if not partitions and (
            session.is_full_next or len(session.sent) == sum(key in session.sent for key in gone)
        ):
            # The leader drops the session when the next one begins.
            session.failed()
            return None
        return session.request(partitions, gone)

    def _wake(self, now_ms: ElapsedMs) -> None:
        for key in [
            key for key in self._delayed if (self._states[key].delayed_until_ms or 0) <= now_ms
        ]:
            del self._delayed[key]
            self._states[key].delayed_until_ms = None
            self._changed[key] = None

    def next_due_ms(self) -> int | None:
        """When the first pause ends; None if nothing pauses."""
        return min((self._states[key].delayed_until_ms or 0 for key in self._delayed), default=None)

    # Responses.

    def on_failure(self, now_ms: ElapsedMs) -> None:
        """There was no response: all partitions pause."""
        self._session.failed()
        for key in list(self._states):
            self._delay(key, now_ms)

    def on_given_up(self) -> None:
        """The request was abandoned here: the next one names all partitions again."""
        self._session.failed()

    def on_response(
        self,
        *,
        error: ErrorCode,
        session_id: int,
        partitions: Mapping[PartitionKey, FetchedPartition],
        now_ms: ElapsedMs,
    ) -> None:
        """Append, truncate or pause, as each partition's part of the response requires."""
        sent = self._session.sent
        if not self._session.answered(error, session_id):
            if error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                for key in list(self._states):
                    self._delay(key, now_ms)
            return
        for key, fetched in partitions.items():
            state, asked = self._states.get(key), sent.get(key)
            if (
                state is None
                or asked is None
                or not state.is_ready
                or asked.fetch_offset != state.fetch_offset
                or asked.current_leader_epoch != state.leader_epoch
            ):
                # It was removed, added again or truncated since the request.
                continue
            self._on_fetched(key, state, fetched, now_ms)

    def _on_fetched(
        self, key: PartitionKey, state: FetchState, fetched: FetchedPartition, now_ms: ElapsedMs
    ) -> None:
        match fetched.error:
            case ErrorCode.NONE if fetched.diverging_epoch is not None:
                self._on_diverging(key, state, *fetched.diverging_epoch)
            case ErrorCode.NONE:
                self._on_records(key, state, fetched, now_ms)
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                state.enter(Phase.RESETTING)
                self._resetting[key] = None
                self._changed[key] = None
            case ErrorCode.FENCED_LEADER_EPOCH:
                self._fence(key)
            case error if error in _STALE_METADATA:
                # The metadata reaches followers before the leader as often as not, and producers
                # wait for followers: try again soon, then less and less often.
                pause_ms = FIRST_RETRY_MS << min(state.refusals, 10)
                state.refusals += 1
                self._delay(key, now_ms, pause_ms)
            case _:
                self._delay(key, now_ms)

    def _on_records(
        self, key: PartitionKey, state: FetchState, fetched: FetchedPartition, now_ms: ElapsedMs
    ) -> None:
        log = state.log
        state.check_position()
        log_start_offset, high_watermark = log.log_start_offset, log.high_watermark
        size = 0
        try:
            if fetched.records:
                size = log.append_fetched(fetched.records, leader_epoch=state.leader_epoch)
            log.take_watermarks(
                high_watermark=fetched.high_watermark, log_start_offset=fetched.log_start_offset
            )
        except ApiError as failure:
            self._on_append_failed(key, state, failure, now_ms)
            return
        state.check_copied(high_watermark)
        lag = max(0, fetched.high_watermark - log.log_end_offset)
        if size or state.lag is None:
            state.take_position()
            state.lag = lag
            self._changed[key] = None
        elif log.log_start_offset != log_start_offset:
            self._changed[key] = None

    def _on_append_failed(
        self, key: PartitionKey, state: FetchState, failure: ApiError, now_ms: ElapsedMs
    ) -> None:
        if failure.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD):
            # Damaged on the way, or temporarily at the leader: the batches before it are here.
            state.take_position()
            self._delay(key, now_ms)
        else:
            self._fail(key, failure.message)

    def _on_diverging(
        self, key: PartitionKey, state: FetchState, leader_epoch: int, end_offset: int
    ) -> None:
        offset = self._agreed_offset(state.log, leader_epoch, end_offset)
        if self._truncate(key, state, offset):
            state.take_position()
            self._changed[key] = None

    @staticmethod
    def _agreed_offset(log: FollowerLog, leader_epoch: int, end_offset: int) -> int:
        """Up to where this log can agree with one in which `leader_epoch` ends at `end_offset`."""
        if end_offset == UNDEFINED_OFFSET:
            return log.high_watermark
        own_epoch, own_end = log.end_offset_for_epoch(leader_epoch)
        if own_epoch == NO_EPOCH:
            # All epochs known here are later: use the leader's offset.
            return min(end_offset, log.log_end_offset)
        if own_epoch != leader_epoch:
            # Not known here either: go back to the one before it, and fetch again.
            return min(own_end, log.log_end_offset)
        return min(own_end, end_offset, log.log_end_offset)

    def _truncate(self, key: PartitionKey, state: FetchState, offset: int) -> bool:
        try:
            # Also if there are no records to remove: the log may have an epoch that began at its
            # end, in which this node led and wrote nothing.
            state.log.truncate_fetched(offset)
        except ApiError as failure:
            self._fail(key, failure.message)
            return False
        return True

    def _delay(self, key: PartitionKey, now_ms: ElapsedMs, pause_ms: int | None = None) -> None:
        state = self._states[key]
        if state.delayed_until_ms is None:
            backoff_ms = self._backoff_ms()
            state.delayed_until_ms = now_ms + min(pause_ms or backoff_ms, backoff_ms)
            self._delayed[key] = None
        self._changed[key] = None

    def _fail(self, key: PartitionKey, reason: str) -> None:
        state = self._states[key]
        state.enter(Phase.FAILED)
        self.failed[key] = state.leader_epoch
        self._drop(key)
        self._on_failed(key, reason)

    def _fence(self, key: PartitionKey) -> None:
        state = self._states[key]
        state.enter(Phase.FENCED)
        self.failed[key] = state.leader_epoch
        self._drop(key)
        self._on_fenced(key, state.leader_epoch)

    # Resets.

    def resets(self, now_ms: ElapsedMs) -> list[Reset]:
        """Partitions whose offset the leader does not have, and whose pause is over."""
        if not self._resetting:
            return []
        self._wake(now_ms)
        return [
            Reset(key, state.topic, state.index, state.leader_epoch)
            for key in self._resetting
            if (state := self._states[key]).delayed_until_ms is None
        ]

    def on_reset(
        self,
        reset: Reset,
        *,
        error: ErrorCode,
        latest: int,
        earliest: int,
        now_ms: ElapsedMs,
    ) -> None:
        """The leader's log spans `earliest` to `latest`, unless there was an error."""
        state = self._states.get(reset.key)
        if (
            state is None
            or state.leader_epoch != reset.leader_epoch
            or state.phase is not Phase.RESETTING
        ):
            return
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fence(reset.key)
            return
        if error is not ErrorCode.NONE:
            self._delay(reset.key, now_ms)
            return
        log = state.log
        try:
            if latest < log.log_end_offset:
                # After an unclean election: drop what the leader does not have.
                log.truncate_fetched(latest)
            elif earliest > log.log_end_offset:
                # Offline for so long that the leader has deleted what comes next.
                log.restart_at(earliest)
        except ApiError as failure:
            self._fail(reset.key, failure.message)
            return
        state.enter(Phase.FETCHING)
        del self._resetting[reset.key]
        state.take_position()
        state.lag = latest - state.fetch_offset
        self._changed[reset.key] = None
