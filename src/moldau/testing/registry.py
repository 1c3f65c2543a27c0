"""Which clusters are open in this process, for reports on failed tests.

Invariants: the logs of a cluster stay available for a while after it was closed, and their
size is bounded.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

__all__ = ["closed", "forget_closed", "opened", "reports"]


class LoggingNode(Protocol):
    """A node that has logged something."""

    id: int

    @property
    def address(self) -> str: ...

    def tail(self, size: int) -> str: ...


class Reported(Protocol):
    """A cluster, as far as it is reported on."""

    seed: int

    @property
    def nodes(self) -> Mapping[int, LoggingNode]: ...


_TAIL: Final = 6_000
_CLOSED_MAX: Final = 10

_open: weakref.WeakSet[Reported] = weakref.WeakSet()
_closed: deque[tuple[str, str]] = deque(maxlen=_CLOSED_MAX)


def opened(cluster: Reported) -> None:
    _open.add(cluster)


def closed(cluster: Reported) -> None:
    if cluster in _open:
        _open.discard(cluster)
        _closed.extend(_reports_of(cluster))


def forget_closed() -> None:
    """A new test begins."""
    _closed.clear()


def reports() -> list[tuple[str, str]]:
    """Titles and texts about all clusters that are open or were closed recently."""
    return [*_closed, *(report for cluster in _open for report in _reports_of(cluster))]


def _reports_of(cluster: Reported) -> list[tuple[str, str]]:
    return [
        (
            f"moldau node {node.id} at {node.address} (seed {cluster.seed})",
            node.tail(_TAIL) or "(no log output)",
        )
        for node in cluster.nodes.values()
    ]
