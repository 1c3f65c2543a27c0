"""What a language of schemas (Avro, JSON Schema, Protobuf) offers.

The registry stores and compares schemas through this interface only, and serializers find their
schema by it. Nothing here reads a file or asks a server: references come with their texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

#: What Confluent's registry says of two schemas in different languages.
DIFFERENT_SCHEMA_TYPE = "Incompatible because of different schema type"


class SchemaError(ValueError):
    """A text that is no schema of its language; the message says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A schema that another one names, with its text.

    A sequence of them holds what they refer to in turn, too, each before its users.
    """

    name: str
    text: str


class ParsedSchema(Protocol):
    """A schema that is known to be valid."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    @property
    def name(self) -> str | None:
        """The full name of the record or message; the title of a JSON Schema; None without one."""

    @property
    def canonical_text(self) -> str:
        """The form that the registry stores and returns, and in which equal schemas are equal."""

    def normalized(self) -> ParsedSchema:
        """The same schema in the one form that all equivalent ones have (`normalize=true`)."""

    def formatted(self, format_name: str) -> str:
        """The text in another form (`resolved`, `serialized`, `ignore_extensions`).

        The canonical text for "" and for a form that the language does not have.
        """

    def incompatibilities(
        self,
        writer: ParsedSchema,
        *,
        reader_name: str = "new",
        writer_name: str = "old",
        lenient: bool = False,
    ) -> list[str]:
        """Why a reader with this schema cannot read what was written with `writer`.

        The sentences are those of Confluent's registry, with the two names put in. Empty if it
        can. `lenient` allows the changes of compatibilityPolicy LENIENT, where the language has
        one.
        """


class SchemaLanguage(Protocol):
    """Reads schemas of one type."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    def parse(
        self,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        reserved_fields: Collection[str] = (),
    ) -> ParsedSchema:
        """The schema, or SchemaError.

        `reserved_fields` are the names in the metadata property `confluent:reserved`.
        """
