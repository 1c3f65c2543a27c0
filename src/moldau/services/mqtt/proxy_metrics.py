"""What the proxy measures, for `/metrics`: clients, packets, messages, what it keeps.

A message costs an addition or two; names and texts are made when the metrics are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.http.metrics import Metrics
from moldau.metrics import Kind, Spec
from moldau.metrics.registry import Registry

__all__ = ["ProxyMetrics"]

_PREFIX: Final = "moldau_mqtt"
#: Attribute, which is also the metric's name, and its meaning.
_COUNTERS: Final = (
    ("connections_opened_total", "connections that were accepted"),
    ("connections_refused_total", "connections that were closed because of connections.max"),
    ("clients_connected_total", "clients whose CONNECT was accepted"),
    ("clients_refused_total", "clients that were disconnected with a reason"),
    ("bytes_received_total", "bytes from clients"),
    ("bytes_sent_total", "bytes to clients"),
    ("packets_received_total", "packets from clients"),
    ("messages_received_total", "messages that clients published"),
    ("messages_sent_total", "messages that were sent to clients"),
)


class ProxyMetrics:
    __slots__ = (*(name for name, _ in _COUNTERS), "_metrics")

    def __init__(self) -> None:
        self._metrics = Metrics(_PREFIX)
        for name, help in _COUNTERS:
            setattr(self, name, 0)
            spec = Spec(_PREFIX, "", name, Kind.COUNTER, help)
            self._metrics.registry.gauge(spec, self._reader(name))

    connections_opened_total: int
    connections_refused_total: int
    clients_connected_total: int
    clients_refused_total: int
    bytes_received_total: int
    bytes_sent_total: int
    packets_received_total: int
    messages_received_total: int
    messages_sent_total: int

    def _reader(self, name: str) -> Callable[[], int]:
        return lambda: int(getattr(self, name))

    @property
    def registry(self) -> Registry:
        return self._metrics.registry

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        self._metrics.gauge(name, help, read)
