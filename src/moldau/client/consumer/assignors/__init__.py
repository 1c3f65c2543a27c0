"""Who of a group gets which partitions: the classic protocol's assignors.

Results are Kafka's for the same input, so that leaders of both kinds may take turns. An assignor is
imported when it is first used: an application with one of its own does not pay for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.client.consumer.assignors.interface import (
    Assignment,
    PartitionAssignor,
    RebalanceProtocol,
    Subscription,
)

if TYPE_CHECKING:
    from moldau.client.consumer.assignors.range import RangeAssignor
    from moldau.client.consumer.assignors.roundrobin import RoundRobinAssignor
    from moldau.client.consumer.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = [
    "Assignment",
    "CooperativeStickyAssignor",
    "PartitionAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
]

_MODULE_OF = {
    "CooperativeStickyAssignor": "sticky",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value
