"""Decides how fast connections are accepted: by broker, by listener and by client address.

As in Kafka (KIP-612), `max.connection.creation.rate` makes new clients wait unaccepted, while a
client address beyond its quota `connection_creation_rate` is accepted, gets no answer for a while
and is disconnected: a client that is disconnected at once would only come back sooner. The listener
between brokers is not slowed down by the broker's total.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.broker.network.machine.rates import SampledRate, Window
from moldau.times import ElapsedMs

UNLIMITED: Final = 2**31 - 1
#: When as many addresses are known, those that have become idle are dropped.
ADDRESSES_MAX: Final = 1_000


class ConnectionRates:
    """Counts new connections by the second."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._broker_limit = UNLIMITED
        self._listener_limits: dict[str, int] = {}
        self._protected: str | None = None
        self._address_default: float | None = None
        self._address_limits: dict[str, float] = {}
        self._broker = SampledRate(window)
        self._listeners: dict[str, SampledRate] = {}
        self._addresses: dict[str, SampledRate] = {}
        self._addresses_max = ADDRESSES_MAX

    def update(
        self, *, broker: int, listeners: Mapping[str, int], protected: str | None = None
    ) -> None:
        """`protected` is the listener between brokers, if clients have another one."""
        self._broker_limit = broker
        self._listener_limits = dict(listeners)
        self._protected = protected

    def update_addresses(self, default: float | None, limits: Mapping[str, float]) -> None:
        self._address_default = default
        self._address_limits = dict(limits)
        if default is None and not limits:
            self._addresses.clear()

    def accept_pause_ms(self, listener: str, now_ms: ElapsedMs) -> int:
        """A client was accepted on `listener`: how long the next one has to wait."""
        pause_ms = 0
        if self._broker_limit < UNLIMITED and listener != self._protected:
            self._broker.record(1, now_ms)
            pause_ms = self._bounded(self._broker, self._broker_limit, now_ms)
        limit = self._listener_limits.get(listener, UNLIMITED)
        if limit < UNLIMITED:
            rate = self._listeners.setdefault(listener, SampledRate(self._window))
            rate.record(1, now_ms)
            pause_ms = max(pause_ms, self._bounded(rate, limit, now_ms))
        return pause_ms

    def address_throttle_ms(self, host: str, now_ms: ElapsedMs) -> int:
        """A client came from `host`: 0 if it may stay, else when it is to be disconnected."""
        limit = self._address_limits.get(host, self._address_default)
        if limit is None:
            return 0
        rate = self._addresses.get(host)
        if rate is None:
            if len(self._addresses) >= self._addresses_max:
                self._drop_idle(now_ms)
            rate = self._addresses[host] = SampledRate(self._window)
        rate.record(1, now_ms)
        throttle_ms = self._bounded(rate, limit, now_ms)
        if throttle_ms:
            # It is not let in, so it does not count.
            rate.record(-1, now_ms)
        return throttle_ms

    def _bounded(self, rate: SampledRate, limit: float, now_ms: ElapsedMs) -> int:
        return min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)

    def _drop_idle(self, now_ms: ElapsedMs) -> None:
        self._addresses = {
            host: rate for host, rate in self._addresses.items() if not rate.is_idle(now_ms)
        }
        self._addresses_max = max(ADDRESSES_MAX, 2 * len(self._addresses))
