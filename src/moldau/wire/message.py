"""The base of every generated message class.

A message is plain data: slots named after Kafka's fields in snake_case, values of any version.
Which of them exist in a given version is known to the class's `FIELDS`, from which
`moldau.wire.codec` makes the functions that read and write it.
"""

from __future__ import annotations

from typing import Any, ClassVar

# Stands for "a fresh empty list or default struct" in the signatures of generated classes, where
# None may be a value of its own.
UNSET: Any = type("Unset", (), {"__slots__": (), "__repr__": lambda self: "UNSET"})()

# name, type, first version, last version, nullable versions or None, (tag, first, last) or None,
# default, ignorable. The default of arrays, structs and uuids is () or, where null, None.
FieldSpec = tuple[
    str, str, int, int, tuple[int, int] | None, tuple[int, int, int] | None, Any, bool
]

# In a FieldSpec: no upper limit. Also the FLEXIBLE_FROM of a message that never is.
OPEN_END = 32767


class Message:
    """A request, response, record, or a part of one."""

    __slots__ = ("unknown_tagged_fields",)

    FIELDS: ClassVar[tuple[FieldSpec, ...]]

    # Of whole messages only; a nested struct has its message's versions.
    KIND: ClassVar[str]
    TYPE: ClassVar[int | None]
    LOWEST_VERSION: ClassVar[int]
    HIGHEST_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]

    unknown_tagged_fields: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        for field in self.FIELDS:
            if getattr(self, field[0]) != getattr(other, field[0]):
                return False
        return (self.unknown_tagged_fields or None) == (other.unknown_tagged_fields or None)

    # Messages are mutable.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [f"{field[0]}={getattr(self, field[0])!r}" for field in self.FIELDS]
        if self.unknown_tagged_fields:
            parts.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__qualname__}({', '.join(parts)})"
