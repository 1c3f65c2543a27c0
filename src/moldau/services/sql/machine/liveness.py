"""Which servers of a service id are alive, by their heartbeats.

A server is dead when as many heartbeats as the threshold allows are missing at the end of the
window. One that has not been known for a window yet counts as alive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Liveness"]


@dataclass(slots=True)
class Liveness:
    own: str
    window_ms: int
    interval_ms: int
    missed_max: int
    enabled: bool
    _heard_ms: dict[str, int] = field(default_factory=dict)
    _known_ms: dict[str, int] = field(default_factory=dict)
    _lags: dict[str, dict[str, Any]] = field(default_factory=dict)

    def heard(self, host: str, now_ms: int) -> None:
        self._heard_ms[host] = now_ms

    def reported(self, host: str, lags: dict[str, Any]) -> None:
        """What a server says about the lags of its stores."""
        self._lags[host] = lags

    def lags(self, host: str) -> dict[str, Any]:
        return self._lags.get(host, {"stateStoreLags": {}, "updateTimeMs": 0})

    def known(self, hosts: set[str], now_ms: int) -> None:
        """The servers that there are now; what is known of others is forgotten."""
        for host in hosts:
            self._known_ms.setdefault(host, now_ms)
        for table in (self._heard_ms, self._known_ms, self._lags):
            for host in [each for each in table if each not in hosts and each != self.own]:
                del table[host]

    def is_alive(self, host: str, now_ms: int) -> bool:
        if host == self.own or not self.enabled:
            return True
        last_ms = max(self._heard_ms.get(host, 0), self._known_ms.get(host, now_ms))
        if host not in self._heard_ms:
            return now_ms - last_ms < self.window_ms
        return now_ms - last_ms <= self.interval_ms * self.missed_max + self.window_ms // 10

    def last_ms(self, host: str) -> int:
        return self._heard_ms.get(host, 0)
