"""A cluster and a registry to try statements in: what they change stays here."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.sql.engine.ports import Topics, TopicShape
from moldau.sql.ports import SchemaRegistry

_ID_MAX = 2**31 - 1


class SandboxTopics:
    """Topics of a cluster, with those that were created or deleted in the sandbox."""

    def __init__(self, base: Topics) -> None:
        self._base = base
        self._changed: dict[str, TopicShape | None] = {}

    @property
    def default_partitions(self) -> int | None:
        return self._base.default_partitions

    def partitions(self, name: str) -> int | None:
        if name in self._changed:
            shape = self._changed[name]
            return None if shape is None else shape.partitions
        return self._base.partitions(name)

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        shape = self._changed.get(name)
        if shape is not None:
            shape.check(name, partitions, replicas, config)
        elif name not in self._changed and self._base.partitions(name) is not None:
            # It is there, so it is only compared.
            self._base.create(name, partitions, replicas, config)
        else:
            self._changed[name] = TopicShape(partitions, max(replicas, 1))

    def delete(self, name: str) -> None:
        self._changed[name] = None

    def counts(self) -> dict[str, int]:
        changed = {name: each.partitions for name, each in self._changed.items() if each}
        kept = {
            name: count for name, count in self._base.counts().items() if name not in self._changed
        }
        return kept | changed


class SandboxRegistry:
    """Schemas of a registry, with those that were registered or deleted in the sandbox."""

    def __init__(self, base: SchemaRegistry) -> None:
        self._base = base
        self._subjects: dict[str, int | None] = {}
        self._schemas: dict[int, tuple[str, str]] = {}

    def latest(self, subject: str) -> tuple[int, str, str]:
        if subject not in self._subjects:
            return self._base.latest(subject)
        schema_id = self._subjects[subject]
        if schema_id is None:
            raise LookupError(f"Subject '{subject}' not found.")
        return schema_id, *self._schemas[schema_id]

    def by_id(self, schema_id: int) -> tuple[str, str]:
        return self._schemas.get(schema_id) or self._base.by_id(schema_id)

    def register(self, subject: str, schema_type: str, text: str) -> int:
        # From the highest downwards: registries count up.
        schema_id = _ID_MAX - len(self._schemas)
        self._schemas[schema_id] = schema_type, text
        self._subjects[subject] = schema_id
        return schema_id

    def delete(self, subject: str) -> None:
        self._subjects[subject] = None
