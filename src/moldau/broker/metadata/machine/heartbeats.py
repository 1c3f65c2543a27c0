"""What the active controller knows of brokers only from their heartbeats: sessions, how far each
broker has read the metadata, and how far its shutdown has come.

None of it is in the metadata log. A new active controller starts with a full session for every
unfenced broker, since it does not know when each sent its last heartbeat. Time is monotonic.

    register, remove   follow the registrations in the log
    touch              a heartbeat arrived
    disconnected       the connection of the last one closed
    end_session        the incarnation has stopped, or its process is gone
    expires_at_ms      when the oldest session expires
    lowest_active_offset   metadata that every live broker has read

Invariants: states follow `TRANSITIONS`; a fenced broker has no shutdown offset; sessions are in the
order of their last heartbeat.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from moldau.broker.machine.transitions import Transitions
from moldau.invariant import invariant
from moldau.times import ElapsedMs

OFFSET_MAX = 2**63 - 1
# A live broker that lost its connection, or whose controller changed, sends a heartbeat sooner.
SILENCE_OF_THE_GONE_MS = 500


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


TRANSITIONS = Transitions(
    {
        BrokerState.FENCED: {BrokerState.FENCED, BrokerState.UNFENCED, BrokerState.SHUTDOWN_NOW},
        BrokerState.UNFENCED: set(BrokerState),
        BrokerState.CONTROLLED_SHUTDOWN: {
            BrokerState.CONTROLLED_SHUTDOWN,
            BrokerState.SHUTDOWN_NOW,
        },
        # Its incarnation is fenced and stops.
        BrokerState.SHUTDOWN_NOW: {},
    },
    lambda state: state.value,
)


class Contact(NamedTuple):
    """When an incarnation sent its last heartbeat, and whether that connection is still open."""

    broker_epoch: int
    seen_ms: ElapsedMs
    connected: bool


@dataclass(slots=True)
class _Broker:
    fenced: bool
    metadata_offset: int = -1
    shutdown_offset: int | None = None

    @property
    def active(self) -> bool:
        return not self.fenced and self.shutdown_offset is None


class BrokerHeartbeats:
    def __init__(self, *, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._brokers: dict[int, _Broker] = {}
        # The oldest session comes first.
        self._contacts: OrderedDict[int, Contact] = OrderedDict()
        self._active: list[tuple[int, int]] = []

    def register(self, broker_id: int, *, fenced: bool) -> None:
        broker = self._brokers.get(broker_id)
        if broker is None:
            broker = self._brokers[broker_id] = _Broker(fenced)
            self._track(broker_id, broker)
        else:
            self._update(broker_id, fenced=fenced, metadata_offset=broker.metadata_offset)

    def seen_ms(self, broker_id: int) -> ElapsedMs | None:
        """When its last heartbeat arrived, None if it has no session."""
        contact = self._contacts.get(broker_id)
        return None if contact is None else contact.seen_ms

    def remove(self, broker_id: int) -> None:
        """Remove the incarnation and its session."""
        self._contacts.pop(broker_id, None)
        broker = self._brokers.pop(broker_id, None)
        if broker is not None:
            self._untrack(broker_id, broker)

    def contact(
        self, broker_id: int, broker_epoch: int, *, now_ms: ElapsedMs, connected: bool = False
    ) -> None:
        self._contacts[broker_id] = Contact(broker_epoch, now_ms, connected)
        self._contacts.move_to_end(broker_id)

    def disconnected(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the incarnation still has a session, so that it may have crashed."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.broker_epoch != broker_epoch:
            return False
        self._contacts[broker_id] = contact._replace(connected=False)
        return True

    def end_session(self, broker_id: int, broker_epoch: int) -> None:
        """End the session, so that another incarnation may register at once."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.broker_epoch == broker_epoch:
            del self._contacts[broker_id]

    def touch(
        self,
        broker_id: int,
        broker_epoch: int,
        *,
        now_ms: ElapsedMs,
        fenced: bool,
        metadata_offset: int,
    ) -> None:
        self.contact(broker_id, broker_epoch, now_ms=now_ms, connected=True)
        self._update(broker_id, fenced=fenced, metadata_offset=metadata_offset)

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """The broker may stop when every live one has read the metadata up to `offset`."""
        broker = self._brokers[broker_id]
        invariant(not broker.fenced, "a fenced broker just stops")
        if broker.shutdown_offset is None:
            self._untrack(broker_id, broker)
            broker.shutdown_offset = offset

    def state(self, broker_id: int) -> BrokerState:
        broker = self._brokers[broker_id]
        if broker.shutdown_offset is not None:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED

    def next_state(
        self,
        broker_id: int,
        *,
        want_fence: bool,
        want_shut_down: bool,
        caught_up: bool,
        has_leaderships: bool,
    ) -> BrokerState:
        """The broker's state after this heartbeat."""
        before = self.state(broker_id)
        after = self._next_state(
            broker_id, before, want_fence, want_shut_down, caught_up, has_leaderships
        )
        TRANSITIONS.check(f"broker {broker_id}", before, after)
        return after

    def _next_state(
        self,
        broker_id: int,
        state: BrokerState,
        want_fence: bool,
        want_shut_down: bool,
        caught_up: bool,
        has_leaderships: bool,
    ) -> BrokerState:
        match state:
            case BrokerState.FENCED:
                if want_shut_down:
                    return BrokerState.SHUTDOWN_NOW
                return BrokerState.UNFENCED if caught_up and not want_fence else state
            case BrokerState.UNFENCED:
                if want_fence:
                    return BrokerState.SHUTDOWN_NOW if want_shut_down else BrokerState.FENCED
                if not want_shut_down:
                    return state
                if has_leaderships:
                    return BrokerState.CONTROLLED_SHUTDOWN
                return BrokerState.SHUTDOWN_NOW
            case _:
                offset = self._brokers[broker_id].shutdown_offset
                done = offset is not None and offset <= self.lowest_active_offset()
                return BrokerState.SHUTDOWN_NOW if done and not has_leaderships else state

    def has_session(self, broker_id: int, broker_epoch: int, *, now_ms: ElapsedMs) -> bool:
        contact = self._contacts.get(broker_id)
        return (
            contact is not None
            and contact.broker_epoch == broker_epoch
            and not self._is_over(contact, now_ms)
        )

    def is_silent(self, broker_id: int, *, now_ms: ElapsedMs) -> bool:
        """Whether it has no connection here and has not sent a heartbeat for a while."""
        contact = self._contacts.get(broker_id)
        return contact is None or (
            not contact.connected and now_ms - contact.seen_ms >= SILENCE_OF_THE_GONE_MS
        )

    def expires_at_ms(self) -> ElapsedMs | None:
        """When the next session expires."""
        contact = next(iter(self._contacts.values()), None)
        if contact is None:
            return None
        return ElapsedMs(contact.seen_ms + self._session_timeout_ms + 1)

    def pop_expired(self, now_ms: ElapsedMs) -> tuple[int, int] | None:
        """Remove and return (id, epoch) of a broker whose session has expired."""
        first = next(iter(self._contacts.items()), None)
        if first is None or not self._is_over(first[1], now_ms):
            return None
        broker_id, contact = self._contacts.popitem(last=False)
        return broker_id, contact.broker_epoch

    def renew_all(self, *, now_ms: ElapsedMs) -> None:
        """Restart every session: no heartbeat could be processed here."""
        for broker_id, contact in self._contacts.items():
            self._contacts[broker_id] = contact._replace(seen_ms=now_ms)

    def lowest_active_offset(self) -> int:
        return self._active[0][0] if self._active else OFFSET_MAX

    def _is_over(self, contact: Contact, now_ms: ElapsedMs) -> bool:
        return contact.seen_ms + self._session_timeout_ms < now_ms

    def _update(self, broker_id: int, *, fenced: bool, metadata_offset: int) -> None:
        broker = self._brokers[broker_id]
        self._untrack(broker_id, broker)
        broker.fenced = fenced
        broker.metadata_offset = metadata_offset
        if fenced:
            # A fenced broker that wants to stop may do so at once.
            broker.shutdown_offset = None
        self._track(broker_id, broker)

    def _track(self, broker_id: int, broker: _Broker) -> None:
        if broker.active:
            insort(self._active, (broker.metadata_offset, broker_id))

    def _untrack(self, broker_id: int, broker: _Broker) -> None:
        if broker.active:
            del self._active[bisect_left(self._active, (broker.metadata_offset, broker_id))]
