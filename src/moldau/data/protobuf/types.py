"""What the names in a file mean: the types and extensions of the file and of all it can import.

A name is looked for from the innermost scope outwards: in the message, in the messages around it,
in the package, in the packages around that. A dot in front means the whole name is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from moldau.data.protobuf.model import Enum, Extend, Field, Group, Message, ProtoFile


@dataclass(frozen=True, slots=True)
class DeclaredType:
    full_name: str
    package: str
    declared: Message | Enum
    #: Declared in the file itself, not in one that it imports.
    is_local: bool

    @property
    def local_name(self) -> str:
        """The name without the package."""
        return self.full_name.removeprefix(f"{self.package}.") if self.package else self.full_name

    @property
    def map_type(self) -> str | None:
        """`map<KEY, VALUE>` if the message stands for the entries of a map."""
        if not (isinstance(self.declared, Message) and self.declared.is_map_entry):
            return None
        fields = {field.name: field.type for field in self.declared.fields}
        if "key" not in fields or "value" not in fields:
            return None
        return f"map<{fields['key']}, {fields['value']}>"


@dataclass(frozen=True, slots=True)
class DeclaredExtension:
    full_name: str
    package: str
    field: Field | Group
    #: The name of the extended message as it is written, and the messages around the declaration.
    extended: str
    scope: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a name stands: in a package, and in the messages of a path."""

    package: str
    path: tuple[str, ...] = ()

    def inside(self, name: str) -> Scope:
        return Scope(self.package, (*self.path, name))

    def prefixes(self) -> Iterator[str]:
        """The names of the scopes from here outwards, each with a dot, and "" at last."""
        parts = [*(self.package.split(".") if self.package else ()), *self.path]
        while parts:
            yield ".".join(parts) + "."
            parts.pop()
        yield ""


class TypeTable:
    """All declarations that a file can use, by full name."""

    def __init__(
        self,
        types: Mapping[str, DeclaredType],
        extensions: Mapping[str, DeclaredExtension],
    ) -> None:
        self._types = types
        self._extensions = extensions

    @classmethod
    def of(cls, file: ProtoFile, others: Iterable[ProtoFile], known: TypeTable | None) -> TypeTable:
        """The table for a file, with the files it may import. What is nearer wins."""
        types = dict(known._types) if known else {}
        extensions = dict(known._extensions) if known else {}
        for other in others:
            _collect(other, types, extensions, is_local=False)
        _collect(file, types, extensions, is_local=True)
        return cls(types, extensions)

    def type(self, name: str, scope: Scope) -> DeclaredType | None:
        if name.startswith("."):
            return self._types.get(name[1:])
        for prefix in scope.prefixes():
            if (found := self._types.get(prefix + name)) is not None:
                return found
        return None

    def extension(self, name: str, scope: Scope) -> DeclaredExtension | None:
        if name.startswith("."):
            return self._extensions.get(name[1:])
        for prefix in scope.prefixes():
            if (found := self._extensions.get(prefix + name)) is not None:
                return found
        return None


def _collect(
    file: ProtoFile,
    types: dict[str, DeclaredType],
    extensions: dict[str, DeclaredExtension],
    *,
    is_local: bool,
) -> None:
    def add_extends(extends: Iterable[Extend], scope: Scope) -> None:
        prefix = next(scope.prefixes())
        for extend in extends:
            for field in extend.members:
                # The field of a group has the name of its message in small letters.
                name = field.name.lower() if isinstance(field, Group) else field.name
                extensions[prefix + name] = DeclaredExtension(
                    prefix + name, scope.package, field, extend.name, scope.path
                )
                if isinstance(field, Group):
                    add(field.body, scope)

    def add(declared: Message | Enum, scope: Scope) -> None:
        full_name = next(scope.prefixes()) + declared.name
        types[full_name] = DeclaredType(full_name, file.package, declared, is_local)
        if isinstance(declared, Message):
            inner = scope.inside(declared.name)
            for nested in declared.types:
                add(nested, inner)
            for group in groups_of(declared):
                add(group.body, inner)
            add_extends(declared.extends, inner)

    outer = Scope(file.package)
    add_extends(file.extends, outer)
    for each in file.types:
        add(each, outer)


def groups_of(message: Message) -> Iterator[Group]:
    """The groups that are fields of a message, also those in a oneof."""
    yield from message.groups
    for oneof in message.oneofs:
        yield from oneof.groups
