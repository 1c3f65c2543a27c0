"""The differences between two files, in the order in which Confluent's registry finds them.

Fields are the same if they have the same number, messages and enums if they have the same name.
What a field refers to in another file is compared, too; what it refers to in its own file is
compared where it is declared.

Deviation: the registry follows references without a bound. Here a comparison of more than
COMPARISONS_MAX messages, or with more than DIFFERENCES_MAX results, is given up with SchemaError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moldau.data.protobuf.differences import Difference, DifferenceType
from moldau.data.protobuf.java_order import union_in_order
from moldau.data.protobuf.model import (
    SCALARS,
    Enum,
    Field,
    Label,
    Message,
    OneOf,
    ProtoFile,
    map_types,
)
from moldau.data.protobuf.types import Scope, TypeTable
from moldau.data.schema_language import SchemaError

COMPARISONS_MAX = 20_000
DIFFERENCES_MAX = 20_000

_GENERAL_NUMBER = "general number"
_STRING_OR_BYTES = "string or bytes"
#: Scalars of one kind are read as one another.
_SCALAR_KINDS = {
    "int32": _GENERAL_NUMBER,
    "int64": _GENERAL_NUMBER,
    "uint32": _GENERAL_NUMBER,
    "uint64": _GENERAL_NUMBER,
    "bool": _GENERAL_NUMBER,
    "sint32": "signed number",
    "sint64": "signed number",
    "string": _STRING_OR_BYTES,
    "bytes": _STRING_OR_BYTES,
    "fixed32": "fixed32",
    "sfixed32": "fixed32",
    "fixed64": "fixed64",
    "sfixed64": "fixed64",
    "float": "float",
    "double": "double",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two files, with the types it can use."""

    file: ProtoFile
    table: TypeTable


def differences(original: Side, update: Side, *, same_references: bool) -> list[Difference]:
    """What the update changed. With the same references, nothing in them can differ."""
    comparison = _Comparison(original.table, update.table, same_references)
    place = _Place(Scope(original.file.package), Scope(update.file.package))
    found: list[Difference] = []
    if original.file.package != update.file.package:
        found.append(place.difference(DifferenceType.PACKAGE_CHANGED))
    try:
        found += comparison.types(place, original.file.types, update.file.types)
    except RecursionError:
        raise SchemaError("The schemas refer to one another too deeply to be compared") from None
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the comparison is: the scopes on both sides, and the path that is reported."""

    original: Scope
    update: Scope
    path: tuple[str, ...] = ()
    #: The messages of the original that are being compared: a recursive one ends there.
    open: frozenset[int] = frozenset()

    def into_type(self, name: str) -> _Place:
        return _Place(
            self.original.inside(name), self.update.inside(name), (*self.path, name), self.open
        )

    def at(self, *path: str | int) -> _Place:
        return _Place(self.original, self.update, (*self.path, *map(str, path)), self.open)

    def difference(self, kind: DifferenceType) -> Difference:
        return Difference(kind, "#/" + "/".join(self.path))


@dataclass(slots=True)
class _Fields:
    """The fields of a message by number, with the oneofs they are in."""

    by_number: dict[int, Field] = field(default_factory=dict)
    oneof_of: dict[int, str] = field(default_factory=dict)
    oneofs: dict[str, OneOf] = field(default_factory=dict)

    @classmethod
    def of(cls, message: Message) -> _Fields:
        fields = cls({each.number: each for each in message.fields})
        for oneof in message.oneofs:
            fields.oneofs[oneof.name] = oneof
            for each in oneof.fields:
                fields.by_number[each.number] = each
                fields.oneof_of[each.number] = oneof.name
        return fields


class _Comparison:
    def __init__(self, original: TypeTable, update: TypeTable, same_references: bool) -> None:
        self._original = original
        self._update = update
        self._same_references = same_references
        self._count = 0
        #: Results for types of other files, with the messages that were met on the way. They hold
        #: wherever none of these is open.
        self._known: dict[tuple[int, int], tuple[list[Difference], frozenset[int]]] = {}
        self._met: set[int] = set()

    def types(
        self,
        place: _Place,
        original: Sequence[Message | Enum],
        update: Sequence[Message | Enum],
    ) -> list[Difference]:
        """Messages, then enums, by name."""
        old_messages, new_messages = _messages(original), _messages(update)
        old_enums, new_enums = _enums(original), _enums(update)
        found: list[Difference] = []
        for name in union_in_order(old_messages, new_messages):
            inner = place.into_type(name)
            if name not in new_messages:
                if not self._is_map_entry(name, inner.original, self._original):
                    found.append(inner.difference(DifferenceType.MESSAGE_REMOVED))
            elif name not in old_messages:
                if not self._is_map_entry(name, inner.update, self._update):
                    found.append(inner.difference(DifferenceType.MESSAGE_ADDED))
            else:
                (old_index, old), (new_index, new) = old_messages[name], new_messages[name]
                found += self.message(inner, old, new)
                if old_index != new_index:
                    found.append(inner.difference(DifferenceType.MESSAGE_MOVED))
        for name in union_in_order(old_enums, new_enums):
            inner = place.into_type(name)
            if name not in new_enums:
                found.append(inner.difference(DifferenceType.ENUM_REMOVED))
            elif name not in old_enums:
                found.append(inner.difference(DifferenceType.ENUM_ADDED))
            else:
                found += _enum_differences(inner, old_enums[name], new_enums[name])
        self._bound(found)
        return found

    @staticmethod
    def _is_map_entry(name: str, scope: Scope, table: TypeTable) -> bool:
        found = table.type(name, scope)
        return found is None or found.map_type is not None

    def message(self, place: _Place, original: Message, update: Message) -> list[Difference]:
        self._met.add(id(original))
        self._count += 1
        if self._count > COMPARISONS_MAX:
            raise SchemaError(
                f"The schemas refer to one another in more than {COMPARISONS_MAX} ways: "
                "too many to compare"
            )
        found: list[Difference] = []
        if id(original) not in place.open:
            place = _Place(place.original, place.update, place.path, place.open | {id(original)})
            found = self._fields(place, _Fields.of(original), _Fields.of(update))
        return found + self.types(place, original.types, update.types)

    def _fields(self, place: _Place, old: _Fields, new: _Fields) -> list[Difference]:
        found = _exclusions(place, old, new)
        for name in sorted({*old.oneofs, *new.oneofs}):
            if name not in new.oneofs:
                found.append(place.at(name).difference(DifferenceType.ONEOF_REMOVED))
            elif name not in old.oneofs:
                found.append(place.at(name).difference(DifferenceType.ONEOF_ADDED))
        # All fields of a oneof may be removed with it, but not some.
        deleted = {
            name
            for name, oneof in old.oneofs.items()
            if name not in new.oneofs
            and not any(each.number in new.by_number for each in oneof.fields)
        }
        for number in sorted({*old.by_number, *new.by_number}):
            found += self._field_by_number(place, number, old, new, deleted)
        return found

    def _field_by_number(
        self, place: _Place, number: int, old: _Fields, new: _Fields, deleted: set[str]
    ) -> list[Difference]:
        old_oneof, new_oneof = old.oneof_of.get(number), new.oneof_of.get(number)
        if number not in new.by_number:
            if old_oneof is None:
                is_required = old.by_number[number].label is Label.REQUIRED
                return [place.at(number).difference(_REMOVED[is_required])]
            if old_oneof in deleted:
                return []
            return [place.at(old_oneof, number).difference(DifferenceType.ONEOF_FIELD_REMOVED)]
        if number not in old.by_number:
            if new_oneof is None:
                is_required = new.by_number[number].label is Label.REQUIRED
                return [place.at(number).difference(_ADDED[is_required])]
            return [place.at(new_oneof, number).difference(DifferenceType.ONEOF_FIELD_ADDED)]
        found: list[Difference] = []
        inner = place.at(number) if new_oneof is None else place.at(new_oneof, number)
        if old_oneof is not None and new_oneof is None:
            found.append(inner.difference(DifferenceType.ONEOF_FIELD_MOVED_TO_TOP_LEVEL))
        before, after = old.by_number[number], new.by_number[number]
        if before.name != after.name:
            found.append(inner.difference(DifferenceType.FIELD_NAME_CHANGED))
        labels = (before.label, after.label)
        return found + self._type_of_field(inner, labels, before.type, after.type)

    def _type_of_field(
        self,
        place: _Place,
        labels: tuple[Label | None, Label | None],
        original: str,
        update: str,
    ) -> list[Difference]:
        original = self._as_map(original, place.original, self._original)
        update = self._as_map(update, place.update, self._update)
        kind = self._kind(original, place.original, self._original)
        if kind != self._kind(update, place.update, self._update):
            return [place.difference(DifferenceType.FIELD_KIND_CHANGED)]
        if kind == "scalar":
            return self._scalars(place, labels, original, update)
        if kind == "message":
            return self._named_types(place, original, update)
        found: list[Difference] = []
        pairs = zip(map_types(original) or (), map_types(update) or (), strict=True)
        for before, after in pairs:
            found += self._type_of_field(place, (None, None), before, after)
        return found

    @staticmethod
    def _as_map(name: str, scope: Scope, table: TypeTable) -> str:
        found = table.type(name, scope)
        return (found.map_type if found else None) or name

    @staticmethod
    def _kind(name: str, scope: Scope, table: TypeTable) -> str:
        if name in SCALARS:
            return "scalar"
        if map_types(name):
            return "map"
        found = table.type(name, scope)
        return "scalar" if found and isinstance(found.declared, Enum) else "message"

    def _scalars(
        self,
        place: _Place,
        labels: tuple[Label | None, Label | None],
        original: str,
        update: str,
    ) -> list[Difference]:
        # An enum is written as its number is. Other names were found to be enums before.
        kind = _SCALAR_KINDS.get(original, _GENERAL_NUMBER)
        if kind != _SCALAR_KINDS.get(update, _GENERAL_NUMBER):
            return [place.difference(DifferenceType.FIELD_SCALAR_KIND_CHANGED)]
        if None in labels or labels[0] is labels[1]:
            return []
        if kind == _STRING_OR_BYTES:
            return [place.difference(DifferenceType.FIELD_STRING_OR_BYTES_LABEL_CHANGED)]
        return [place.difference(DifferenceType.FIELD_NUMERIC_LABEL_CHANGED)]

    def _named_types(self, place: _Place, original: str, update: str) -> list[Difference]:
        changed = place.difference(DifferenceType.FIELD_NAMED_TYPE_CHANGED)
        old = self._original.type(original, place.original)
        new = self._update.type(update, place.update)
        if old is None or new is None:
            return [] if original == update else [changed]
        if old.local_name != new.local_name:
            return [changed]
        if old.is_local and new.is_local:
            return []
        if self._same_references and not old.is_local and not new.is_local:
            return []
        if not (isinstance(old.declared, Message) and isinstance(new.declared, Message)):
            return [changed]
        path = tuple(old.local_name.split("."))
        elsewhere = _Place(Scope(old.package, path), Scope(new.package, path), path, place.open)
        found = self._elsewhere(elsewhere, old.declared, new.declared)
        return found if all(each.is_compatible for each in found) else [*found, changed]

    def _elsewhere(self, place: _Place, original: Message, update: Message) -> list[Difference]:
        """Compares messages of other files, as often as they are referred to, but works once."""
        key = (id(original), id(update))
        found, met = self._known.get(key, ([], None))
        if met is None or met & place.open:
            outer, self._met = self._met, set()
            found = self.message(place, original, update)
            self._bound(found)
            met = frozenset(self._met)
            self._met = outer
            if not met & place.open:
                self._known[key] = found, met
        self._met |= met
        return found

    @staticmethod
    def _bound(found: list[Difference]) -> None:
        if len(found) > DIFFERENCES_MAX:
            raise SchemaError(f"The schemas have more than {DIFFERENCES_MAX} differences")


_REMOVED = {
    False: DifferenceType.FIELD_REMOVED,
    True: DifferenceType.REQUIRED_FIELD_REMOVED,
}
_ADDED = {
    False: DifferenceType.FIELD_ADDED,
    True: DifferenceType.REQUIRED_FIELD_ADDED,
}


def _messages(types: Sequence[Message | Enum]) -> dict[str, tuple[int, Message]]:
    """By name, with their numbers among the messages."""
    messages = (each for each in types if isinstance(each, Message))
    return {each.name: (index, each) for index, each in enumerate(messages)}


def _enums(types: Sequence[Message | Enum]) -> dict[str, Enum]:
    return {each.name: each for each in types if isinstance(each, Enum)}


def _enum_differences(place: _Place, original: Enum, update: Enum) -> list[Difference]:
    old = {value.number: value.name for value in original.values}
    new = {value.number: value.name for value in update.values}
    found: list[Difference] = []
    for number in union_in_order(old, new):
        inner = place.at(number)
        if number not in new:
            found.append(inner.difference(DifferenceType.ENUM_CONST_REMOVED))
        elif number not in old:
            found.append(inner.difference(DifferenceType.ENUM_CONST_ADDED))
        elif old[number] != new[number]:
            found.append(inner.difference(DifferenceType.ENUM_CONST_CHANGED))
    return found


def _exclusions(place: _Place, old: _Fields, new: _Fields) -> list[Difference]:
    """Oneofs that make fields exclude each other which did not before."""
    found: list[Difference] = []
    for oneof in new.oneofs.values():
        groups: set[str | int] = set()
        moved_in = 0
        for each in oneof.fields:
            if each.number in old.oneof_of:
                groups.add(old.oneof_of[each.number])
            elif each.number in old.by_number:
                groups.add(each.number)
                moved_in += 1
        if len(groups) > 1:
            kind = (
                DifferenceType.MULTIPLE_FIELDS_MOVED_TO_ONEOF
                if moved_in > 1
                else DifferenceType.FIELD_MOVED_TO_EXISTING_ONEOF
            )
            found.append(place.at(oneof.name).difference(kind))
    return found
