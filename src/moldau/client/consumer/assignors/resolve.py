"""The assignors that `partition.assignment.strategy` names.

An entry is a short name, the name of one of Kafka's Java classes, the dotted path of a Python
class, a class or an object. Whatever it is, the rest of the consumer sees an `Assignor`, which
asks the application's object and checks what it answers.
"""

from __future__ import annotations

import importlib
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
from moldau.config.suggestions import did_you_mean

__all__ = ["BUILT_IN", "Assignor", "common_protocol", "resolve_assignors"]

KEY = "partition.assignment.strategy"
_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
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


def resolve_assignors(entries: Iterable[Any], config: Mapping[str, Any]) -> list[Assignor]:
    """In the order of preference; raises ConfigError for what is no assignor."""
    found: list[Assignor] = []
    for entry in [entries] if isinstance(entries, str) else entries:
        given = _instance(entry)
        configure = getattr(given, "configure", None)
        if configure is not None:
            configure(config)
        assignor = Assignor(given)
        if any(each.name == assignor.name for each in found):
            raise ConfigError.invalid(KEY, assignor.name, "two assignors have this name")
        found.append(assignor)
    return found


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


def _instance(entry: Any) -> Any:
    if isinstance(entry, str):
        entry = _named(entry.strip())
    return entry() if isinstance(entry, type) else entry


def _named(name: str) -> Any:
    short = name.removeprefix(_JAVA_PACKAGE)
    for key, built_in in BUILT_IN.items():
        if name == key or (short == built_in.__name__ and "." not in short):
            return built_in
    module_name, dot, attribute = name.rpartition(".")
    if not dot or name.startswith(_JAVA_PACKAGE):
        guess = did_you_mean(short, [*BUILT_IN, *(each.__name__ for each in BUILT_IN.values())])
        raise ConfigError.invalid(KEY, name, f"no such assignor.{guess}")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError.invalid(KEY, name, f"cannot be imported: {error}") from error
