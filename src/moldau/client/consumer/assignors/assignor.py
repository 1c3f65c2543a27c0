"""An application's assignor as the consumer sees it: asked, and its answers checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.consumer.assignors.interface import (
    Assignment,
    GroupSubscription,
    PartitionAssignor,
    RebalanceProtocol,
)
from moldau.client.consumer.assignors.range import RangeAssignor
from moldau.client.consumer.assignors.roundrobin import RoundRobinAssignor
from moldau.client.consumer.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from moldau.client.errors import ConfigError, IllegalStateError
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import TopicPartition

__all__ = ["BUILT_IN", "KEY", "Assignor", "common_protocol"]

KEY = "partition.assignment.strategy"
BUILT_IN: dict[str, type[PartitionAssignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Assignor:
    """One of a consumer's assignors."""

    def __init__(self, given: Any) -> None:
        self._given = given
        name = getattr(given, "name", None)
        self.name: str = name() if callable(name) else (name or "")
        if not isinstance(self.name, str) or not self.name:
            raise ConfigError.invalid(KEY, given, "an assignor has a name")
        if not callable(getattr(given, "assign", None)):
            raise ConfigError.invalid(KEY, given, "an assignor has assign(metadata, subscriptions)")
        protocols = getattr(given, "supported_protocols", (RebalanceProtocol.EAGER,))
        self.protocols: frozenset[RebalanceProtocol] = frozenset(
            map(_protocol, protocols() if callable(protocols) else protocols)
        )
        #: Kafka's own never assign what nobody subscribed to.
        self.built_in = type(given) in BUILT_IN.values()

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        function = getattr(self._given, "subscription_user_data", None)
        data: bytes | None = None if function is None else function(topics)
        return data

    def on_assignment(self, assignment: Assignment, group_metadata: Any) -> None:
        function = getattr(self._given, "on_assignment", None)
        if function is not None:
            function(assignment, group_metadata)

    def assign(
        self, metadata: ClusterMetadata, subscriptions: GroupSubscription
    ) -> dict[str, Assignment]:
        """Raises IllegalStateError for members that nobody knows."""
        answered = self._given.assign(metadata, subscriptions)
        if not isinstance(answered, Mapping):
            raise IllegalStateError(
                f"assignor {self.name} answered {type(answered).__name__}, not a mapping"
            )
        unknown = sorted(set(answered) - set(subscriptions))
        if unknown:
            raise IllegalStateError(f"assignor {self.name} assigned to unknown members {unknown}")
        return {member_id: _assignment(each) for member_id, each in answered.items()}


def _assignment(given: Any) -> Assignment:
    if isinstance(given, Assignment):
        return given
    return Assignment(tuple(TopicPartition(*key) for key in given))


def _protocol(given: Any) -> RebalanceProtocol:
    if isinstance(given, str):
        try:
            return RebalanceProtocol[given.upper()]
        except KeyError:
            raise ConfigError.invalid(
                KEY, given, "supported protocols are eager and cooperative"
            ) from None
    return RebalanceProtocol(given)


def common_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """The best one that all have; raises ConfigError if there is none."""
    listed = list(assignors)
    if not listed:
        raise ConfigError.invalid(KEY, "", "at least one assignor is needed to subscribe")
    common = frozenset(RebalanceProtocol).intersection(*(each.protocols for each in listed))
    if not common:
        names = ", ".join(sorted(each.name for each in listed))
        raise ConfigError.invalid(
            KEY, names, "these assignors have no rebalance protocol in common"
        )
    return max(common)
