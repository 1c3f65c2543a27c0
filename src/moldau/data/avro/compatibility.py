"""Whether one Avro schema reads what another wrote: Apache Avro's SchemaCompatibility.

The incompatibilities come in the library's order, with its words. A pair of types that is met again
is not compared again, so recursive schemas end; the answer found first is given again, with the
location it was found at.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.data.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    NamedType,
    Record,
    RecordField,
    Union,
)
from moldau.data.avro.printing import schema_text
from moldau.data.errors import DataError

#: Enough for anyone to read. Types that are shared would multiply them without end.
INCOMPATIBILITIES_MAX = 1000

#: The types from which a reader's type can be promoted.
_PROMOTABLE = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
_DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the {reader} schema "
    "does not match with the {writer} schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the {reader} schema does not match "
    "with the {writer} schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{message}' at path "
    "'{path}' in the {writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field at path "
    "'{path}' in the {writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{message}' at path '{path}' in the {reader} "
    "schema has no default value and is missing in the {writer} schema",
}


@dataclass(frozen=True, slots=True)
class Incompatibility:
    type: str
    location: str
    message: str

    def described(self, reader_name: str, writer_name: str) -> str:
        """The sentence of Confluent's registry."""
        description = _DESCRIPTIONS[self.type].format(
            path=self.location, message=self.message, reader=reader_name, writer=writer_name
        )
        return (
            f"{{errorType:'{self.type}', description:'{description}', "
            f"additionalInfo:'{self.message}'}}"
        )


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Why data of `writer` cannot be read as `reader`; empty if it can."""
    try:
        return _Check().pair(reader, writer, ())
    except RecursionError:
        raise DataError("the schemas refer to one another too deeply") from None


class _Check:
    def __init__(self) -> None:
        # None while the pair is being compared: it is taken to be compatible then.
        self._found: dict[tuple[int, int], list[Incompatibility] | None] = {}

    def pair(
        self, reader: AvroType, writer: AvroType, location: tuple[str, ...]
    ) -> list[Incompatibility]:
        key = (id(reader), id(writer))
        if key in self._found:
            return self._found[key] or []
        self._found[key] = None
        found = self._compare(reader, writer, location)[:INCOMPATIBILITIES_MAX]
        self._found[key] = found
        return found

    def _compare(
        self, reader: AvroType, writer: AvroType, location: tuple[str, ...]
    ) -> list[Incompatibility]:
        match reader, writer:
            case Array(), Array():
                return self.pair(reader.items, writer.items, (*location, "items"))
            case Map(), Map():
                return self.pair(reader.values, writer.values, (*location, "values"))
            case Fixed(), Fixed():
                return _names(reader, writer, location) + _sizes(reader, writer, location)
            case Enum(), Enum():
                return _names(reader, writer, location) + _symbols(reader, writer, location)
            case Record(), Record():
                return _names(reader, writer, location) + self._fields(reader, writer, location)
            case Union(), Union():
                return self._unions(reader, writer, location)
            case _, Union():
                found: list[Incompatibility] = []
                for index, branch in enumerate(writer.branches):
                    found += self.pair(reader, branch, (*location, str(index)))
                return found
            case Union(), _:
                if any(not self.pair(branch, writer, ()) for branch in reader.branches):
                    return []
                return [_missing_branch(writer, location)]
        if reader.kind == writer.kind or writer.kind in _PROMOTABLE.get(reader.kind, ()):
            return []
        message = (
            f"reader type: {reader.kind.upper()} not compatible with "
            f"writer type: {writer.kind.upper()}"
        )
        return [Incompatibility("TYPE_MISMATCH", _pointer(location), message)]

    def _unions(
        self, reader: Union, writer: Union, location: tuple[str, ...]
    ) -> list[Incompatibility]:
        return [
            _missing_branch(branch, (*location, str(index)))
            for index, branch in enumerate(writer.branches)
            if self.pair(reader, branch, ())
        ]

    def _fields(
        self, reader: Record, writer: Record, location: tuple[str, ...]
    ) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        by_name = {each.name: each for each in writer.fields}
        for index, field in enumerate(reader.fields):
            here = (*location, "fields", str(index))
            written = _written_field(by_name, field, index, writer)
            if written is not None:
                found += self.pair(field.type, written.type, (*here, "type"))
            elif field.default is not MISSING:
                continue
            elif isinstance(field.type, Enum) and field.type.default is not None:
                # Apache Avro compares the enum with the whole record here, and so finds a mismatch.
                found += self.pair(field.type, writer, (*here, "type"))
            else:
                found.append(
                    Incompatibility(
                        "READER_FIELD_MISSING_DEFAULT_VALUE", _pointer(here), field.name
                    )
                )
            del found[INCOMPATIBILITIES_MAX:]
        return found


def _written_field(
    by_name: dict[str, RecordField], field: RecordField, index: int, writer: Record
) -> RecordField | None:
    """The writer's field that a reader's field is, by its name or an alias."""
    names = [field.name, *field.aliases]
    matches = [by_name[name] for name in names if name in by_name]
    if len(matches) > 1:
        raise DataError(
            f"Reader record field {field.name} type:{field.type.kind.upper()} pos:{index} matches "
            f"multiple fields in writer record schema {schema_text(writer)}"
        )
    return matches[0] if matches else None


def _names(
    reader: NamedType, writer: NamedType, location: tuple[str, ...]
) -> list[Incompatibility]:
    # Only simple names are compared, so that a type may move to another namespace.
    if reader.name.simple == writer.name.simple or writer.name in reader.aliases:
        return []
    message = f"expected: {writer.name.full}"
    return [Incompatibility("NAME_MISMATCH", _pointer((*location, "name")), message)]


def _sizes(reader: Fixed, writer: Fixed, location: tuple[str, ...]) -> list[Incompatibility]:
    if reader.size == writer.size:
        return []
    message = f"expected: {writer.size}, found: {reader.size}"
    return [Incompatibility("FIXED_SIZE_MISMATCH", _pointer((*location, "size")), message)]


def _symbols(reader: Enum, writer: Enum, location: tuple[str, ...]) -> list[Incompatibility]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default is not None:
        return []
    message = f"[{', '.join(missing)}]"
    return [Incompatibility("MISSING_ENUM_SYMBOLS", _pointer((*location, "symbols")), message)]


def _missing_branch(branch: AvroType, location: tuple[str, ...]) -> Incompatibility:
    message = f"reader union lacking writer type: {branch.kind.upper()}"
    return Incompatibility("MISSING_UNION_BRANCH", _pointer(location), message)


def _pointer(location: tuple[str, ...]) -> str:
    return "/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in location)
