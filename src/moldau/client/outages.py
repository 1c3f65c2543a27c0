"""When the cluster or one of its nodes cannot be reached: what is logged about it.

Invariant: an outage is logged once when it begins and once when it ends, however often clients try
in between. A node that fails is logged only after the rest of the cluster was reached: if it was
not, the cluster's own outage says it all. `Outages` decides, and is pure; `OutageLog` logs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.client.topics import Node
from moldau.clock import Clock
from moldau.times import ElapsedMs

__all__ = ["OutageLog", "Outages"]

_log = logging.getLogger(__name__)


class Outages:
    """See the module. Each method returns the lines to log."""

    def __init__(self) -> None:
        self._cluster_since_ms: int | None = None
        self._nodes_since_ms: dict[int, int] = {}
        # Not logged yet: by node, what is wrong with it.
        self._pending: dict[int, str] = {}

    def cluster_failed(self, now_ms: ElapsedMs, problem: str) -> list[str]:
        """No node could be asked."""
        self._pending.clear()
        if self._cluster_since_ms is not None:
            return []
        self._cluster_since_ms = now_ms
        return [f"{problem[:1].upper()}{problem[1:]}. Retrying"]

    def cluster_reached(self, now_ms: ElapsedMs, where: str, node_ids: frozenset[int]) -> list[str]:
        """Some node was asked and answered; `node_ids` are those of the cluster now."""
        lines = self.answered(now_ms, where)
        for node_id, problem in self._pending.items():
            if node_id in node_ids:
                self._nodes_since_ms.setdefault(node_id, now_ms)
                lines.append(f"{problem[:1].upper()}{problem[1:]}. Retrying")
        self._pending.clear()
        for node_id in self._nodes_since_ms.keys() - node_ids:
            # Its partitions have other leaders: nobody waits for it.
            del self._nodes_since_ms[node_id]
        return lines

    def answered(self, now_ms: ElapsedMs, where: str) -> list[str]:
        """A node answered, whatever it was asked: the cluster's outage is over."""
        since_ms, self._cluster_since_ms = self._cluster_since_ms, None
        if since_ms is None:
            return []
        return [f"Reached {where} again after {_seconds(now_ms, since_ms)}"]

    def node_failed(self, node_id: int, problem: str) -> None:
        """A connection to a node could not be made; logged with `cluster_reached`."""
        if node_id not in self._nodes_since_ms and self._cluster_since_ms is None:
            self._pending[node_id] = problem

    def node_reached(self, now_ms: ElapsedMs, node_id: int, where: str) -> list[str]:
        self._pending.pop(node_id, None)
        since_ms = self._nodes_since_ms.pop(node_id, None)
        if since_ms is None:
            return []
        return [f"Connected to {where} again after {_seconds(now_ms, since_ms)}"]


def _seconds(now_ms: ElapsedMs, since_ms: int) -> str:
    return f"{(now_ms - since_ms) / 1000:.1f} s"


class OutageLog:
    """Logs the outages of one client's cluster."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._outages = Outages()

    def cluster_failed(self, problem: str) -> None:
        self._write(self._outages.cluster_failed(self._clock.elapsed_ms(), problem))

    def answered(self, node: Node) -> None:
        where = f"{node.host}:{node.port}"
        self._write(self._outages.answered(self._clock.elapsed_ms(), where))

    def cluster_reached(self, nodes: Mapping[int, Node]) -> None:
        now_ms = self._clock.elapsed_ms()
        self._write(self._outages.cluster_reached(now_ms, addresses(nodes), frozenset(nodes)))

    def node_failed(self, node_id: int, problem: str) -> None:
        self._outages.node_failed(node_id, problem)

    def node_reached(self, node_id: int, nodes: Mapping[int, Node]) -> None:
        where = f"node {node_id}"
        if node_id in nodes:
            self.answered(nodes[node_id])
            where += f" at {nodes[node_id].host}:{nodes[node_id].port}"
        self._write(self._outages.node_reached(self._clock.elapsed_ms(), node_id, where))

    def _write(self, lines: Iterable[str]) -> None:
        # A warning also at the end: who has set up no logging saw the beginning.
        for line in lines:
            _log.warning("%s", line)


def addresses(nodes: Mapping[int, Node]) -> str:
    return ", ".join(f"{each.host}:{each.port}" for each in nodes.values())
