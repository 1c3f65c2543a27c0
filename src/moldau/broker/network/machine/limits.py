"""Decides how many connections are accepted, overall and per client address.

As in Kafka, `max.connections` makes new clients wait unaccepted until one disconnects, while
`max.connections.per.ip` (with its overrides) rejects a client immediately.
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

    @property
    def total(self) -> int:
        return self._total

    @property
    def full(self) -> bool:
        """Whether the next client has to wait."""
        return self._total >= self._max

    def limit_for(self, host: str) -> int:
        return self._overrides.get(host, self._per_ip_max)

    def admit(self, host: str) -> bool:
        """Count a new connection from `host` unless that address has too many already."""
        count = self._counts.get(host, 0)
        if count >= self.limit_for(host):
            return False
        self._counts[host] = count + 1
        self._total += 1
        return True

    def release(self, host: str) -> None:
        """Forget one admitted connection."""
        count = self._counts.get(host, 0)
        invariant(count > 0, f"a connection from {host} left that was never admitted")
        if count == 1:
            del self._counts[host]
        else:
            self._counts[host] = count - 1
        self._total -= 1
