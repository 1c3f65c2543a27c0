"""How topics and nodes are named between requests and partitions."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

TopicKey: TypeAlias = str | bytes
"""A topic as a request names it: by name, or by its 16-byte id in newer versions."""


class NodeEndpoint(NamedTuple):
    """A node's address, for clients that sent a request to another node (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None


CurrentLeader: TypeAlias = tuple[int, int, NodeEndpoint | None]
"""Leader id, leader epoch, and where it listens if that is known."""
