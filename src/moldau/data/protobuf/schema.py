"""The Protobuf language of the Schema Registry."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from google.protobuf.message import DecodeError

from moldau.data.protobuf import indexes, printer, well_known
from moldau.data.protobuf.compiled import CompiledFile
from moldau.data.protobuf.descriptor_values import json_name
from moldau.data.protobuf.diff import Side, differences
from moldau.data.protobuf.differences import Difference
from moldau.data.protobuf.from_descriptor import file_of
from moldau.data.protobuf.lexer import TEXT_SIZE_MAX
from moldau.data.protobuf.metadata import descriptor_class
from moldau.data.protobuf.model import Message, ProtoFile
from moldau.data.protobuf.parser import parse_text
from moldau.data.protobuf.types import TypeTable
from moldau.data.schema_language import ParsedSchema, ResolvedReference, SchemaError

SCHEMA_TYPE = "PROTOBUF"
#: All texts of a schema and its references together.
TOTAL_SIZE_MAX = 4 * TEXT_SIZE_MAX
#: Longer texts are not remembered: what is read of them takes about twenty times the memory.
CACHED_SIZE_MAX = 32 * 1024


class ProtobufLanguage:
    """Reads `.proto` texts, and descriptors in base64."""

    @property
    def schema_type(self) -> str:
        return SCHEMA_TYPE

    def parse(
        self,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        reserved_fields: Collection[str] = (),
    ) -> ProtobufSchema:
        """The schema, or SchemaError with line and column.

        A schema is valid if all types that it names are known. Whether protoc would accept it is
        found out by `ProtobufSchema.compiled`, as in Confluent's registry.
        """
        size = len(text) + sum(len(reference.text) for reference in references)
        if size > TOTAL_SIZE_MAX:
            raise SchemaError(
                f"The schema and its references have {size} characters. "
                f"At most {TOTAL_SIZE_MAX} are read."
            )
        files = {reference.name: _read(reference.text) for reference in references}
        return ProtobufSchema(_read(text), files, frozenset(reserved_fields))


class ProtobufSchema:
    """A file and the files it refers to."""

    def __init__(
        self,
        file: ProtoFile,
        references: Mapping[str, ProtoFile],
        reserved_fields: frozenset[str] = frozenset(),
        *,
        canonical_text: str | None = None,
        name: str | None = None,
    ) -> None:
        """`name` is the message that is meant where it is not the first."""
        self.file = file
        self._name = name
        self._canonical_text = canonical_text
        self.references = references
        self.reserved_fields = reserved_fields
        self._table = TypeTable.of(file, references.values(), well_known.types())
        # Finds the types that are not known.
        self._normalized_text = printer.normalized(file, self._table)

    @property
    def schema_type(self) -> str:
        return SCHEMA_TYPE

    @property
    def name(self) -> str | None:
        """The first message unless another is meant; the first enum of a file without messages."""
        if self._name is not None:
            return self._name
        file = self._main_file
        first: Message | Any = next(file.messages(), None) or next(file.enums(), None)
        if first is None:
            return None
        return f"{file.package}.{first.name}" if file.package else first.name

    @property
    def _main_file(self) -> ProtoFile:
        """The file with the messages: one that has nothing but a public import stands for that."""
        file = self.file
        if file.types or file.imports or file.services or file.extends:
            return file
        if len(file.public_imports) != 1:
            return file
        path = file.public_imports[0]
        imported = self.references.get(path)
        if imported is None and path in well_known.NAMES:
            imported = well_known.file(path)
        return imported if imported is not None and imported.types else file

    @property
    def canonical_text(self) -> str:
        if self._canonical_text is None:
            self._canonical_text = printer.canonical(self.file)
        return self._canonical_text

    def normalized(self) -> ProtobufSchema:
        """The schema whose canonical text is the normalized one, with all options sorted."""
        text = self._normalized_text
        return ProtobufSchema(
            parse_text(text),
            self.references,
            self.reserved_fields,
            canonical_text=text,
            name=self._name,
        )

    def about(self, full_name: str) -> ProtobufSchema:
        """The same file, with another of its messages meant."""
        return ProtobufSchema(
            self.file,
            self.references,
            self.reserved_fields,
            canonical_text=self._canonical_text,
            name=full_name,
        )

    def formatted(self, format_name: str) -> str:
        match format_name.lower():
            case "serialized":
                return base64.b64encode(self._serialized()).decode()
            case "ignore_extensions":
                return printer.without_extensions(self.file)
            case _:
                return self.canonical_text

    def _serialized(self) -> bytes:
        """The descriptor, with the names in JSON only where the text gives them.

        The entries of maps come last: the indexes of the other messages are those of the text.
        """
        proto = type(self.compiled.proto).FromString(self.compiled.proto.SerializeToString())
        left = list(proto.message_type)
        fields = list(proto.extension)
        while left:
            message = left.pop()
            nested = sorted(message.nested_type, key=lambda each: bool(each.options.map_entry))
            copies = [type(each).FromString(each.SerializeToString()) for each in nested]
            del message.nested_type[:]
            message.nested_type.extend(copies)
            left += message.nested_type
            fields += [*message.field, *message.extension]
        for field in fields:
            if field.json_name == json_name(field.name):
                field.ClearField("json_name")
        return bytes(proto.SerializeToString(deterministic=True))

    def differences(self, original: ProtobufSchema) -> list[Difference]:
        """What changed from the original to this schema, compatible or not."""
        return differences(
            Side(original.file, original._table),
            Side(self.file, self._table),
            same_references=original.references == self.references,
        )

    def incompatibilities(
        self,
        writer: ParsedSchema,
        *,
        reader_name: str = "new",
        writer_name: str = "old",
        lenient: bool = False,
    ) -> list[str]:
        if not isinstance(writer, ProtobufSchema):
            return ["Incompatible because of different schema type"]
        return [
            difference.sentence(reader=reader_name, writer=writer_name)
            for difference in self.differences(writer)
            if not difference.is_compatible
        ]

    def has_top_level_field(self, name: str) -> bool:
        """Whether a message of the file has a field of the name."""
        return any(
            each.name == name
            for message in self._main_file.messages()
            for each in (
                *message.fields,
                *(field for oneof in message.oneofs for field in oneof.fields),
            )
        )

    @cached_property
    def compiled(self) -> CompiledFile:
        """Descriptors and message classes; SchemaError if protoc would refuse the file."""
        return CompiledFile(self.file, self.references, self._table)

    def message_class(self, full_name: str | None = None) -> Any:
        """The class of a message of this schema or of one it refers to; of `name` unless given."""
        wanted = self.name if full_name is None else full_name
        try:
            return self.compiled.message_class(wanted or "")
        except KeyError:
            raise SchemaError(f"The schema has no message {wanted}") from None

    def message_indexes(self, full_name: str | None = None) -> tuple[int, ...]:
        """The path to a message, for the wire format; to the first one unless a name is given."""
        return indexes.index_path(self._main_file, full_name or self.name or "")

    def message_name(self, path: Sequence[int]) -> str:
        """The full name of the message at a path."""
        return indexes.message_at(self._main_file, path)


def _read(text: str) -> ProtoFile:
    return _read_cached(text) if len(text) <= CACHED_SIZE_MAX else _read_new(text)


def _read_new(text: str) -> ProtoFile:
    try:
        return parse_text(text)
    except SchemaError as error:
        file = _from_base64(text)
        if file is None:
            raise SchemaError(f"Could not parse Protobuf - {error}") from None
        return file


# References are read again and again, with every schema that uses them.
_read_cached = lru_cache(maxsize=128)(_read_new)


def _from_base64(text: str) -> ProtoFile | None:
    """The file if the text is a serialized FileDescriptorProto in base64."""
    if len(text) > TEXT_SIZE_MAX:
        return None
    try:
        data = base64.b64decode(text, validate=True)
        file = file_of(descriptor_class("FileDescriptorProto").FromString(data))
    except (binascii.Error, ValueError, DecodeError):
        return None
    # Any bytes can be names in a descriptor. What counts is what the stored text will say.
    return parse_text(printer.canonical(file))
