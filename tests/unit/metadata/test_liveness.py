"""Which brokers are gone: what connections, heartbeats and probes show."""

from __future__ import annotations

import pytest

from moldau.broker.metadata.machine.liveness import (
    DISCOVERY_TRIES_MAX,
    TRIES_MAX,
    Activated,
    Address,
    BrokerLiveness,
    ConnectionClosed,
    Deactivated,
    DeclareDead,
    Effect,
    Event,
    HeartbeatCame,
    Probe,
    Probed,
    Registered,
    Unregistered,
)
from moldau.peers.channel import Reach

INSIDE: Address = ("inside", 9092)
OUTSIDE: Address = ("outside", 9092)
BROKER, EPOCH = 2, 70

ACCEPTED, REFUSED, UNKNOWN = Reach.ACCEPTED, Reach.REFUSED, Reach.UNKNOWN


class Subject:
    """An active controller that watches broker 2, which accepted a connection at `reachable`."""

    def __init__(
        self, *reachable: Address, addresses: tuple[Address, ...] = (INSIDE,), active: bool = True
    ) -> None:
        self.machine = BrokerLiveness()
        self.last: list[Effect] = []
        if active:
            self.step(Activated(()))
        self.step(Registered(BROKER, EPOCH, frozenset(addresses)))
        (probe,) = self.last
        reach = {each: ACCEPTED if each in reachable else REFUSED for each in addresses}
        self.probed(probe, reach)

    def step(self, event: Event) -> list[Effect]:
        self.last = self.machine.step(event)
        return self.last

    def probed(self, probe: Effect, reach: dict[Address, Reach]) -> list[Effect]:
        assert isinstance(probe, Probe)
        return self.step(Probed(probe.broker_id, probe.number, reach))

    def suspect(self) -> Effect:
        (probe,) = self.step(ConnectionClosed(BROKER, EPOCH))
        return probe

    def verdict(self, *results: Reach | dict[Address, Reach]) -> bool | None:
        """Whether the broker is declared dead after these probes; None: it is still suspected."""
        probe = self.suspect()
        for result in results:
            reach = result if isinstance(result, dict) else {INSIDE: result}
            effects = self.probed(probe, reach)
            if not effects:
                return False
            (probe,) = effects
            if isinstance(probe, DeclareDead):
                assert probe == DeclareDead(BROKER, EPOCH)
                return True
        return None


@pytest.mark.parametrize(
    ("results", "dead"),
    [
        pytest.param([REFUSED], None, id="once is not enough"),
        pytest.param([REFUSED, REFUSED], True, id="nothing listens there any more"),
        pytest.param([ACCEPTED, REFUSED, REFUSED], True, id="it was about to end"),
        pytest.param([REFUSED, ACCEPTED, REFUSED], None, id="refusals in a row count"),
        pytest.param([REFUSED, ACCEPTED, REFUSED, REFUSED], True, id="in a row again"),
        pytest.param([UNKNOWN], False, id="a lost network is no dead process"),
        pytest.param([REFUSED, UNKNOWN], False, id="a host that went down too"),
        pytest.param([ACCEPTED] * TRIES_MAX, False, id="only the connection was reset"),
    ],
)
def test_what_probes_of_a_suspect_show(results: list[Reach], dead: bool | None) -> None:
    assert Subject(INSIDE).verdict(*results) is dead


@pytest.mark.parametrize(
    ("reachable", "result", "dead"),
    [
        pytest.param({INSIDE, OUTSIDE}, (REFUSED, ACCEPTED), None, id="one listener is left"),
        pytest.param({INSIDE, OUTSIDE}, (REFUSED, UNKNOWN), False, id="one does not answer"),
        pytest.param({INSIDE, OUTSIDE}, (REFUSED, REFUSED), True, id="both refuse"),
    ],
)
def test_all_endpoints_that_were_reachable_have_to_refuse(
    reachable: set[Address], result: tuple[Reach, Reach], dead: bool | None
) -> None:
    subject = Subject(*reachable, addresses=(INSIDE, OUTSIDE))
    reach = dict(zip((INSIDE, OUTSIDE), result, strict=True))
    assert subject.verdict(reach, reach) is dead


def test_an_endpoint_that_never_accepted_is_not_asked() -> None:
    subject = Subject(INSIDE, addresses=(INSIDE, OUTSIDE))
    probe = subject.suspect()
    assert isinstance(probe, Probe)
    assert probe.addresses == (INSIDE,)


def test_refusals_of_a_broker_that_was_never_reachable_say_nothing() -> None:
    subject = Subject()
    for _ in range(DISCOVERY_TRIES_MAX - 1):
        (probe,) = subject.last
        assert isinstance(probe, Probe)
        assert probe.after_ms > 0
        subject.probed(probe, {INSIDE: REFUSED})
    assert subject.last == []
    assert subject.step(ConnectionClosed(BROKER, EPOCH)) == []


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(HeartbeatCame(BROKER), id="a heartbeat"),
        pytest.param(Registered(BROKER, EPOCH + 1, frozenset({INSIDE})), id="a new incarnation"),
        pytest.param(Unregistered(BROKER), id="it is unregistered"),
        pytest.param(Deactivated(), id="another controller is active"),
    ],
)
def test_what_ends_a_suspicion(event: Event) -> None:
    subject = Subject(INSIDE)
    probe = subject.suspect()
    (again,) = subject.probed(probe, {INSIDE: REFUSED})
    assert subject.step(event) == []
    assert subject.probed(again, {INSIDE: REFUSED}) == []


@pytest.mark.parametrize(
    ("active", "event"),
    [
        pytest.param(True, ConnectionClosed(BROKER, EPOCH - 1), id="of a former incarnation"),
        pytest.param(True, ConnectionClosed(3, EPOCH), id="of an unknown broker"),
        pytest.param(False, ConnectionClosed(BROKER, EPOCH), id="a standby has no say"),
    ],
)
def test_a_closed_connection_that_raises_no_suspicion(active: bool, event: Event) -> None:
    assert Subject(INSIDE, active=active).step(event) == []


def test_a_new_active_controller_looks_for_the_brokers_it_has_not_heard_from() -> None:
    standby = Subject(INSIDE, active=False)
    (probe,) = standby.step(Activated((BROKER, 3)))
    (again,) = standby.probed(probe, {INSIDE: REFUSED})
    assert standby.probed(again, {INSIDE: REFUSED}) == [DeclareDead(BROKER, EPOCH)]


def test_what_was_reachable_stays_so_for_the_next_incarnation_at_the_same_address() -> None:
    subject = Subject(INSIDE)
    assert subject.step(Registered(BROKER, EPOCH + 9, frozenset({INSIDE}))) == []
    (probe,) = subject.step(ConnectionClosed(BROKER, EPOCH + 9))
    (again,) = subject.probed(probe, {INSIDE: REFUSED})
    assert subject.probed(again, {INSIDE: REFUSED}) == [DeclareDead(BROKER, EPOCH + 9)]


def test_a_broker_that_moved_has_to_be_reached_first() -> None:
    subject = Subject(INSIDE)
    (probe,) = subject.step(Registered(BROKER, EPOCH + 9, frozenset({OUTSIDE})))
    assert isinstance(probe, Probe)
    assert probe.addresses == (OUTSIDE,)
    assert subject.step(ConnectionClosed(BROKER, EPOCH + 9)) == []
