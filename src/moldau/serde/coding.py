"""How values of one schema become bytes and back, in the steps between which rules run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Decode", "Decoding", "Encode", "Encoding"]

Encode = Callable[[Any], bytes]
#: Payload, and which message it is; None if that is in front of the payload.
Decode = Callable[[bytes, bytes | None], Any]


@dataclass(frozen=True, slots=True)
class Encoding:
    """`prepare` makes data of a value: dicts of objects. Rules see the data."""

    encode: Encode
    prepare: Callable[[Any], Any] | None = None
    #: Which message of the schema it writes.
    indexes: bytes = b""

    def whole(self) -> Encode:
        """Both steps, for a schema without rules."""
        encode, prepare = self.encode, self.prepare
        if prepare is None:
            return encode
        return lambda value: encode(prepare(value))


@dataclass(frozen=True, slots=True)
class Decoding:
    """`finish` makes a value of the data."""

    decode: Decode
    finish: Callable[[Any], Any] | None = None

    def whole(self) -> Decode:
        """Both steps, for a schema without rules."""
        decode, finish = self.decode, self.finish
        if finish is None:
            return decode
        return lambda payload, indexes: finish(decode(payload, indexes))
