"""Who of a group gets which partitions: the classic protocol's assignors.

Results are Kafka's for the same input, so that leaders of both kinds may take turns.
"""

from moldau.client.consumer.assignors.interface import (
    Assignment,
    PartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
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
