"""The configuration of one log: topic overrides on top of the broker's defaults.

A LogConfig is immutable and shared: topics with the same overrides get the same object for the same
broker configuration, so thousands of partitions cost one lookup each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from moldau.broker.config.topic_keys import SYNONYM_UNITS_MS, TOPIC_KEYS, TOPIC_SYNONYMS
from moldau.config.section import Section

__all__ = ["LogConfig", "broker_defaults", "topic_values"]


class TopicDefaults(Protocol):
    """The part of the broker's configuration that topics without overrides use."""

    topic_defaults: dict[str, Any]
    log_config_cache: dict[tuple[tuple[str, str], ...], LogConfig]


class LogConfig(Section, keys=TOPIC_KEYS):
    """The topic keys that a log reads; limits of -1 mean "none" where Kafka says so."""

    cleanup_policy: Collection[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    confluent_key_schema_validation: bool
    confluent_key_subject_name_strategy: str
    confluent_value_schema_validation: bool
    confluent_value_subject_name_strategy: str
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    retention_bytes: int
    retention_ms: int
    # internal.segment.bytes, where given, has already replaced it: tests need tiny segments.
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def for_topic(cls, broker_config: TopicDefaults, overrides: Mapping[str, str]) -> LogConfig:
        """The configuration of a topic; raises ConfigError for a bad override."""
        cache = broker_config.log_config_cache
        key = tuple(sorted(overrides.items()))
        config = cache.get(key)
        if config is None:
            config = cls.from_values(topic_values(broker_config, overrides))
            # Bounded: a client that alters configs in a loop must not grow it without limit.
            if len(cache) >= 1024:
                cache.clear()
            cache[key] = config
        return config

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> LogConfig:
        """From parsed values of every topic key."""
        segment_bytes = values["internal.segment.bytes"]
        derived = {} if segment_bytes is None else {"segment_bytes": segment_bytes}
        return cls.of(values, **derived)


def broker_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every topic key as far as the broker's (parsed) keys decide it."""
    defaults: dict[str, Any] = {}
    for key in TOPIC_KEYS.values():
        defaults[key.name] = key.default
        for synonym in TOPIC_SYNONYMS.get(key.name, ()):
            value = values[synonym]
            if value is not None:
                unit_ms = SYNONYM_UNITS_MS.get(synonym)
                defaults[key.name] = value if unit_ms is None else value * unit_ms
                break
    # Any negative broker retention time means "forever".
    if defaults["retention.ms"] < 0:
        defaults["retention.ms"] = -1
    return defaults


def topic_values(broker_config: TopicDefaults, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Parsed values of every topic key under these overrides; each is checked on its own.

    Rules across keys are checked when a topic is altered, not here: a broker default that changed
    since must not make a stored topic unusable.
    """
    values = dict(broker_config.topic_defaults)
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is not None:
            values[name] = key.parse(text)
    return values
