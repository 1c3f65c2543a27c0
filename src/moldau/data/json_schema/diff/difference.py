"""The kinds of differences, which of them are compatible, and the sentences about them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class DifferenceType(Enum):
    """Named as Confluent's registry names them in its answers."""

    ID_CHANGED = auto()
    DESCRIPTION_CHANGED = auto()
    TITLE_CHANGED = auto()
    DEFAULT_CHANGED = auto()
    SCHEMA_ADDED = auto()
    SCHEMA_REMOVED = auto()
    TYPE_EXTENDED = auto()
    TYPE_NARROWED = auto()
    TYPE_CHANGED = auto()

    MAX_LENGTH_ADDED = auto()
    MAX_LENGTH_REMOVED = auto()
    MAX_LENGTH_INCREASED = auto()
    MAX_LENGTH_DECREASED = auto()
    MIN_LENGTH_ADDED = auto()
    MIN_LENGTH_REMOVED = auto()
    MIN_LENGTH_INCREASED = auto()
    MIN_LENGTH_DECREASED = auto()
    PATTERN_ADDED = auto()
    PATTERN_REMOVED = auto()
    PATTERN_CHANGED = auto()

    MAXIMUM_ADDED = auto()
    MAXIMUM_REMOVED = auto()
    MAXIMUM_INCREASED = auto()
    MAXIMUM_DECREASED = auto()
    MINIMUM_ADDED = auto()
    MINIMUM_REMOVED = auto()
    MINIMUM_INCREASED = auto()
    MINIMUM_DECREASED = auto()
    EXCLUSIVE_MAXIMUM_ADDED = auto()
    EXCLUSIVE_MAXIMUM_REMOVED = auto()
    EXCLUSIVE_MAXIMUM_INCREASED = auto()
    EXCLUSIVE_MAXIMUM_DECREASED = auto()
    EXCLUSIVE_MINIMUM_ADDED = auto()
    EXCLUSIVE_MINIMUM_REMOVED = auto()
    EXCLUSIVE_MINIMUM_INCREASED = auto()
    EXCLUSIVE_MINIMUM_DECREASED = auto()
    MULTIPLE_OF_ADDED = auto()
    MULTIPLE_OF_REMOVED = auto()
    MULTIPLE_OF_EXPANDED = auto()
    MULTIPLE_OF_REDUCED = auto()
    MULTIPLE_OF_CHANGED = auto()

    REQUIRED_ATTRIBUTE_ADDED = auto()
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED = auto()
    REQUIRED_ATTRIBUTE_REMOVED = auto()
    MAX_PROPERTIES_ADDED = auto()
    MAX_PROPERTIES_REMOVED = auto()
    MAX_PROPERTIES_INCREASED = auto()
    MAX_PROPERTIES_DECREASED = auto()
    MIN_PROPERTIES_ADDED = auto()
    MIN_PROPERTIES_REMOVED = auto()
    MIN_PROPERTIES_INCREASED = auto()
    MIN_PROPERTIES_DECREASED = auto()
    ADDITIONAL_PROPERTIES_ADDED = auto()
    ADDITIONAL_PROPERTIES_REMOVED = auto()
    ADDITIONAL_PROPERTIES_EXTENDED = auto()
    ADDITIONAL_PROPERTIES_NARROWED = auto()
    DEPENDENCY_ARRAY_ADDED = auto()
    DEPENDENCY_ARRAY_REMOVED = auto()
    DEPENDENCY_ARRAY_EXTENDED = auto()
    DEPENDENCY_ARRAY_NARROWED = auto()
    DEPENDENCY_ARRAY_CHANGED = auto()
    DEPENDENCY_SCHEMA_ADDED = auto()
    DEPENDENCY_SCHEMA_REMOVED = auto()
    REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    UNEVALUATED_PROPERTIES_ADDED = auto()
    UNEVALUATED_PROPERTIES_REMOVED = auto()
    UNEVALUATED_PROPERTIES_EXTENDED = auto()
    UNEVALUATED_PROPERTIES_NARROWED = auto()

    MAX_ITEMS_ADDED = auto()
    MAX_ITEMS_REMOVED = auto()
    MAX_ITEMS_INCREASED = auto()
    MAX_ITEMS_DECREASED = auto()
    MIN_ITEMS_ADDED = auto()
    MIN_ITEMS_REMOVED = auto()
    MIN_ITEMS_INCREASED = auto()
    MIN_ITEMS_DECREASED = auto()
    MAX_CONTAINS_ADDED = auto()
    MAX_CONTAINS_REMOVED = auto()
    MAX_CONTAINS_INCREASED = auto()
    MAX_CONTAINS_DECREASED = auto()
    MIN_CONTAINS_ADDED = auto()
    MIN_CONTAINS_REMOVED = auto()
    MIN_CONTAINS_INCREASED = auto()
    MIN_CONTAINS_DECREASED = auto()
    UNIQUE_ITEMS_ADDED = auto()
    UNIQUE_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_ADDED = auto()
    ADDITIONAL_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_EXTENDED = auto()
    ADDITIONAL_ITEMS_NARROWED = auto()
    UNEVALUATED_ITEMS_ADDED = auto()
    UNEVALUATED_ITEMS_REMOVED = auto()
    UNEVALUATED_ITEMS_EXTENDED = auto()
    UNEVALUATED_ITEMS_NARROWED = auto()
    ITEM_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_TO_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()

    ENUM_ARRAY_EXTENDED = auto()
    ENUM_ARRAY_NARROWED = auto()
    ENUM_ARRAY_CHANGED = auto()

    COMBINED_TYPE_EXTENDED = auto()
    COMBINED_TYPE_CHANGED = auto()
    PRODUCT_TYPE_EXTENDED = auto()
    PRODUCT_TYPE_NARROWED = auto()
    SUM_TYPE_EXTENDED = auto()
    SUM_TYPE_NARROWED = auto()
    COMBINED_TYPE_SUBSCHEMAS_CHANGED = auto()
    NOT_TYPE_EXTENDED = auto()
    NOT_TYPE_NARROWED = auto()


@dataclass(frozen=True, slots=True)
class Difference:
    """A change at a path such as `#/properties/id`."""

    type: DifferenceType
    path: str

    def describe(self, reader_name: str, writer_name: str) -> str:
        """The sentence of Confluent's registry. It closes with a single quote there, too."""
        sentence = _SENTENCES.get(self.type, "").format(
            path=self.path, reader=reader_name, writer=writer_name
        )
        return f'{{errorType:"{self.type.name}", description:"{sentence}\'}}'


def _types(text: str) -> list[DifferenceType]:
    return [DifferenceType[name] for name in text.split()]


_SENTENCES: dict[DifferenceType, str] = {
    **dict.fromkeys(
        _types(
            """MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED
            MULTIPLE_OF_ADDED MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED
            REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED MIN_PROPERTIES_ADDED
            DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED
            MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED
            ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED
            UNEVALUATED_ITEMS_REMOVED"""
        ),
        "The keyword at path '{path}' in the {reader} schema is not present in the {writer} schema",
    ),
    **dict.fromkeys(
        _types(
            """MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED
            MIN_PROPERTIES_INCREASED MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED
            MIN_CONTAINS_INCREASED"""
        ),
        "The value at path '{path}' in the {reader} schema is more than its value in the {writer} "
        "schema",
    ),
    **dict.fromkeys(
        _types(
            """MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED
            EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED"""
        ),
        "The value at path '{path}' in the {reader} schema is less than its value in the {writer} "
        "schema",
    ),
    **dict.fromkeys(
        _types("PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED"),
        "The value at path '{path}' is different between the {reader} and {writer} schema",
    ),
    **dict.fromkeys(
        _types(
            """ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED
            ADDITIONAL_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_NARROWED
            UNEVALUATED_ITEMS_NARROWED"""
        ),
        "An array or combined type at path '{path}' has fewer elements in the {reader} schema than "
        "the {writer} schema",
    ),
    **dict.fromkeys(
        _types(
            """DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED SUM_TYPE_EXTENDED
            NOT_TYPE_EXTENDED"""
        ),
        "An array or combined type at path '{path}' has more elements in the {reader} schema than "
        "the {writer} schema",
    ),
    **dict.fromkeys(
        _types(
            """TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED
            ENUM_ARRAY_CHANGED"""
        ),
        "A type at path '{path}' is different between the {reader} schema and the {writer} schema",
    ),
    **dict.fromkeys(
        _types(
            """REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
            REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
            OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL"""
        ),
        "The {reader} schema has an open content model and has a property or item at path '{path}' "
        "which is missing in the {writer} schema",
    ),
    DifferenceType.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL: (
        "The {reader} schema has an unopen content model and has a required property at path "
        "'{path}' which is missing in the {writer} schema"
    ),
    **dict.fromkeys(
        _types("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        "The {reader} has a closed content model and is missing a property or item present at path "
        "'{path}' in the {writer} schema",
    ),
    **dict.fromkeys(
        _types(
            """PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"""
        ),
        "A property or item is missing in the {reader} schema but present at path '{path}' in the "
        "{writer} schema and is not covered by its partially open content model",
    ),
    **dict.fromkeys(
        _types(
            """PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"""
        ),
        "The {reader} schema has a property or item at path '{path}' which is missing in the "
        "{writer} schema and is not covered by its partially open content model",
    ),
}

#: What a reader may change under compatibilityPolicy STRICT.
COMPATIBLE_STRICT = frozenset(
    _types(
        """ID_CHANGED DESCRIPTION_CHANGED TITLE_CHANGED DEFAULT_CHANGED SCHEMA_REMOVED TYPE_EXTENDED
        MAX_LENGTH_INCREASED MAX_LENGTH_REMOVED MIN_LENGTH_DECREASED MIN_LENGTH_REMOVED
        PATTERN_REMOVED MAXIMUM_INCREASED MAXIMUM_REMOVED MINIMUM_DECREASED MINIMUM_REMOVED
        EXCLUSIVE_MAXIMUM_INCREASED EXCLUSIVE_MAXIMUM_REMOVED EXCLUSIVE_MINIMUM_DECREASED
        EXCLUSIVE_MINIMUM_REMOVED MULTIPLE_OF_REDUCED MULTIPLE_OF_REMOVED
        REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED REQUIRED_ATTRIBUTE_REMOVED DEPENDENCY_ARRAY_NARROWED
        DEPENDENCY_ARRAY_REMOVED DEPENDENCY_SCHEMA_REMOVED MAX_PROPERTIES_INCREASED
        MAX_PROPERTIES_REMOVED MIN_PROPERTIES_DECREASED MIN_PROPERTIES_REMOVED
        ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED UNEVALUATED_PROPERTIES_ADDED
        UNEVALUATED_PROPERTIES_EXTENDED PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
        REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL
        OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
        PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL
        PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL
        PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL MAX_ITEMS_INCREASED
        MAX_ITEMS_REMOVED MIN_ITEMS_DECREASED MIN_ITEMS_REMOVED MAX_CONTAINS_INCREASED
        MAX_CONTAINS_REMOVED MIN_CONTAINS_DECREASED MIN_CONTAINS_REMOVED UNIQUE_ITEMS_REMOVED
        ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED UNEVALUATED_ITEMS_ADDED
        UNEVALUATED_ITEMS_EXTENDED ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
        ITEM_ADDED_TO_CLOSED_CONTENT_MODEL ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL
        ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL ENUM_ARRAY_EXTENDED
        COMBINED_TYPE_EXTENDED PRODUCT_TYPE_NARROWED SUM_TYPE_EXTENDED NOT_TYPE_NARROWED"""
    )
)
#: What it may change under LENIENT: properties may also come and go in an open content model.
COMPATIBLE_LENIENT = COMPATIBLE_STRICT | frozenset(
    _types(
        """ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_PROPERTIES_REMOVED
        UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_REMOVED
        REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
        OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL
        PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL
        PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"""
    )
)
