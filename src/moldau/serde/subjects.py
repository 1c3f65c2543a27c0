"""Under which subject a schema is registered: Confluent's strategies, and functions of users.

A strategy is a function of the topic, whether it is a key, and the full name of the record or
message (None if the schema has none). `AssociatedNameStrategy` asks the registry which subject is
associated with the topic, and has to be bound to one first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from moldau.client.errors import ConfigError, SerializationError

__all__ = [
    "AssociatedNameStrategy",
    "AssociationsOfTopics",
    "ReferenceNameStrategy",
    "SubjectNameStrategy",
    "resolve_reference_strategy",
    "resolve_strategy",
]

SubjectNameStrategy = Callable[[str, bool, str | None], str]
#: The subject of what a schema refers to, by the name in its text.
ReferenceNameStrategy = Callable[[str], str]


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


class AssociationsOfTopics(Protocol):
    """What the strategy needs of a registry's client."""

    def associated_subjects(self, topic: str, namespace: str, *, is_key: bool) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class AssociatedNameStrategy:
    """The subject that the registry associates with the topic, or else that of another strategy.

    `cluster_id` is the namespace of topics; without it, those of all clusters count.
    """

    cluster_id: str | None
    fallback: SubjectNameStrategy | None
    registry: AssociationsOfTopics | None = None

    def __call__(self, topic: str, is_key: bool, record_name: str | None) -> str:
        found: list[str] = []
        if self.registry is not None:
            namespace = self.cluster_id or _EVERY_CLUSTER
            found = self.registry.associated_subjects(topic, namespace, is_key=is_key)
        if len(found) > 1:
            raise SerializationError(
                f"topic {topic} is associated with several subjects: {', '.join(found)}",
                advice="set subject.name.strategy.kafka.cluster.id to the cluster that is meant",
            )
        if found:
            return found[0]
        if self.fallback is None:
            raise SerializationError(
                f"topic {topic} is associated with no subject",
                advice="associate it in the registry, or set subject.name.strategy.fallback.type",
            )
        return self.fallback(topic, is_key, record_name)


_EVERY_CLUSTER: Final = "-"
_STRATEGIES: Final[dict[str, SubjectNameStrategy]] = {
    "topicname": topic_name_strategy,
    "recordname": record_name_strategy,
    "topicrecordname": topic_record_name_strategy,
    # The names of `subject.name.strategy.type`.
    "topic": topic_name_strategy,
    "record": record_name_strategy,
    "topicrecord": topic_record_name_strategy,
}


def resolve_strategy(
    key: str, setting: Any, *, cluster_id: str | None = None, fallback: str = "TOPIC"
) -> SubjectNameStrategy:
    """A function, or one of Confluent's by name: `TopicNameStrategy`, with or without package."""
    if setting is None:
        return topic_name_strategy
    if callable(setting):
        return setting  # type: ignore[no-any-return]
    name = str(setting).rpartition(".")[2].lower().replace("_", "")
    if name.removesuffix("strategy") in ("associated", "associatedname"):
        other = fallback.lower().replace("_", "")
        return AssociatedNameStrategy(cluster_id, _STRATEGIES.get(other))
    found = _STRATEGIES.get(name.removesuffix("strategy"))
    if found is None:
        raise ConfigError.invalid(
            key,
            setting,
            "must be TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy, "
            "AssociatedNameStrategy or a function of (topic, is_key, record_name)",
        )
    return found


def resolve_reference_strategy(key: str, setting: Any) -> ReferenceNameStrategy:
    """A function, or one of Confluent's by name: the name as it is, or `com.acme.Event` for
    `com/acme/Event.proto`."""
    if setting is not None and callable(setting):
        return setting  # type: ignore[no-any-return]
    name = "" if setting is None else str(setting).rpartition(".")[2].lower()
    match name.removesuffix("strategy").removesuffix("referencesubjectname"):
        case "" | "default":
            return str
        case "qualified":
            return lambda file: file.removesuffix(".proto").replace("/", ".")
    raise ConfigError.invalid(
        key,
        setting,
        "must be DefaultReferenceSubjectNameStrategy, QualifiedReferenceSubjectNameStrategy or a "
        "function of the name",
    )
