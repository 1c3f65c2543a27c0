"""How topics are named in the cluster they are copied to, and which topics belong to mirrors.

A class of your own has the methods of `ReplicationPolicy`; only the first three must be written.
`configure` gets all settings of the flow, among them `source.cluster.alias`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

__all__ = ["DefaultReplicationPolicy", "IdentityReplicationPolicy", "ReplicationPolicy"]

SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"
SOURCE_ALIAS = "source.cluster.alias"


class ReplicationPolicy(ABC):
    """Names of topics, in the words of MirrorMaker 2."""

    def configure(self, settings: Mapping[str, str]) -> None:  # noqa: B027 - most need none
        """Take what the policy needs of the settings."""

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """What a topic of the source is called in the target."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The cluster that a copied topic comes from; None if it is not a copy."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """What a copied topic is called one cluster back; None if it is not a copy."""

    def original_topic(self, topic: str) -> str:
        """What a topic is called in the cluster it was first written in."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def heartbeats_topic(self) -> str:
        return "heartbeats"

    def offset_syncs_topic(self, alias: str) -> str:
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.heartbeats_topic() == self.original_topic(topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        is_named_so = topic.startswith("mm2") and topic.endswith(".internal")
        return is_named_so or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic)


class DefaultReplicationPolicy(ReplicationPolicy):
    """`orders` of the cluster `eu` is `eu.orders` elsewhere."""

    def __init__(self) -> None:
        self.separator = "."
        self._internal_separator = "."

    def configure(self, settings: Mapping[str, str]) -> None:
        given = settings.get(SEPARATOR)
        if given is None:
            return
        self.separator = given
        is_used = str(settings.get(INTERNAL_SEPARATOR, "true")).strip().lower() == "true"
        self._internal_separator = given if is_used else "."

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        source, found, rest = topic.partition(self.separator)
        # As Java's split, which drops empty parts at the end.
        return source if found and rest.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        between = self._internal_separator
        return f"mm2-offset-syncs{between}{alias}{between}internal"

    def checkpoints_topic(self, alias: str) -> str:
        return alias + self._checkpoints_suffix

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self._internal_separator}checkpoints{self._internal_separator}internal"

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._checkpoints_suffix)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        is_named_so = topic.startswith("mm2") and topic.endswith(
            f"{self._internal_separator}internal"
        )
        return is_named_so or self.is_checkpoints_topic(topic)


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names; only heartbeats get the prefix."""

    def __init__(self) -> None:
        super().__init__()
        self._source_alias: str | None = None

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._source_alias = settings.get(SOURCE_ALIAS)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if self._is_like_heartbeats(topic):
            return super().format_remote_topic(source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        return (
            super().topic_source(topic) if self._is_like_heartbeats(topic) else self._source_alias
        )

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if self._is_like_heartbeats(topic) else topic

    def _is_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())
