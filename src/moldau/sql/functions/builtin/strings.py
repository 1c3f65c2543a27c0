"""Texts, and bytes where a function takes both."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from moldau.sql.functions.declarations import overload, scalar
from moldau.sql.functions.errors import FunctionError

_CODE_POINT_MAX = 0x10FFFF
_PAD_MAX = 100_000_000
_UNICODE_ESCAPE = re.compile(r"\\u+([0-9A-Fa-f]{4})")
_JAVA_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _chr(code: int) -> str | None:
    return chr(code) if 0 <= code <= _CODE_POINT_MAX else None


def _chr_text(text: str) -> str | None:
    if len(text) < 6 or not text.startswith("\\u"):
        return None
    unescaped = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    unescaped = re.sub(
        r"\\(.)", lambda found: _JAVA_ESCAPES.get(found[1], found[1]), unescaped, flags=re.DOTALL
    )
    # Two escapes may be the halves of one character.
    return unescaped.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _concat(*values: str | None) -> str:
    return "".join([each for each in values if each is not None])


def _concat_bytes(*values: bytes | None) -> bytes:
    return b"".join([each for each in values if each is not None])


def _concat_ws(*values: Any) -> Any:
    if len(values) < 2:
        raise FunctionError("Function Concat_WS expects at least two input arguments.")
    separator = values[0]
    if separator is None:
        return None
    return separator.join([each for each in values[1:] if each is not None])


def _elt(number: int | None, *values: str | None) -> str | None:
    if number is None or not 1 <= number <= len(values):
        return None
    return values[number - 1]


def _field(text: str | None, *values: str | None) -> int:
    if text is None or text not in values:
        return 0
    return values.index(text) + 1


def _initcap(text: str) -> str:
    parts = re.findall(r"[^ \t\n\x0b\f\r]+[ \t\n\x0b\f\r]*", text.lower())
    return "".join([part[0].upper() + part[1:] for part in parts])


def _instr(
    text: str | None, wanted: str | None, position: int | None = 1, occurrence: int | None = 1
) -> int:
    if text is None or wanted is None:
        return 0
    if position is None or occurrence is None:
        raise FunctionError("INSTR needs a position and an occurrence")
    if abs(position) > len(text):
        return 0
    if position < 0:
        found = _find(text[::-1], wanted[::-1], -position, occurrence)
        return 0 if found < 0 else len(text) + position - found - len(wanted) + 2
    found = _find(text, wanted, position, occurrence)
    return 0 if found < 0 else found + position


def _find(text: str, wanted: str, position: int, occurrence: int) -> int:
    """Where, counted from `position`, the wanted text occurs for the nth time; -1 if never."""
    # Java's substring(-1) counts from the end; position 0 begins there.
    rest = text[position - 1 :] if position > 0 else text[-1:]
    if occurrence <= 0:
        return -1
    if not wanted:
        return 0
    found = -1
    for _ in range(occurrence):
        found = rest.find(wanted, found + 1)
        if found < 0:
            return -1
    return found


def _length(text: str) -> int:
    # In Java's characters: those beyond 16 bits count twice.
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _padding(value: Any, size: int, padding: Any) -> Any:
    if size > _PAD_MAX:
        raise FunctionError(f"cannot pad to more than {_PAD_MAX}")
    missing = max(size - len(value), 0)
    return (padding * (missing // len(padding) + 1))[:missing]


def _lpad(value: Any, size: int, padding: Any) -> Any:
    if not padding or size < 0:
        return None
    return (_padding(value, size, padding) + value)[:size]


def _rpad(value: Any, size: int, padding: Any) -> Any:
    if not padding or size < 0:
        return None
    return (value + _padding(value, size, padding))[:size]


def _split(text: str, delimiter: str) -> list[str]:
    if not delimiter:
        return list(text) or [""]
    return text.split(delimiter)


def _split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    if not value:
        return [value]
    if not delimiter:
        return [value[index : index + 1] for index in range(len(value))]
    return value.split(delimiter)


def _split_to_map(text: str, entries: str, pairs: str) -> dict[str, str] | None:
    if not entries or not pairs or entries == pairs:
        return None
    found: dict[str, str] = {}
    for entry in text.split(entries):
        if entry and pairs in entry:
            parts = entry.split(pairs)
            found[parts[0]] = parts[1]
    return found


def _substring(value: Any, position: int, length: int | None = None) -> Any:
    size = len(value)
    start = max(size + position, 0) if position < 0 else max(min(position - 1, size), 0)
    end = size if length is None else max(min(start + length, size), start)
    return value[start:end]


def _trim(text: str) -> str:
    # Java's trim takes away everything up to the space, control characters included.
    start, end = 0, len(text)
    while start < end and text[start] <= " ":
        start += 1
    while end > start and text[end - 1] <= " ":
        end -= 1
    return text[start:end]


_KIND = "STRING"

FUNCTIONS = [
    scalar(
        "Chr",
        _KIND,
        "The character with a code point, given as a number or as \\uXXXX.",
        "CHR(75) -> 'K'",
        overload("(INT decimalCode) -> STRING", _chr),
        overload("(STRING utf16Code) -> STRING", _chr_text),
    ),
    scalar(
        "concat",
        _KIND,
        "Texts or bytes one after the other; NULLs are left out.",
        "CONCAT('a', 'b') -> 'ab'",
        overload("(STRING... inputs) -> STRING", _concat, nulls=True),
        overload("(BYTES... inputs) -> BYTES", _concat_bytes, nulls=True),
    ),
    scalar(
        "concat_ws",
        _KIND,
        "Texts or bytes one after the other, with the first argument between them.",
        "CONCAT_WS('-', 'a', 'b') -> 'a-b'",
        overload("(STRING... inputs) -> STRING", _concat_ws, nulls=True),
        overload("(BYTES... inputs) -> BYTES", _concat_ws, nulls=True),
    ),
    scalar(
        "elt",
        _KIND,
        "The nth of the texts after the first argument.",
        "ELT(2, 'a', 'b') -> 'b'",
        overload("(INT n, STRING... args) -> STRING", _elt, nulls=True),
    ),
    scalar(
        "field",
        _KIND,
        "At which position among the following texts the first one stands; 0 if it does not.",
        "FIELD('b', 'a', 'b') -> 2",
        overload("(STRING str, STRING... args) -> INT", _field, nulls=True),
    ),
    scalar(
        "initcap",
        _KIND,
        "A text with each word beginning with a capital and all else in small letters.",
        "INITCAP('hello WORLD') -> 'Hello World'",
        overload("(STRING str) -> STRING", _initcap),
    ),
    scalar(
        "instr",
        _KIND,
        "Where a text occurs in another, counted from 1; from the end with a negative position.",
        "INSTR('abcb', 'b', 1, 2) -> 4",
        overload("(STRING str, STRING substring) -> INT", _instr, nulls=True),
        overload("(STRING str, STRING substring, INT position) -> INT", _instr, nulls=True),
        overload(
            "(STRING str, STRING substring, INT position, INT occurrence) -> INT",
            _instr,
            nulls=True,
        ),
    ),
    scalar(
        "lcase",
        _KIND,
        "A text in small letters.",
        "LCASE('Ab') -> 'ab'",
        overload("(STRING input) -> STRING", str.lower),
    ),
    scalar(
        "LPad",
        _KIND,
        "Text or bytes of an exact length: filled up at the left, or cut at the right.",
        "LPAD('7', 3, '0') -> '007'",
        overload("(STRING input, INT targetLen, STRING padding) -> STRING", _lpad),
        overload("(BYTES input, INT targetLen, BYTES padding) -> BYTES", _lpad),
    ),
    scalar(
        "len",
        _KIND,
        "The number of characters of a text, or of bytes.",
        "LEN('abc') -> 3",
        overload("(STRING input) -> INT", _length),
        overload("(BYTES input) -> INT", len),
    ),
    scalar(
        "md5",
        _KIND,
        "The MD5 hash of a text in UTF-8, in hexadecimal digits.",
        "MD5('a')",
        overload(
            "(STRING s) -> STRING",
            lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        ),
    ),
    scalar(
        "RPad",
        _KIND,
        "Text or bytes of an exact length: filled up or cut at the right.",
        "RPAD('7', 3, '0') -> '700'",
        overload("(STRING input, INT targetLen, STRING padding) -> STRING", _rpad),
        overload("(BYTES input, INT targetLen, BYTES padding) -> BYTES", _rpad),
    ),
    scalar(
        "replace",
        _KIND,
        "A text with every occurrence of another replaced.",
        "REPLACE('abab', 'b', 'c') -> 'acac'",
        overload("(STRING str, STRING oldStr, STRING newStr) -> STRING", str.replace),
    ),
    scalar(
        "split",
        _KIND,
        "The parts of a text or of bytes between delimiters.",
        "SPLIT('a,b', ',') -> ['a', 'b']",
        overload("(STRING string, STRING delimiter) -> ARRAY<STRING>", _split),
        overload("(BYTES bytes, BYTES delimiter) -> ARRAY<BYTES>", _split_bytes),
    ),
    scalar(
        "split_to_map",
        _KIND,
        "The entries of a text, given what stands between entries and between key and value.",
        "SPLIT_TO_MAP('a=1,b=2', ',', '=')",
        overload(
            "(STRING input, STRING entryDelimiter, STRING kvDelimiter) -> MAP<STRING, STRING>",
            _split_to_map,
        ),
    ),
    scalar(
        "substring",
        _KIND,
        "A part of a text or of bytes, from a position counted from 1 (or back from the end).",
        "SUBSTRING('abcd', 2, 2) -> 'bc'",
        overload("(STRING str, INT pos) -> STRING", _substring),
        overload("(STRING str, INT pos, INT length) -> STRING", _substring),
        overload("(BYTES bytes, INT pos) -> BYTES", _substring),
        overload("(BYTES bytes, INT pos, INT length) -> BYTES", _substring),
    ),
    scalar(
        "trim",
        _KIND,
        "A text without the spaces around it.",
        "TRIM(' a ') -> 'a'",
        overload("(STRING input) -> STRING", _trim),
    ),
    scalar(
        "ucase",
        _KIND,
        "A text in capitals.",
        "UCASE('Ab') -> 'AB'",
        overload("(STRING input) -> STRING", str.upper),
    ),
]
