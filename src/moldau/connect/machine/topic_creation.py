"""With which settings a source's topics are created (KIP-158)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_OWN = frozenset({"include", "exclude", "partitions", "replication.factor"})


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """None for the broker's default."""

    partitions: int | None
    replication_factor: int | None
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Group:
    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]
    settings: TopicSettings

    def matches(self, topic: str) -> bool:
        return any(each.fullmatch(topic) for each in self.include) and not any(
            each.fullmatch(topic) for each in self.exclude
        )


class TopicCreation:
    """The groups of a connector, in their order, and the default one."""

    def __init__(self, config: Mapping[str, str]) -> None:
        default = _settings(config, "default", None)
        names = [each.strip() for each in (config.get("topic.creation.groups") or "").split(",")]
        self._default = default
        self._groups = [
            _Group(
                _patterns(config, name, "include"),
                _patterns(config, name, "exclude"),
                _settings(config, name, default),
            )
            for name in names
            if name and name != "default"
        ]

    @staticmethod
    def is_wanted(config: Mapping[str, str]) -> bool:
        """Without a default group, topics are left to the broker."""
        return "topic.creation.default.partitions" in config

    def settings_of(self, topic: str) -> TopicSettings:
        found = next((each for each in self._groups if each.matches(topic)), None)
        return self._default if found is None else found.settings


def _patterns(config: Mapping[str, str], group: str, name: str) -> tuple[re.Pattern[str], ...]:
    text = config.get(f"topic.creation.{group}.{name}") or ""
    return tuple(re.compile(each.strip()) for each in text.split(",") if each.strip())


def _settings(config: Mapping[str, str], group: str, base: TopicSettings | None) -> TopicSettings:
    prefix = f"topic.creation.{group}."
    own = {key.removeprefix(prefix): each for key, each in config.items() if key.startswith(prefix)}

    def count(key: str, inherited: int | None) -> int | None:
        if key not in own:
            return inherited
        return None if int(own[key]) == -1 else int(own[key])

    return TopicSettings(
        count("partitions", base.partitions if base else None),
        count("replication.factor", base.replication_factor if base else None),
        {key: each for key, each in own.items() if key not in _OWN},
    )
