"""Decides how many connections are accepted, overall, per listener and per client address.

As in Kafka, `max.connections` makes new clients wait unaccepted until one disconnects, while
`max.connections.per.ip` (with its overrides) rejects a client immediately. Clients of other
listeners cannot lock out brokers: the listener between brokers does not wait for the total.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.invariant import invariant


class ConnectionLimits:
    """Counts connections per address."""

    def __init__(
        self,
        *,
        max_connections: int,
        max_connections_per_ip: int,
        max_connections_per_ip_overrides: Mapping[str, int],
    ) -> None:
        self._counts: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        self._listener_limits: dict[str, int] = {}
        self._protected: str | None = None
        self._total = 0
        self._max = max_connections
        self._per_ip_max = max_connections_per_ip
        self._overrides = dict(max_connections_per_ip_overrides)

    def update(
        self,
        *,
        max_connections: int,
        max_connections_per_ip: int,
        max_connections_per_ip_overrides: Mapping[str, int],
    ) -> None:
        """Change the limits of a running broker; existing connections are not affected."""
        self._max = max_connections
        self._per_ip_max = max_connections_per_ip
        self._overrides = dict(max_connections_per_ip_overrides)

    def update_listeners(self, limits: Mapping[str, int], protected: str | None = None) -> None:
        """`protected` is the listener between brokers, if clients have another one."""
        self._listener_limits = dict(limits)
        self._protected = protected

    @property
    def total(self) -> int:
        return self._total

    @property
    def full(self) -> bool:
        """Whether the next client has to wait."""
        return self._total >= self._max

    def is_full(self, listener: str) -> bool:
        """Whether the next client of this listener has to wait."""
        limit = self._listener_limits.get(listener)
        if limit is not None and self._by_listener.get(listener, 0) >= limit:
            return True
        return self.full and listener != self._protected

    def limit_for(self, host: str) -> int:
        return self._overrides.get(host, self._per_ip_max)

    def admit(self, host: str, listener: str = "") -> bool:
        """Count a new connection from `host` unless that address has too many already."""
        count = self._counts.get(host, 0)
        if count >= self.limit_for(host):
            return False
        self._counts[host] = count + 1
        self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
        self._total += 1
        return True

    def release(self, host: str, listener: str = "") -> None:
        """Forget one admitted connection."""
        count = self._counts.get(host, 0)
        invariant(count > 0, f"a connection from {host} left that was never admitted")
        if count == 1:
            del self._counts[host]
        else:
            self._counts[host] = count - 1
        self._by_listener[listener] -= 1
        self._total -= 1
