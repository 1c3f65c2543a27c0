"""How connections to other nodes are secured: encrypted, then logged in.

A listener's name decides, since each listener of a cluster has its own protocol. Connections are
made one after the other, so each asks again for the context: certificates change while it runs.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from moldau.peers.node_connection import NodeConnection

__all__ = ["PLAINTEXT", "ConnectionSecurity", "SecurityByListener"]


class ConnectionSecurity(NamedTuple):
    """Neither of the two: plain text."""

    tls: Callable[[], ssl.SSLContext] | None = None
    #: Logs in to a peer whose API versions are known; gets the connection and the peer's host
    #: name, returns the session's lifetime in ms (0 if it has none), and raises
    #: AuthenticationFailed. No other request is sent before it returns.
    authenticate: Callable[[NodeConnection, str], Awaitable[int]] | None = None


PLAINTEXT = ConnectionSecurity()

SecurityByListener: TypeAlias = Callable[[str], ConnectionSecurity]
