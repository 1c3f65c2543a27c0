"""What surrounds one node under test: time, disk, network and randomness that can be disturbed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.environment import Environment
from moldau.broker.log.background import Background
from moldau.broker.machine.supported import check_supported
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.network.server import SocketNetwork
from moldau.broker.node_security import NodeSecurity
from moldau.peers.node_channel import ChannelSettings, NodeTransport, response_bytes_max
from moldau.testing.machine.rules import RuleBook
from moldau.testing.process.clock import ShiftedClock
from moldau.testing.process.disk import ThrowAwayDisk
from moldau.testing.process.network import NODE_PREFIX, FaultyNetwork, Switchboard

__all__ = ["World"]

#: A node under test is measured where its metrics are asked for.
METRICS_PORT = "moldau.metrics.port"


class World:
    """What surrounds one node, and can be disturbed."""

    def __init__(self, spec: Mapping[str, Any], background: Background) -> None:
        self.config = BrokerConfig.from_properties(spec["properties"])
        check_supported(self.config)
        seed = f"{spec['seed']}/node{self.config.node_id}"
        self.clock = ShiftedClock(
            ahead_ms=spec["clock_ahead_ms"], wall_ahead_ms=spec["wall_ahead_ms"]
        )
        self.disk = ThrowAwayDisk()
        self.board = Switchboard(RuleBook(lambda number: random.Random(f"{seed}/fault{number}")))
        # A start draws other numbers than the last one: two incarnations are never the same.
        self.random = random.Random(f"{seed}/start{spec['start']}")
        self._background = background

    def environment(self, close: Callable[[], None]) -> Environment:
        config = self.config
        security = NodeSecurity(config, clock=self.clock, random_bytes=self.random.randbytes)
        transport = NodeTransport(
            client_id=f"{NODE_PREFIX}{config.node_id}",
            clock=self.clock,
            random=self.random,
            settings=ChannelSettings(
                socket_connection_setup_timeout_ms=config["socket.connection.setup.timeout.ms"],
                socket_connection_setup_timeout_max_ms=config[
                    "socket.connection.setup.timeout.max.ms"
                ],
                response_bytes_max=response_bytes_max(config.network.socket_request_max_bytes),
            ),
            security=security.of_peers,
        )
        network = SocketNetwork(config.listeners, config.network, security=security.listeners)

        def close_all() -> None:
            transport.close()
            close()

        return Environment(
            disk=self.disk,
            background=self._background,
            network=FaultyNetwork(network, self.board),
            transport=transport,
            clock=self.clock,
            random=self.random,
            random_bytes=self.random.randbytes,
            host_name=lambda: "127.0.0.1",
            close=close_all,
            reconfigure=security.update,
            authentication=security.authentication,
            check=security.check,
            metrics=NodeMetrics() if METRICS_PORT in config.originals else None,
        )

    def format(self, cluster_id: str) -> None:
        if not self.disk.exists(f"{self.config.metadata_log_dir}/meta.properties"):
            format_storage(
                self.config,
                cluster_id,
                random_uuid=lambda: UUID(bytes=self.random.randbytes(16), version=4),
                disk=self.disk,
                now_ms=self.clock.now_ms(),
            )
