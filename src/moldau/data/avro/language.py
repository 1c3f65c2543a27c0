"""Avro as one of the registry's languages of schemas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from moldau.data.avro import compatibility
from moldau.data.avro.model import AvroType, Record, full_name
from moldau.data.avro.parser import Parser
from moldau.data.avro.printing import normalized_text, schema_text
from moldau.data.errors import DataError
from moldau.data.schema_language import (
    DIFFERENT_SCHEMA_TYPE,
    ParsedSchema,
    ResolvedReference,
    SchemaError,
)

AVRO = "AVRO"


class AvroSchema:
    """A valid Avro schema, with the types that it refers to."""

    def __init__(
        self,
        root: AvroType,
        *,
        references: Sequence[ResolvedReference] = (),
        referenced_names: Collection[str] = (),
        strict: bool = True,
    ) -> None:
        self.root = root
        self._references = tuple(references)
        self._referenced_names = frozenset(referenced_names)
        self._strict = strict

    @property
    def schema_type(self) -> str:
        return AVRO

    @property
    def name(self) -> str | None:
        return self.root.name.full if isinstance(self.root, Record) else None

    @cached_property
    def canonical_text(self) -> str:
        return schema_text(self.root, self._referenced_names)

    @cached_property
    def resolved_text(self) -> str:
        """The schema with the types of its references written out."""
        return schema_text(self.root)

    def normalized(self) -> AvroSchema:
        text = normalized_text(self.root, self._referenced_names)
        return AvroLanguage().parse(text, self._references, strict=self._strict)

    def formatted(self, format_name: str) -> str:
        return self.resolved_text if format_name.lower() == "resolved" else self.canonical_text

    def incompatibilities(
        self,
        writer: ParsedSchema,
        *,
        reader_name: str = "new",
        writer_name: str = "old",
        lenient: bool = False,
    ) -> list[str]:
        if not isinstance(writer, AvroSchema):
            return [DIFFERENT_SCHEMA_TYPE]
        try:
            found = compatibility.incompatibilities(self.root, writer.root)
        except DataError as error:
            return [f"Unexpected exception during compatibility check: {error}"]
        return [each.described(reader_name, writer_name) for each in found]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AvroSchema):
            return NotImplemented
        return self.canonical_text == other.canonical_text and self._references == other._references

    def __hash__(self) -> int:
        return hash(self.canonical_text)

    def __repr__(self) -> str:
        return f"AvroSchema({self.canonical_text})"


class AvroLanguage:
    """Reads Avro schemas."""

    @property
    def schema_type(self) -> str:
        return AVRO

    def parse(
        self,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        reserved_fields: Collection[str] = (),
        strict: bool = True,
    ) -> AvroSchema:
        """The schema, or SchemaError.

        Without `strict`, defaults need not fit and names may have letters of any alphabet: so a
        registry reads what it already holds. `reserved_fields` has no meaning for Avro.
        """
        parser = Parser(strict=strict)
        names = []
        for reference in references:
            try:
                names.append(full_name(parser.parse(reference.text)))
            except SchemaError as error:
                raise SchemaError(f"In the reference {reference.name}: {error}") from None
        root = parser.parse(text)
        schema = AvroSchema(root, references=references, referenced_names=names, strict=strict)
        try:
            schema.canonical_text.encode()
        except UnicodeEncodeError:
            raise SchemaError(
                "The schema has half of a surrogate pair, which no text has"
            ) from None
        return schema
