"""JsonStream: objects out of concatenated JSON that arrives in pieces.

`{"a":1}{"a":2}` in any pieces, with any white space between, or one array of objects. Each byte is
looked at once; an object that is not complete is kept, up to a limit.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["InvalidStream", "JsonStream"]

_STRUCTURE: Final = re.compile(rb'["{}\[\]]')
_IN_TEXT: Final = re.compile(rb'["\\]')
_SPACE: Final = b" \t\r\n"
_OPEN: Final = b"{["


class InvalidStream(ValueError):
    """What arrives is not a sequence of objects."""


class JsonStream:
    """Feed it with bytes; it returns the bytes of whole objects."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._at = 0
        self._depth = 0
        self._in_text = False
        self._in_array = False
        self._begins = -1

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left that has begun."""
        return self._depth == 0 and not self._in_array and self._rest_is_space()

    def feed(self, data: bytes) -> list[bytes]:
        """The objects that are complete now; raises InvalidStream."""
        self._kept += data
        found: list[bytes] = []
        while self._at < len(self._kept):
            if self._depth == 0 and not self._skip():
                break
            if not self._in_text:
                self._through_structure(found)
            elif not self._through_text():
                break
        self._drop()
        return found

    def _skip(self) -> bool:
        """Up to the beginning of the next object; False if it has not arrived."""
        kept = self._kept
        separators = _SPACE + b"," if self._in_array else _SPACE
        while self._at < len(kept):
            byte = kept[self._at]
            if byte in separators:
                self._at += 1
            elif byte == ord("{"):
                self._begins = self._at
                self._depth = 1
                self._at += 1
                return True
            elif byte == ord("[") and not self._in_array:
                self._in_array = True
                self._at += 1
            elif byte == ord("]") and self._in_array:
                self._in_array = False
                self._at += 1
            else:
                raise InvalidStream(f"an object is expected, not {chr(byte)!r}")
        return False

    def _through_text(self) -> bool:
        """False if a character is escaped that has not arrived."""
        match = _IN_TEXT.search(self._kept, self._at)
        if match is None:
            self._at = len(self._kept)
        elif match[0] == b'"':
            self._in_text = False
            self._at = match.end()
        elif match.end() < len(self._kept):
            self._at = match.end() + 1
        else:
            # Look at the backslash again with the next piece.
            self._at = match.start()
            return False
        return True

    def _through_structure(self, found: list[bytes]) -> None:
        match = _STRUCTURE.search(self._kept, self._at)
        if match is None:
            self._at = len(self._kept)
            return
        self._at = match.end()
        if match[0] == b'"':
            self._in_text = True
        elif match[0] in _OPEN:
            self._depth += 1
        else:
            self._depth -= 1
            if self._depth == 0:
                found.append(bytes(self._kept[self._begins : self._at]))
                self._begins = -1

    def _drop(self) -> None:
        """Forget what was returned."""
        keep_from = self._begins if self._begins >= 0 else self._at
        del self._kept[:keep_from]
        self._at -= keep_from
        if self._begins >= 0:
            self._begins = 0
        if len(self._kept) > self._bytes_max:
            raise InvalidStream(f"one object has more than {self._bytes_max} bytes")

    def _rest_is_space(self) -> bool:
        return not bytes(self._kept[self._at :]).strip(_SPACE)
