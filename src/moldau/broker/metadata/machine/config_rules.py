"""What the controller asks of the configuration system.

Validators raise ConfigError with one line that names the key, the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class EffectiveConfig(Protocol):
    """One line of what a topic's configuration comes to."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> str | None: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def source(self) -> int: ...

    @property
    def is_sensitive(self) -> bool: ...


class ConfigRules(Protocol):
    def validate_topic(self, values: Mapping[str, str]) -> None:
        """Check all of a topic's own settings together."""

    def validate_broker(self, values: Mapping[str, str], *, per_broker: bool) -> None:
        """Check all dynamic settings of one broker, or of all (`per_broker` False)."""

    def validate_group(self, values: Mapping[str, str]) -> None: ...

    def validate_client_metrics(self, values: Mapping[str, str]) -> None: ...

    def is_list(self, resource_type: int, key: str) -> bool:
        """Whether values can be appended to and subtracted from."""

    def default_value(self, resource_type: int, key: str) -> str | None:
        """What APPEND starts from where nothing is set."""

    def effective_topic(
        self, topic: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str]
    ) -> Sequence[EffectiveConfig]:
        """A topic's whole configuration, sorted by name."""
