"""Under which subject a schema is registered: Confluent's strategies, and functions of users.

A strategy is a function of the topic, whether it is a key, and the full name of the record or
message (None if the schema has none).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moldau.client.errors import ConfigError, SerializationError

__all__ = ["SubjectNameStrategy", "resolve_strategy"]

SubjectNameStrategy = Callable[[str, bool, str | None], str]


def topic_name_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """`orders-value`, `orders-key`: one type of record per topic."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """The name of the record: the same wherever it is written to."""
    if record_name is None:
        raise SerializationError(
            "the subject is the name of the record, but the schema has none",
            advice="give the schema a name, or use TopicNameStrategy",
        )
    return record_name


def topic_record_name_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    """`orders-com.example.Order`: several types of records per topic."""
    return f"{topic}-{record_name_strategy(topic, is_key, record_name)}"


_STRATEGIES: Final[dict[str, SubjectNameStrategy]] = {
    "topicname": topic_name_strategy,
    "recordname": record_name_strategy,
    "topicrecordname": topic_record_name_strategy,
    # The names of `subject.name.strategy.type`.
    "topic": topic_name_strategy,
    "record": record_name_strategy,
    "topicrecord": topic_record_name_strategy,
}


def resolve_strategy(key: str, setting: Any) -> SubjectNameStrategy:
    """A function, or one of Confluent's by name: `TopicNameStrategy`, with or without package."""
    if setting is None:
        return topic_name_strategy
    if callable(setting):
        return setting  # type: ignore[no-any-return]
    name = str(setting).rpartition(".")[2].lower().replace("_", "")
    found = _STRATEGIES.get(name.removesuffix("strategy"))
    if found is None:
        raise ConfigError.invalid(
            key,
            setting,
            "must be TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy or a function "
            "of (topic, is_key, record_name)",
        )
    return found
