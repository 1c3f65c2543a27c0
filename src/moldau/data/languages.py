"""The languages of schemas by their names, each imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

from moldau.data.schema_language import ParsedSchema, ResolvedReference, SchemaLanguage

__all__ = ["NEW", "STORED"]


class _StoredAvro:
    """Avro as a registry has accepted it once: defaults need not fit."""

    schema_type = "AVRO"

    def parse(
        self,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        reserved_fields: Collection[str] = (),
    ) -> ParsedSchema:
        from moldau.data.avro.language import AvroLanguage

        return AvroLanguage().parse(text, references, strict=False)


@cache
def _avro() -> SchemaLanguage:
    from moldau.data.avro.language import AvroLanguage

    return AvroLanguage()


@cache
def _json() -> SchemaLanguage:
    from moldau.data.json_schema import JsonSchemaLanguage

    return JsonSchemaLanguage()


@cache
def _protobuf() -> SchemaLanguage:
    from moldau.data.protobuf import ProtobufLanguage

    return ProtobufLanguage()


#: For schemas that are new, in the order in which Confluent's registry lists them.
NEW: Mapping[str, Callable[[], SchemaLanguage]] = {
    "JSON": _json,
    "PROTOBUF": _protobuf,
    "AVRO": _avro,
}
#: For schemas that a registry already holds, read less strictly.
STORED: Mapping[str, Callable[[], SchemaLanguage]] = {**NEW, "AVRO": _StoredAvro}
