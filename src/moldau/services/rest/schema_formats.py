"""SchemaFormats: what the proxy needs from whoever knows schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.services.rest.machine.formats import EncodedSchema

__all__ = ["ResolvedSchema", "SchemaFormats"]


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A schema, and how what stands in JSON becomes bytes of it; HttpError if it does not fit."""

    schema: EncodedSchema
    encode: Callable[[Any], bytes]


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
    ) -> ResolvedSchema:
        """The schema that `data` names (schema, schema_id, schema_version, subject,
        subject_name_strategy), registered if it is a text; without any, the subject's latest."""
        ...

    async def decode(self, topic: str, format: str, data: bytes, *, is_key: bool) -> Any:
        """What stands in JSON. HttpError with 40801 for bytes of another format."""
        ...

    def close(self) -> None: ...
