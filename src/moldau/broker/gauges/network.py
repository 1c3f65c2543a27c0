"""Listeners and their connections, and the node as a whole."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import moldau
from moldau.broker.metrics import tables as t
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.server import SocketNetwork
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.metrics import Spec
from moldau.metrics.process import LoopWatch
from moldau.metrics.registry import Reading

Samples: TypeAlias = Iterator[tuple[Spec, tuple[str, ...], Reading]]

#: Kafka numbers its network threads; here there is one.
PROCESSOR = "0"


class NetworkGauges:
    def __init__(self, network: SocketNetwork, watch: LoopWatch) -> None:
        self._network = network
        self._watch = watch

    def on_login(self, connection: ConnectionInfo, mechanism: str, problem: str | None) -> None:
        """A `LoginObserver`."""
        traffic = self._network.traffic.get(connection.listener_name)
        if traffic is None:
            return
        if problem is None:
            traffic.logins += 1
        else:
            traffic.failed_logins += 1

    def collect(self) -> Samples:
        waiting = sending = 0
        software: Counter[tuple[str, str, str]] = Counter()
        for each in tuple(self._network.connections):
            waiting += each.waiting
            sending += bool(each.unsent)
            info = each.info
            name, version = info.client_software_name, info.client_software_version
            software[name, version, info.listener_name] += 1
        for listener, traffic in self._network.traffic.items():
            place = listener, PROCESSOR
            yield t.CONNECTION_COUNT, place, traffic.accepted - traffic.closed
            yield t.CONNECTIONS_CREATED, place, traffic.accepted
            yield t.CONNECTIONS_CLOSED, place, traffic.closed
            yield t.BYTES_RECEIVED, place, traffic.received
            yield t.BYTES_SENT, place, traffic.sent
            yield t.SUCCESSFUL_LOGINS, place, traffic.logins
            yield t.FAILED_LOGINS, place, traffic.failed_logins
            yield t.EXPIRED_KILLED, place, traffic.expired
        for (name, version, listener), count in software.items():
            yield t.CLIENT_SOFTWARE, (name, version, listener, PROCESSOR), count
        expired = sum(each.expired for each in self._network.traffic.values())
        yield t.EXPIRED_CONNECTIONS, (), expired
        yield t.REQUEST_QUEUE, (), waiting
        yield t.RESPONSE_QUEUE, (), sending
        yield t.MEMORY_USED, (), self._network.pool.held
        yield t.MEMORY_AVAILABLE, (), self._network.pool.available
        idle = self._watch.idle_ratio
        yield t.NETWORK_IDLE, (), idle
        yield t.PROCESSOR_IDLE, (PROCESSOR,), idle


def quota_samples(quotas: ClientQuotas) -> Samples:
    """Clients that quotas limit; a name has the tags that the quota was set for."""
    for kind, tags, rate, throttle_ms in quotas.rates():
        for attribute, value in (
            (t.QUOTA_RATES[kind], rate),
            ("throttle-time", throttle_ms),
        ):
            spec = t.quota(kind, attribute, *tags)
            yield spec, tuple(tags.values()), value


def node_samples(cluster_id: str, started_ms: int) -> Samples:
    yield t.CLUSTER_ID, (), cluster_id
    yield t.APP_VERSION, (), moldau.__version__
    yield t.APP_START, (), started_ms
    if sys.platform.startswith("linux"):
        pairs = dict(
            line.split(": ") for line in Path("/proc/self/io").read_text().splitlines() if line
        )
        yield t.DISK_READ, (), int(pairs["read_bytes"])
        yield t.DISK_WRITE, (), int(pairs["write_bytes"])
