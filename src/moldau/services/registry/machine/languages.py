"""The languages of schemas, each loaded when the first schema of it is parsed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from moldau.data.schema_language import ParsedSchema, ResolvedReference, SchemaLanguage
from moldau.services.registry.machine.parsing import Languages

__all__ = ["LANGUAGES"]


class _StoredAvro:
    """Avro as it was accepted once: defaults need not fit."""

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


#: In the order in which Confluent's registry lists them.
_NEW = {"JSON": _json, "PROTOBUF": _protobuf, "AVRO": _avro}
LANGUAGES = Languages(new=_NEW, stored={**_NEW, "AVRO": _StoredAvro})
