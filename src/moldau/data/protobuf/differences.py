"""The kinds of differences between two files, and the sentences of Confluent's registry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class DifferenceType(Enum):
    PACKAGE_CHANGED = (
        "The package at '{path}' in the {reader} schema does not match the package in the "
        "{writer} schema"
    )
    MESSAGE_ADDED = "message added"
    MESSAGE_REMOVED = (
        "The {reader} schema is missing a MESSAGE type at path '{path}' in the {writer} schema"
    )
    MESSAGE_MOVED = "message moved"
    ENUM_ADDED = "enum added"
    ENUM_REMOVED = "enum removed"
    ENUM_CONST_ADDED = "value added"
    ENUM_CONST_CHANGED = "value changed"
    ENUM_CONST_REMOVED = "value removed"
    FIELD_ADDED = "field added"
    FIELD_REMOVED = "field removed"
    FIELD_NAME_CHANGED = "name changed"
    FIELD_KIND_CHANGED = (
        "The type of a field at path '{path}' in the {reader} schema does not match the "
        "{writer} schema"
    )
    FIELD_SCALAR_KIND_CHANGED = (
        "The kind of a SCALAR field at path '{path}' in the {reader} schema does not match its "
        "kind in the {writer} schema"
    )
    FIELD_NAMED_TYPE_CHANGED = (
        "The type of a MESSAGE field at path '{path}' in the {reader} schema does not match its "
        "type in the {writer} schema"
    )
    FIELD_NUMERIC_LABEL_CHANGED = (
        "The label for a NUMERIC field at path '{path}' in the {reader} schema does not match its "
        "label in the {writer} schema"
    )
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = "label changed"
    # Two blanks after "field": so it is in the original.
    REQUIRED_FIELD_ADDED = (
        "A required field  at path '{path}' in the {reader} schema is missing in the "
        "{writer} schema"
    )
    REQUIRED_FIELD_REMOVED = (
        "The {reader} schema is missing a required field at path: '{path}' in the {writer} schema"
    )
    ONEOF_ADDED = "oneof added"
    ONEOF_REMOVED = "oneof removed"
    ONEOF_FIELD_ADDED = "field added to oneof"
    ONEOF_FIELD_REMOVED = (
        "The {reader} schema is missing a oneof field at path '{path}' in the {writer} schema"
    )
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL = "field moved out of oneof"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = (
        "Multiple fields in the oneof at path '{path}' in the {reader} schema are outside a oneof "
        "in the {writer} schema"
    )
    FIELD_MOVED_TO_EXISTING_ONEOF = (
        "A field in the oneof at path '{path}' in the {reader} schema is outside an existing oneof "
        "in the {writer} schema"
    )


#: What a reader of the new schema does not notice in records of the old one.
COMPATIBLE = frozenset(
    (
        DifferenceType.MESSAGE_ADDED,
        DifferenceType.MESSAGE_MOVED,
        DifferenceType.ENUM_ADDED,
        DifferenceType.ENUM_REMOVED,
        DifferenceType.ENUM_CONST_ADDED,
        DifferenceType.ENUM_CONST_CHANGED,
        DifferenceType.ENUM_CONST_REMOVED,
        DifferenceType.FIELD_ADDED,
        DifferenceType.FIELD_REMOVED,
        DifferenceType.FIELD_NAME_CHANGED,
        DifferenceType.FIELD_STRING_OR_BYTES_LABEL_CHANGED,
        DifferenceType.ONEOF_ADDED,
        DifferenceType.ONEOF_REMOVED,
        DifferenceType.ONEOF_FIELD_ADDED,
        DifferenceType.ONEOF_FIELD_MOVED_TO_TOP_LEVEL,
    )
)


@dataclass(frozen=True, slots=True)
class Difference:
    type: DifferenceType
    #: `#/Message/3`: messages, oneof and number of the field.
    path: str

    @property
    def is_compatible(self) -> bool:
        return self.type in COMPATIBLE

    def sentence(self, *, reader: str, writer: str) -> str:
        """What the registry reports."""
        description = self.type.value.format(path=self.path, reader=reader, writer=writer)
        return f'{{errorType:"{self.type.name}", description:"{description}"}}'
