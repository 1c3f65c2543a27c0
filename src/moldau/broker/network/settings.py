"""The network's part of the broker's configuration; fields are named after Kafka's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class NetworkSettings(Protocol):
    """A buffer size of -1 leaves it to the system, an idle time of 0 or less means no limit."""

    @property
    def socket_request_max_bytes(self) -> int: ...
    @property
    def socket_send_buffer_bytes(self) -> int: ...
    @property
    def socket_receive_buffer_bytes(self) -> int: ...
    @property
    def socket_listen_backlog_size(self) -> int: ...
    @property
    def connections_max_idle_ms(self) -> int: ...
    @property
    def max_connections(self) -> int: ...
    @property
    def max_connections_per_ip(self) -> int: ...
    @property
    def max_connections_per_ip_overrides(self) -> Mapping[str, int]: ...
