"""BrokerLiveness: distinguishes a broker whose process is gone from one that cannot be reached.

A controller connects to each broker that registers, to learn which of its advertised endpoints it
can reach at all. The active controller suspects a broker when the connection closes over which its
heartbeats came, and, when it has just become active, every broker that should be alive. It then
tries the endpoints that it could reach before:

    SUSPECTED --all refuse, REFUSALS_NEEDED times in a row--> gone: DeclareDead
    SUSPECTED --one accepts--> tried again, TRIES_MAX times at most: a process may be about to end
    SUSPECTED --none accepts and not all answer--> not suspected: the session decides
    SUSPECTED --a heartbeat or a new registration--> not suspected

Invariants: a broker is declared dead only by the active controller, only after its connection has
closed or before its first heartbeat there, and only if an endpoint that once accepted connections
refuses them. So a reset connection, a slow or dropping network, a stopped machine and a firewall
never end a session early. One probe of a broker is under way at a time, and a result that belongs
to an earlier suspicion is ignored. A wrong verdict costs availability, not records: the broker is
fenced, and its next heartbeat unfences it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from moldau.peers.machine.outcomes import Reach

REFUSALS_NEEDED: Final = 2
TRIES_MAX: Final = 6
#: Between two tries of a suspected broker; it grows by as much with each.
RETRY_MS: Final = 40
#: A broker that has just registered may not listen yet.
DISCOVERY_TRIES_MAX: Final = 4
DISCOVERY_RETRY_MS: Final = 1_000

Address: TypeAlias = tuple[str, int]


# Events.


@dataclass(frozen=True, slots=True)
class Registered:
    """The committed registration of a broker, new or amended."""

    broker_id: int
    broker_epoch: int
    addresses: frozenset[Address]


@dataclass(frozen=True, slots=True)
class Unregistered:
    broker_id: int


@dataclass(frozen=True, slots=True)
class HeartbeatCame:
    broker_id: int


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The one over which the last heartbeat of this incarnation came."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class Activated:
    """This controller is the active one; `expected` are the other brokers that are not fenced."""

    expected: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deactivated:
    pass


@dataclass(frozen=True, slots=True)
class Probed:
    """What `Probe` showed."""

    broker_id: int
    number: int
    reach: Mapping[Address, Reach]


Event: TypeAlias = (
    Registered | Unregistered | HeartbeatCame | ConnectionClosed | Activated | Deactivated | Probed
)


# Effects.


@dataclass(frozen=True, slots=True)
class Probe:
    """Connect to the addresses after a while; answered by `Probed` under the same number."""

    broker_id: int
    number: int
    addresses: tuple[Address, ...]
    after_ms: int = 0


@dataclass(frozen=True, slots=True)
class DeclareDead:
    """End the session of this incarnation."""

    broker_id: int
    broker_epoch: int


Effect: TypeAlias = Probe | DeclareDead


@dataclass(slots=True)
class _Broker:
    epoch: int
    addresses: frozenset[Address]
    reachable: frozenset[Address] = frozenset()
    suspected: bool = False
    #: The probe whose result is awaited, 0 if none.
    probe: int = 0
    tries: int = 0
    refusals: int = 0


class BrokerLiveness:
    """Events in, effects out; the node's own broker is not among the brokers."""

    def __init__(self) -> None:
        self._brokers: dict[int, _Broker] = {}
        self._active = False
        self._last_probe = 0

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Registered():
                return self._on_registered(event)
            case Unregistered(broker_id):
                self._brokers.pop(broker_id, None)
                return []
            case HeartbeatCame(broker_id):
                broker = self._brokers.get(broker_id)
                if broker is not None and broker.suspected:
                    _trust(broker)
                return []
            case ConnectionClosed(broker_id, broker_epoch):
                broker = self._brokers.get(broker_id)
                stale = broker is None or broker.epoch != broker_epoch
                return [] if stale or not self._active else self._suspect(broker_id)
            case Activated(expected):
                self._active = True
                return [effect for broker_id in expected for effect in self._suspect(broker_id)]
            case Deactivated():
                self._active = False
                for broker in self._brokers.values():
                    if broker.suspected:
                        _trust(broker)
                return []
            case Probed():
                return self._on_probed(event)
            case _:
                assert_never(event)

    def _on_registered(self, event: Registered) -> list[Effect]:
        known = self._brokers.get(event.broker_id)
        if known is not None and known.addresses == event.addresses:
            if known.epoch != event.broker_epoch:
                known.epoch = event.broker_epoch
                if known.suspected:
                    _trust(known)
            if known.reachable or known.probe:
                return []
        broker = _Broker(event.broker_epoch, event.addresses)
        self._brokers[event.broker_id] = broker
        return self._probe(event.broker_id, broker, event.addresses)

    def _suspect(self, broker_id: int) -> list[Effect]:
        broker = self._brokers.get(broker_id)
        if broker is None or broker.suspected or not broker.reachable:
            return []
        broker.suspected = True
        broker.tries = broker.refusals = 0
        return self._probe(broker_id, broker, broker.reachable)

    def _probe(
        self, broker_id: int, broker: _Broker, addresses: frozenset[Address], after_ms: int = 0
    ) -> list[Effect]:
        self._last_probe += 1
        broker.probe = self._last_probe
        return [Probe(broker_id, broker.probe, tuple(sorted(addresses)), after_ms)]

    def _on_probed(self, event: Probed) -> list[Effect]:
        broker = self._brokers.get(event.broker_id)
        if broker is None or broker.probe != event.number:
            return []
        broker.probe = 0
        broker.tries += 1
        if broker.suspected:
            return self._on_suspect_probed(event, broker)
        accepting = {each for each, reach in event.reach.items() if reach is Reach.ACCEPTED}
        broker.reachable |= accepting
        if broker.reachable or broker.tries >= DISCOVERY_TRIES_MAX:
            return []
        return self._probe(event.broker_id, broker, broker.addresses, DISCOVERY_RETRY_MS)

    def _on_suspect_probed(self, event: Probed, broker: _Broker) -> list[Effect]:
        reach = set(event.reach.values())
        if reach == {Reach.REFUSED}:
            broker.refusals += 1
            if broker.refusals >= REFUSALS_NEEDED:
                _trust(broker)
                return [DeclareDead(event.broker_id, broker.epoch)]
        elif Reach.ACCEPTED in reach:
            broker.refusals = 0
        else:
            _trust(broker)
            return []
        if broker.tries >= TRIES_MAX:
            _trust(broker)
            return []
        return self._probe(event.broker_id, broker, broker.reachable, RETRY_MS * broker.tries)


def _trust(broker: _Broker) -> None:
    broker.suspected = False
    broker.probe = 0
