"""How fast connections are accepted."""

from __future__ import annotations

from moldau.broker.network.machine import connection_rates
from moldau.broker.network.machine.connection_rates import UNLIMITED, ConnectionRates
from moldau.broker.network.machine.rates import Window
from moldau.times import ElapsedMs


def rates(broker: int = UNLIMITED, **listeners: int) -> ConnectionRates:
    made = ConnectionRates(Window())
    made.update(broker=broker, listeners=listeners, protected="INTERNAL")
    return made


def accept(made: ConnectionRates, listener: str, count: int, now_ms: int = 0) -> list[int]:
    return [made.accept_pause_ms(listener, ElapsedMs(now_ms)) for _ in range(count)]


def test_a_broker_beyond_its_rate_pauses() -> None:
    made = rates(broker=2)
    assert accept(made, "PUBLIC", 20) == [0] * 20
    assert accept(made, "PUBLIC", 1) == [500]
    # Never longer than a sample, so that a change of the limit is soon seen.
    assert accept(made, "PUBLIC", 9)[-1] == 1000


def test_brokers_are_not_slowed_down_by_clients() -> None:
    made = rates(broker=1, INTERNAL=100)
    accept(made, "PUBLIC", 50)
    assert accept(made, "INTERNAL", 1) == [0]


def test_a_listener_beyond_its_rate_pauses_alone() -> None:
    made = rates(PUBLIC=1)
    assert accept(made, "PUBLIC", 11)[-1] > 0
    assert accept(made, "OTHER", 11) == [0] * 11


def test_a_changed_limit_holds_at_once() -> None:
    made = rates(broker=1)
    assert accept(made, "PUBLIC", 30)[-1] == 1000
    made.update(broker=UNLIMITED, listeners={})
    assert accept(made, "PUBLIC", 1) == [0]


def test_an_address_beyond_its_quota_is_not_let_in_and_does_not_count() -> None:
    made = rates()
    made.update_addresses(None, {"10.0.0.1": 1.0})
    times = [made.address_throttle_ms("10.0.0.1", ElapsedMs(0)) for _ in range(100)]
    assert times == [0] * 10 + [1000] * 90
    assert made.address_throttle_ms("10.0.0.2", ElapsedMs(0)) == 0
    # What was refused does not delay what comes later.
    assert made.address_throttle_ms("10.0.0.1", ElapsedMs(11_000)) == 0


def test_the_default_is_for_each_address_alone() -> None:
    made = rates()
    made.update_addresses(1.0, {"10.0.0.1": 5.0})
    for host, allowed in (("10.0.0.1", 50), ("10.0.0.2", 10), ("10.0.0.3", 10)):
        times = [made.address_throttle_ms(host, ElapsedMs(0)) for _ in range(60)]
        assert times.count(0) == allowed


def test_addresses_that_are_gone_are_forgotten() -> None:
    made = rates()
    made.update_addresses(1.0, {})
    for number in range(10 * connection_rates.ADDRESSES_MAX):
        made.address_throttle_ms(f"address {number}", ElapsedMs(number * 100))
    assert len(made._addresses) <= 2 * connection_rates.ADDRESSES_MAX
