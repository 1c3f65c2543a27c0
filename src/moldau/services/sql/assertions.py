"""ASSERT TOPIC and ASSERT SCHEMA: wait until something is there, or is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from moldau.serde.errors import RegistryError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.services.sql.cluster import ClusterTopics
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.machine.entities import Entity
from moldau.services.sql.machine.errors import ASSERTION_FAILED, KsqlHttpError
from moldau.sql.errors import KsqlException
from moldau.sql.syntax.statements import AssertSchema, AssertTopic

__all__ = ["Assertions"]

_POLL_S: Final = 0.05
_SECONDS_MAX: Final = 600.0


class Assertions:
    """`check_*` return the entity, or raise KsqlHttpError with 417."""

    def __init__(
        self, config: SqlConfig, topics: ClusterTopics, registry: SchemaRegistryClient | None
    ) -> None:
        self._config = config
        self._topics = topics
        self._registry = registry

    def topic(self, statement: AssertTopic, text: str) -> Entity:
        name = statement.topic
        wanted = {key.upper(): _number(each) for key, each in statement.properties.items()}
        unknown = set(wanted) - {"PARTITIONS", "REPLICAS"}
        if unknown:
            raise KsqlException(
                f"Cannot assert unknown topic property: {sorted(unknown)[0]}. Use PARTITIONS or "
                "REPLICAS"
            )

        def problem() -> str | None:
            found = self._topics.shape(name)
            if not statement.exists:
                return None if found is None else f"Topic {name} exists"
            if found is None:
                return f"Topic {name} does not exist"
            actual = {"PARTITIONS": found[0], "REPLICAS": found[1]}
            wrong = [
                f"Mismatched configuration for topic {name}: For config "
                f"{key.lower()}, expected {each} got {actual[key]}"
                for key, each in wanted.items()
                if actual[key] != each
            ]
            return "\n".join(wrong) or None

        self._wait(problem, statement, "ksql.assert.topic.default.timeout.ms", text)
        return {
            "@type": "assert_topic",
            "statementText": text,
            "topicName": name,
            "exists": statement.exists,
            "warnings": [],
        }

    def schema(self, statement: AssertSchema, text: str) -> Entity:
        registry = self._registry
        if registry is None:
            raise KsqlException(
                "ASSERT SCHEMA needs a Schema Registry: set ksql.schema.registry.url"
            )
        what = " ".join(
            part
            for part in (
                "" if statement.subject is None else f"with subject name {statement.subject}",
                "" if statement.schema_id is None else f"id {statement.schema_id}",
            )
            if part
        )

        def problem() -> str | None:
            found = _has_schema(registry, statement)
            if found == statement.exists:
                return None
            return f"Schema {what} {'exists' if found else 'does not exist'}"

        self._wait(problem, statement, "ksql.assert.schema.default.timeout.ms", text)
        return {
            "@type": "assert_schema",
            "statementText": text,
            "subject": statement.subject,
            "id": statement.schema_id,
            "exists": statement.exists,
            "warnings": [],
        }

    def _wait(
        self,
        problem: Callable[[], str | None],
        statement: AssertTopic | AssertSchema,
        key: str,
        text: str,
    ) -> None:
        limit_ms = self._config[key] if statement.timeout is None else statement.timeout.ms
        deadline = time.monotonic() + min(limit_ms / 1000, _SECONDS_MAX)
        while (found := problem()) is not None:
            if time.monotonic() >= deadline:
                raise KsqlHttpError(417, found, error_code=ASSERTION_FAILED, statement=text)
            time.sleep(_POLL_S)


def _has_schema(registry: SchemaRegistryClient, statement: AssertSchema) -> bool:
    try:
        if statement.schema_id is None:
            registry.latest(statement.subject or "")
            return True
        subjects = registry.subjects_of_id(statement.schema_id)
        return statement.subject is None or statement.subject in subjects
    except RegistryError:
        return False


def _number(literal: Any) -> int:
    value = getattr(literal, "value", literal)
    return int(value)
