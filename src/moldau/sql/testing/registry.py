"""A schema registry in memory."""

from __future__ import annotations

from moldau.sql.ports import SchemaText


class MemoryRegistry:
    """Subjects and schemas; the same schema has the same id everywhere."""

    def __init__(self) -> None:
        self._subjects: dict[str, list[int]] = {}
        self._schemas: dict[int, tuple[str, str]] = {}

    def latest(self, subject: str) -> tuple[int, str, str]:
        versions = self._subjects.get(subject)
        if not versions:
            raise LookupError(f"Subject '{subject}' not found.")
        return versions[-1], *self._schemas[versions[-1]]

    def delete(self, subject: str) -> None:
        self._subjects.pop(subject, None)

    def by_id(self, schema_id: int) -> tuple[str, str]:
        if schema_id not in self._schemas:
            raise LookupError(f"Schema {schema_id} not found")
        return self._schemas[schema_id]

    def register(
        self, subject: str, schema_type: str, text: str, schema_id: int | None = None
    ) -> int:
        known = [each for each, found in self._schemas.items() if found == (schema_type, text)]
        if schema_id is None:
            schema_id = known[0] if known else max(self._schemas, default=0) + 1
        # A text that is known may come again without what it refers to.
        before = self._schemas.get(schema_id)
        if before is None or before[1] != text or isinstance(text, SchemaText):
            self._schemas[schema_id] = schema_type, text
        versions = self._subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id
