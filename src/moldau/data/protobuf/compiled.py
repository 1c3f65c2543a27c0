"""Files as descriptors in a pool of their own, with which messages are read and written.

Every schema has its own pool: two versions of a message have the same name, and one pool could not
hold both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from moldau.data.protobuf import well_known
from moldau.data.protobuf.builder import BuiltFile, PendingOptions, build
from moldau.data.protobuf.model import Option, ProtoFile
from moldau.data.protobuf.option_text import custom_text
from moldau.data.protobuf.types import TypeTable
from moldau.data.schema_language import SchemaError

#: The name of a schema's own file, as in Confluent's registry.
OWN_NAME = "default"
_DESCRIPTOR = "google/protobuf/descriptor.proto"


class CompiledFile:
    """The descriptor of a file, and a pool with it and all it imports."""

    def __init__(
        self, file: ProtoFile, references: Mapping[str, ProtoFile], table: TypeTable
    ) -> None:
        self._table = table
        self._names = {*references, *well_known.NAMES}
        self.pool = descriptor_pool.DescriptorPool()
        #: Files without custom options: those are set by the types that it has.
        self._plain: Any = descriptor_pool.DescriptorPool()
        self._added: set[str] = set()
        for name in _in_order(file, references):
            if name not in references:
                self._add_known(name)
            elif name not in self._added:
                self._add(references[name], name)
        self.proto = self._add(file, OWN_NAME)
        self.descriptor = self.pool.FindFileByName(OWN_NAME)

    def message_class(self, full_name: str) -> Any:
        """The class of a message; KeyError if the pool has none of that name."""
        descriptor = self.pool.FindMessageTypeByName(full_name)
        try:
            return message_factory.GetMessageClass(descriptor)
        except RecursionError:
            raise SchemaError(
                f"{full_name} is nested too deeply: its fields lead through too many messages"
            ) from None

    def _add_known(self, name: str) -> None:
        if name not in self._added:
            self._added.add(name)
            serialized = well_known.descriptor(name)
            self._put(self.pool, serialized, name)
            self._put(self._plain, serialized, name)

    def _add(self, file: ProtoFile, name: str) -> descriptor_pb2.FileDescriptorProto:
        built = build(file, name, self._table, self._names)
        self._added.add(name)
        self._put(self._plain, built.proto.SerializeToString(), name)
        self._set_custom_options(built)
        self._put(self.pool, built.proto.SerializeToString(), name)
        return built.proto

    @staticmethod
    def _put(pool: Any, serialized: bytes, name: str) -> None:
        try:
            pool.AddSerializedFile(serialized)
        except (TypeError, ValueError) as error:
            reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
            where = "" if name == OWN_NAME else f" of {name}"
            raise SchemaError(f"Invalid protobuf schema definition{where}: {reason}") from None

    def _set_custom_options(self, built: BuiltFile) -> None:
        if built.pending:
            self._add_known(_DESCRIPTOR)
        for pending in built.pending:
            for option in pending.options:
                self._set_custom_option(pending, option)

    def _set_custom_option(self, pending: PendingOptions, option: Option) -> None:
        """Sets an option if its extension is known and the value fits.

        Custom options say nothing about the encoding, so others are left out, not refused.
        """

        def qualified(name: str) -> str:
            found = self._table.extension(name, pending.scope)
            if found is None:
                return name.removeprefix(".")
            if found == well_known.types().extension(f".{found.full_name}", pending.scope):
                # As in Confluent's registry, its options need no import.
                self._add_known(well_known.META)
            return found.full_name

        name = pending.owner.options.DESCRIPTOR.full_name
        options = message_factory.GetMessageClass(self._plain.FindMessageTypeByName(name))()
        try:
            text_format.Merge(custom_text(option, qualified), options, descriptor_pool=self._plain)
        except (text_format.ParseError, KeyError):
            return
        pending.owner.options.MergeFromString(options.SerializePartialToString())


def _in_order(file: ProtoFile, references: Mapping[str, ProtoFile]) -> Iterator[str]:
    """The files that a file needs, each behind those that it needs itself."""

    def imports(of: ProtoFile) -> list[str]:
        known = (path for path in of.all_imports if path in references or path in well_known.NAMES)
        return list(dict.fromkeys(known))[::-1]

    done: set[str] = set()
    open_names: list[str] = []
    left = [imports(file)]
    while left:
        if not left[-1]:
            left.pop()
            if open_names:
                done.add(name := open_names.pop())
                yield name
            continue
        name = left[-1].pop()
        if name in open_names or name == OWN_NAME:
            raise SchemaError(f"{name} imports itself, by way of {' -> '.join(open_names)}")
        if name not in done:
            open_names.append(name)
            left.append(imports(references.get(name) or well_known.file(name)))
