"""The timers and the action of streams groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from moldau.broker.coordinator.machine.decision import Action, Timer

# Timers. Their value is their identity: scheduling an equal one moves the deadline.


@dataclass(frozen=True, slots=True)
class StreamsSessionTimer(Timer):
    """The member's session has expired."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsRebalanceTimer(Timer):
    """The member was asked to give tasks up and should have done so by now."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsInitialRebalanceTimer(Timer):
    """The first members of an empty group have gathered; assign tasks."""

    group_id: str


StreamsTimer = StreamsSessionTimer | StreamsRebalanceTimer | StreamsInitialRebalanceTimer


# Actions, done after commit.


class InternalTopic(NamedTuple):
    """A repartition or changelog topic that the topology needs and the cluster lacks."""

    name: str
    partitions: int
    replication_factor: int
    """-1: the broker's default."""
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CreateInternalTopics(Action):
    """Create the topics; what fails is reported with `StreamsGroups.on_internal_topics`."""

    group_id: str
    topics: tuple[InternalTopic, ...]
