"""JSON Schema as the Schema Registry has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from moldau.data.json_schema.diff.difference import (
    COMPATIBLE_LENIENT,
    COMPATIBLE_STRICT,
)
from moldau.data.json_schema.diff.schema_diff import compare_schemas
from moldau.data.json_schema.documents import Documents
from moldau.data.json_schema.drafts import Draft, draft_of
from moldau.data.json_schema.loading.classic import load_classic
from moldau.data.json_schema.loading.keywords import kind_of
from moldau.data.json_schema.loading.modern import load_modern
from moldau.data.json_schema.model import SchemaNode
from moldau.data.json_schema.text import read_json, with_sorted_keys
from moldau.data.json_text import compact
from moldau.data.schema_language import ParsedSchema, ResolvedReference, SchemaError

SCHEMA_TYPE = "JSON"


@dataclass(frozen=True, eq=False)
class JsonSchema:
    """A document that is known to be a schema; its model is what two schemas are compared by."""

    document: Any
    model: SchemaNode
    references: tuple[ResolvedReference, ...] = ()
    reserved_fields: frozenset[str] = field(default_factory=frozenset)

    @property
    def schema_type(self) -> str:
        return SCHEMA_TYPE

    @property
    def draft(self) -> Draft:
        return draft_of(self.document)

    @property
    def name(self) -> str | None:
        return self.model.title

    @cached_property
    def canonical_text(self) -> str:
        """Compact, with keys in the order of the text."""
        return compact(self.document)

    def normalized(self) -> JsonSchema:
        """The same schema with the keys of all objects sorted."""
        return JsonSchema(
            with_sorted_keys(self.document), self.model, self.references, self.reserved_fields
        )

    def formatted(self, format_name: str) -> str:
        """The canonical text: Confluent's registry has no other form of a JSON Schema."""
        return self.canonical_text

    @property
    def top_level_fields(self) -> tuple[str, ...]:
        """The names that metadata may not reserve, and that the registry may check."""
        properties = self.document.get("properties") if isinstance(self.document, dict) else None
        return tuple(properties) if isinstance(properties, dict) else ()

    def incompatibilities(
        self,
        writer: ParsedSchema,
        *,
        reader_name: str = "new",
        writer_name: str = "old",
        lenient: bool = False,
    ) -> list[str]:
        if not isinstance(writer, JsonSchema):
            return ["Incompatible because of different schema type"]
        compatible = COMPATIBLE_LENIENT if lenient else COMPATIBLE_STRICT
        return [
            difference.describe(reader_name, writer_name)
            for difference in compare_schemas(writer.model, self.model, compatible)
            if difference.type not in compatible
        ]


class JsonSchemaLanguage:
    """Reads JSON Schemas of drafts 4 to 2020-12."""

    @property
    def schema_type(self) -> str:
        return SCHEMA_TYPE

    def parse(
        self,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        reserved_fields: Collection[str] = (),
    ) -> JsonSchema:
        """The schema, or SchemaError.

        Only what Confluent's registry checks is checked: that keywords have values of their types,
        and that references lead somewhere. It stores schemas that their meta-schema refuses, such
        as a negative minLength, and what it stores must be readable.
        """
        document = read_json(text)
        if not isinstance(document, dict | bool):
            raise SchemaError(
                f"A JSON Schema is an object or a boolean; the text is {kind_of(document)}"
            )
        draft = draft_of(document)
        documents = Documents(document, references, draft)
        model = load_modern(documents) if draft.is_modern else load_classic(documents)
        return JsonSchema(document, model, tuple(references), frozenset(reserved_fields))
