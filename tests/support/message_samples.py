"""Makes messages with arbitrary values, for any class and version, from a source of randomness."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from moldau.wire import messages
from moldau.wire.message import FieldSpec, Message
from moldau.wire.uuids import ZERO_UUID

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
TEXTS = ("", "a", "orders-7", "Größe", "日本語", "x" * 126, "y" * 127, "z" * 300)
BLOBS = (b"", b"\0", b"\xff" * 9, bytes(range(126)), bytes(127), b"r" * 20_000)


def all_versions() -> Iterator[tuple[type[Message], int]]:
    """Every message class with each of its versions."""
    for name in messages.MODULES:
        cls = getattr(messages, name)
        for version in range(cls.LOWEST_VERSION, cls.HIGHEST_VERSION + 1):
            yield cls, version


# May choose a value for the named field of the named type, or leave it by returning None.
Chooser = Callable[[random.Random, str, str], Any]


class Samples:
    """Draws messages; fields that a version lacks keep their defaults."""

    def __init__(
        self,
        source: random.Random,
        *,
        unknown_tags: bool = True,
        choose: Chooser | None = None,
    ) -> None:
        self._random = source
        self._unknown_tags = unknown_tags
        self._choose = choose
        # Bounds what nested arrays can multiply to.
        self._elements_left = 40

    def message(self, cls: type[Message], version: int) -> Message:
        return self._struct(cls, cls, version)

    def _struct(self, owner: type[Message], cls: type[Message], version: int) -> Message:
        message = cls()
        for row in cls.FIELDS:
            # A tagged field of default value is not written at all.
            keeps_default = row[5] is not None and self._random.random() < 0.5
            if row[2] <= version <= row[3] and not keeps_default:
                setattr(message, row[0], self._value(owner, row, version))
        flexible = version >= owner.FLEXIBLE_FROM
        if flexible and self._unknown_tags and self._random.random() < 0.1:
            tag = self._random.choice((50, 127, 128, 40_000))
            message.unknown_tagged_fields = {tag: self._random.choice(BLOBS[:5])}
        return message

    def _value(self, owner: type[Message], row: FieldSpec, version: int) -> Any:
        name, kind, nullable = row[0], row[1], row[4]
        if nullable and nullable[0] <= version <= nullable[1] and self._random.random() < 0.2:
            return None
        if not kind.startswith("[]"):
            return self._single(owner, name, kind, version)
        count = self._random.choice((0, 1, 1, 2, 3))
        if kind[2:] in RANGES and self._random.random() < 0.1:
            count = self._random.choice((126, 127, 128))
        elif self._elements_left < count:
            count = 0
        else:
            self._elements_left -= count
        return [self._single(owner, name, kind[2:], version) for _ in range(count)]

    def _single(self, owner: type[Message], name: str, kind: str, version: int) -> Any:
        source = self._random
        chosen = self._choose(source, name, kind) if self._choose else None
        if chosen is not None:
            return chosen
        if kind in RANGES:
            low, high = RANGES[kind]
            return source.choice((0, 1, low, high, source.randint(low, high)))
        match kind:
            case "bool":
                return source.random() < 0.5
            case "float64":
                return source.choice((0.0, -1.5, 1e300, source.random()))
            case "uuid":
                return source.choice((ZERO_UUID, UUID(int=source.getrandbits(128))))
            case "string" | "inflexible-string":
                return source.choice(TEXTS)
            case "bytes" | "records":
                return source.choice(BLOBS)
            case _:
                return self._struct(owner, getattr(owner, kind), version)
