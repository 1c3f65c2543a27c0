"""Section: the settings of one component, as fields named after keys of a table.

A section declares its fields and their types, nothing else. The key table has the names, defaults
and validators, so that each of these is written down once. A field's name is its key with
underscores instead of dots, without the section's prefix:

    class RaftLogConfig(Section, keys=BROKER_KEYS, prefix="metadata."):
        log_segment_bytes: int  # metadata.log.segment.bytes
        note: str = "no key"  # the default of a field that is no key stands here

Invariants: a section has a value for each of its fields and never changes. `of` takes values that
have been parsed and checked by the table; what is passed to the constructor is not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

from moldau.config.definition import ConfigDef

__all__ = ["Section", "Values"]

S = TypeVar("S", bound="Section")


class Values(Protocol):
    """Parsed values by key, such as a `BrokerConfig`."""

    def __getitem__(self, key: str, /) -> Any: ...
    def get(self, key: str, /) -> Any: ...


class Section:
    """Base of all sections: frozen, compared by value, filled by keyword.

    Not a dataclass: those compile several methods for each class at every start, which alone takes
    longer than reading a whole configuration.
    """

    # The hash is asked for by caches, once for every partition, and never changes.
    __slots__ = ("__dict__", "_hash")
    _hash: int

    #: The key of each field, except for those that are no key.
    KEYS: ClassVar[dict[str, str]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}
    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, keys: ConfigDef, prefix: str = "") -> None:
        own = cls.__annotations__
        cls._names = tuple(own)
        cls.KEYS, cls._defaults = {}, {}
        for name in own:
            if name in cls.__dict__:
                cls._defaults[name] = cls.__dict__[name]
                continue
            key = keys.get(prefix + name.replace("_", "."))
            if key is not None:
                cls.KEYS[name] = key.name
                if not key.required:
                    cls._defaults[name] = key.default

    def __init__(self, **fields: Any) -> None:
        """A field that is left out has its key's default."""
        values = {**self._defaults, **fields}
        wrong = values.keys() ^ self._names
        if wrong:
            raise TypeError(f"{type(self).__name__}: missing or unknown fields {sorted(wrong)}")
        self.__dict__.update(values)

    @classmethod
    def of(cls: type[S], values: Values, **derived: Any) -> S:
        """The section of these values; `derived` has the fields that are not the plain value."""
        return cls.read(values.__getitem__, **derived)

    @classmethod
    def read(cls: type[S], get: Callable[[str], Any], **derived: Any) -> S:
        """As `of`; `get` returns the value of a key."""
        fields = {name: get(key) for name, key in cls.KEYS.items() if name not in derived}
        return cls(**fields, **derived)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Only for sections of hashable values."""
        try:
            return self._hash
        except AttributeError:
            found = hash(tuple(map(self.__dict__.__getitem__, self._names)))
            object.__setattr__(self, "_hash", found)
            return found

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def replace(self: S, **changes: Any) -> S:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
