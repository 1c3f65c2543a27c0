"""Finds replication policies and filters: those of MirrorMaker 2 by their Java names, and any
Python class as `package.module.Class` or `package.module:Class`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from moldau.config import ConfigError
from moldau.mirror.machine.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from moldau.mirror.machine.selection import (
    ConfigPropertyFilter,
    GroupFilter,
    Selection,
    TopicFilter,
)
from moldau.mirror.machine.settings import FlowSettings

__all__ = ["Plugins"]

_BUILT_IN: Mapping[str, type[Any]] = {
    "DefaultReplicationPolicy": DefaultReplicationPolicy,
    "IdentityReplicationPolicy": IdentityReplicationPolicy,
    "DefaultTopicFilter": TopicFilter,
    "DefaultGroupFilter": GroupFilter,
    "DefaultConfigPropertyFilter": ConfigPropertyFilter,
}


def _class(key: str, name: str) -> type[Any]:
    package, _, last = name.rpartition(".")
    if last in _BUILT_IN and package in ("", "org.apache.kafka.connect.mirror"):
        return _BUILT_IN[last]
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{key}={name} cannot be loaded: {error}. Name a class of MirrorMaker 2 or a Python "
            "class that can be imported",
            key=key,
        ) from None
    if not isinstance(found, type):
        raise ConfigError(f"{key}={name} is not a class", key=key)
    return found


class Plugins:
    """The policy and the filters of a flow."""

    def __init__(self, settings: FlowSettings) -> None:
        self._settings = settings
        self.policy: ReplicationPolicy = self._made("replication.policy.class")
        self.topics: TopicFilter = self._made("topic.filter.class")
        self.groups: GroupFilter = self._made("group.filter.class")
        self.properties: ConfigPropertyFilter = self._made("config.property.filter.class")
        self.selection = Selection(
            settings.name,
            self.policy,
            self.topics.should_replicate_topic,
            heartbeats=settings["heartbeats.replication.enabled"],
        )

    def _made(self, key: str) -> Any:
        made = _class(key, self._settings[key])()
        if hasattr(made, "configure"):
            is_policy = key == "replication.policy.class"
            given = self._settings.properties
            made.configure(given if is_policy else {**given, **self._settings.values})
        return made

    def keeps_name(self, topic: str) -> bool:
        """Whether a topic is called the same in both clusters."""
        return self.selection.remote(topic) == topic
