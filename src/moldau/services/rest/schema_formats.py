"""SchemaFormats: what the proxy needs from whoever knows schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from moldau.services.rest.machine.formats import EncodedSchema

__all__ = ["SchemaFormats"]


class SchemaFormats(Protocol):
    """Keys and values with a schema of the registry. Errors are HttpErrors with Confluent's codes
    (42201 to 42207)."""

    async def resolve(
        self,
        topic: str,
        *,
        format: str | None,
        is_key: bool,
        data: Mapping[str, Any],
    ) -> EncodedSchema:
        """The schema that `data` names (schema, schema_id, schema_version, subject,
        subject_name_strategy), registered if it is a text."""
        ...

    async def encode(
        self, topic: str, schema: EncodedSchema, value: Any, *, is_key: bool
    ) -> bytes: ...

    async def decode(self, topic: str, format: str, data: bytes, *, is_key: bool) -> Any: ...
