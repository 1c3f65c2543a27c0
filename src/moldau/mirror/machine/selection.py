"""Which topics, groups and topic settings a flow concerns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.config import ConfigError
from moldau.mirror.machine.policies import ReplicationPolicy
from moldau.mirror.machine.settings import FlowName

__all__ = ["ConfigPropertyFilter", "GroupFilter", "Selection", "TopicFilter"]


def _pattern(key: str, parts: Iterable[str]) -> re.Pattern[str] | None:
    texts = [each for each in parts if each]
    if not texts:
        return None
    try:
        return re.compile("|".join(f"(?:{each})" for each in texts))
    except re.error as error:
        raise ConfigError(
            f"{key}={','.join(texts)} is not a regular expression: {error}", key=key
        ) from None


class _Filter:
    """Names that match one list of patterns and not another."""

    KEYS = ("", "")
    _include: re.Pattern[str] | None
    _exclude: re.Pattern[str] | None

    def configure(self, values: Mapping[str, Any]) -> None:
        include, exclude = self.KEYS
        self._include = _pattern(include, values[include])
        self._exclude = _pattern(exclude, values[exclude])

    def _takes(self, name: str) -> bool:
        include, exclude = self._include, self._exclude
        if include is None or include.fullmatch(name) is None:
            return False
        return exclude is None or exclude.fullmatch(name) is None


class TopicFilter(_Filter):
    """`topics` without `topics.exclude`."""

    KEYS = ("topics", "topics.exclude")

    def should_replicate_topic(self, topic: str) -> bool:
        return self._takes(topic)


class GroupFilter(_Filter):
    """`groups` without `groups.exclude`."""

    KEYS = ("groups", "groups.exclude")

    def should_replicate_group(self, group: str) -> bool:
        return self._takes(group)


class ConfigPropertyFilter:
    """All topic settings without `config.properties.exclude`."""

    _exclude: re.Pattern[str] | None
    _source_defaults: bool

    def configure(self, values: Mapping[str, Any]) -> None:
        self._exclude = _pattern("config.properties.exclude", values["config.properties.exclude"])
        self._source_defaults = values["use.defaults.from"] == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        return self._exclude is None or self._exclude.fullmatch(name) is None

    def should_replicate_source_default(self, name: str) -> bool:
        return self._source_defaults


class Selection:
    """The topics of a flow."""

    def __init__(
        self,
        name: FlowName,
        policy: ReplicationPolicy,
        takes_topic: Callable[[str], bool],
        *,
        heartbeats: bool,
    ) -> None:
        self._name = name
        self._policy = policy
        self._takes_topic = takes_topic
        self._heartbeats = heartbeats

    def takes(self, topic: str) -> bool:
        """Whether a topic of the source is copied."""
        policy = self._policy
        wanted = self._takes_topic(topic) or (
            self._heartbeats and policy.is_heartbeats_topic(topic)
        )
        return wanted and not policy.is_internal_topic(topic) and not self._is_cycle(topic)

    def _is_cycle(self, topic: str) -> bool:
        """Whether the topic came from the target in the first place."""
        while True:
            source = self._policy.topic_source(topic)
            if source is None:
                return False
            if source == self._name.target:
                return True
            upstream = self._policy.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream

    def remote(self, topic: str) -> str:
        """What it is called in the target."""
        return self._policy.format_remote_topic(self._name.source, topic)
