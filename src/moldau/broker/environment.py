"""Everything a broker takes from outside itself: time, randomness, disk, threads and network.

The simulator provides its own; nothing in the broker bypasses this.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.broker.config import BrokerConfig
from moldau.broker.log.background import Background, ThreadBackground
from moldau.broker.log.disk import Disk, OsDisk
from moldau.broker.metadata.machine.placement import RandomSource
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.network.interface import Network
from moldau.broker.network.server import SocketNetwork
from moldau.broker.network.transport_layer import LoginObserver
from moldau.broker.node_security import NodeSecurity
from moldau.clock import Clock, LoopClock
from moldau.peers.channel import PeerTransport
from moldau.peers.node_channel import ChannelSettings, NodeTransport, response_bytes_max

if TYPE_CHECKING:
    from moldau.broker.security.authentication.authentication import Authentication


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The outside world of one broker."""

    disk: Disk
    background: Background
    network: Network
    transport: PeerTransport
    clock: Clock
    random: RandomSource
    random_bytes: Callable[[int], bytes]
    host_name: Callable[[], str]
    close: Callable[[], None]
    reconfigure: Callable[[BrokerConfig], None] = lambda config: None
    """Takes over what changed in the configuration of a running node."""
    authentication: Authentication | None = None
    """The logins of listeners with SASL."""
    observe_logins: Callable[[LoginObserver], None] = lambda observer: None
    """Has the observer called after each login and each failure, by SASL or by a certificate."""
    cpu_ns: Callable[[], int] = time.perf_counter_ns
    """Measures how long the event loop is busy with a request."""
    check: Callable[[BrokerConfig], None] = lambda config: None
    """Raises ConfigError if `reconfigure` could not take it over."""
    metrics: NodeMetrics | None = None
    """None: nothing is measured."""

    @classmethod
    def real(cls, config: BrokerConfig) -> Environment:
        clock, chance = LoopClock(), random.SystemRandom()
        security = NodeSecurity(config, clock=clock, random_bytes=os.urandom)
        background = ThreadBackground(asyncio.get_running_loop())
        transport = NodeTransport(
            client_id=f"node-{config.node_id}",
            clock=clock,
            random=chance,
            settings=ChannelSettings(
                socket_connection_setup_timeout_ms=config["socket.connection.setup.timeout.ms"],
                socket_connection_setup_timeout_max_ms=config[
                    "socket.connection.setup.timeout.max.ms"
                ],
                response_bytes_max=response_bytes_max(config.network.socket_request_max_bytes),
            ),
            security=security.of_peers,
        )

        def close() -> None:
            transport.close()
            background.close()

        return cls(
            disk=OsDisk(),
            background=background,
            network=SocketNetwork(config.listeners, config.network, security=security.listeners),
            transport=transport,
            clock=clock,
            random=chance,
            random_bytes=os.urandom,
            host_name=socket.getfqdn,
            close=close,
            reconfigure=security.update,
            authentication=security.authentication,
            observe_logins=security.observe_logins,
            check=security.check,
            metrics=NodeMetrics(),
        )
