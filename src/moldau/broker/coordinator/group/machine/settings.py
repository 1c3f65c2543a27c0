"""Configs of single groups: what was set for the group, else what the broker gives all groups.

Bounds are checked when a config is set. They may be narrowed later by a restart with
other broker settings; then what was set for a group is held within the new bounds, so
that no group lives by a timeout which the operator has ruled out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moldau.broker.config import BrokerConfig
from moldau.broker.config.resource_keys import GROUP_KEYS, group_key_synonym


class GroupSettings(Protocol):
    def get(self, group_id: str, key: str) -> Any:
        """The parsed value of a group config such as `consumer.session.timeout.ms`."""
        ...


class LayeredGroupSettings:
    """Implements `GroupSettings` over the metadata image and the broker's configuration."""

    def __init__(
        self,
        overrides: Callable[[str], Mapping[str, str]],
        broker_config: Callable[[], BrokerConfig],
    ) -> None:
        """`overrides` gives what is set for a group id."""
        self._overrides = overrides
        self._broker_config = broker_config

    def get(self, group_id: str, key: str) -> Any:
        definition = GROUP_KEYS[key]
        text = self._overrides(group_id).get(key)
        if text is None:
            broker_key = group_key_synonym(key)
            if broker_key is None:
                return definition.default
            return self._broker_config()[broker_key]
        return self._within_bounds(key, definition.parse(text))

    def _within_bounds(self, key: str, value: Any) -> Any:
        kind, _, stem = key.partition(".")
        config = self._broker_config()
        bound = stem.removeprefix("num.")
        least = config.get(f"group.{kind}.min.{bound}")
        most = config.get(f"group.{kind}.max.{bound}")
        if least is not None and value < least:
            return least
        return most if most is not None and value > most else value
