"""What the engine needs of a cluster and a registry, by the clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from moldau.client.admin import Admin, NewTopic
from moldau.client.errors import KafkaError, TopicExistsError
from moldau.serde.errors import RegistryError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import Schema
from moldau.sql.engine.ports import TopicShape
from moldau.sql.errors import KsqlException
from moldau.sql.ports import SchemaText

__all__ = ["ClusterTopics", "RemoteRegistry"]

_SUBJECT_NOT_FOUND = 40401


class ClusterTopics:
    """`moldau.sql.engine.ports.Topics` over an admin client."""

    default_partitions: int | None = None

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._keeps = False

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Delete nothing meanwhile: for statements that are executed again."""
        before, self._keeps = self._keeps, True
        try:
            yield
        finally:
            self._keeps = before

    def shape(self, name: str) -> tuple[int, int] | None:
        """Partitions and replicas of a topic; None if it does not exist."""
        found = self._admin.describe_topics([name], check=False)
        try:
            partitions = found[name].partitions
        except KafkaError:
            return None
        return len(partitions), len(partitions[0].replicas)

    def partitions(self, name: str) -> int | None:
        found = self._admin.describe_topics([name], check=False)
        try:
            return len(found[name].partitions)
        except KafkaError:
            return None

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        found = self.shape(name)
        if found is not None:
            # Statements that are executed again found the topic as they wanted it.
            if not self._keeps:
                TopicShape(*found).check(name, partitions, replicas, config)
            return
        topic = NewTopic(name, partitions, replicas if replicas > 0 else None, dict(config))
        try:
            self._admin.create_topics([topic])
        except TopicExistsError:
            # Another server was faster.
            return
        except KafkaError as error:
            raise KsqlException(f"Failed to create topic {name}: {error}") from error

    def delete(self, name: str) -> None:
        if self._keeps:
            return
        try:
            self._admin.delete_topics([name])
        except KafkaError as error:
            raise KsqlException(f"Could not delete topic {name}: {error}") from error

    def counts(self) -> dict[str, int]:
        names = list(self._admin.list_topics())
        if not names:
            return {}
        found = self._admin.describe_topics(names, check=False)
        counts: dict[str, int] = {}
        for name in names:
            try:
                counts[name] = len(found[name].partitions)
            except KafkaError:
                # Deleted in the meantime.
                continue
        return counts


class RemoteRegistry:
    """`moldau.sql.ports.SchemaRegistry` over the registry's client."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client

    def latest(self, subject: str) -> tuple[int, str, str]:
        try:
            found = self._client.latest(subject)
        except RegistryError as error:
            raise LookupError(str(error)) from error
        return found.id, found.schema.schema_type, self._text(found.schema)

    def by_id(self, schema_id: int) -> tuple[str, str]:
        try:
            found = self._client.schema_by_id(schema_id)
        except RegistryError as error:
            raise LookupError(str(error)) from error
        return found.schema.schema_type, self._text(found.schema)

    def _text(self, schema: Schema) -> str:
        """With the texts of what it refers to. Raises LookupError."""
        if not schema.references:
            return schema.text
        try:
            found = self._client.references_of(schema)
        except RegistryError as error:
            raise LookupError(str(error)) from error
        return SchemaText(schema.text, found, schema.references)

    def register(self, subject: str, schema_type: str, text: str) -> int:
        try:
            references = text.sources if isinstance(text, SchemaText) else ()
            return self._client.register(subject, Schema(text, schema_type, references))
        except RegistryError as error:
            raise KsqlException(
                f"Could not register schema for subject {subject}: {error}"
            ) from error

    def delete(self, subject: str) -> None:
        try:
            self._client.delete_subject(subject)
        except RegistryError as error:
            if error.error_code != _SUBJECT_NOT_FOUND:
                raise KsqlException(
                    f"Could not clean up the schema registry for subject {subject}: {error}"
                ) from error
