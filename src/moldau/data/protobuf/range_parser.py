"""Reads numbers and ranges of numbers: `reserved`, `extensions`, and the numbers of fields."""

from __future__ import annotations

from moldau.data.protobuf.lexer import TokenKind, Tokens
from moldau.data.protobuf.model import (
    ENUM_NUMBER_MAX,
    FIELD_NUMBER_MAX,
    Extensions,
    Range,
    Reserved,
)
from moldau.data.protobuf.option_parser import OptionParser

#: Longer rows of digits are no numbers of 32 bits, and take long to convert.
_DIGITS_MAX = 40


class RangeParser:
    """Reads from the tokens at hand."""

    def __init__(self, tokens: Tokens, read: OptionParser) -> None:
        self._tokens = tokens
        self._read = read

    def reserved(self, *, in_enum: bool, bare_names: bool) -> Reserved:
        values: list[str | int | Range] = []
        while True:
            if self._tokens.next.kind is TokenKind.STRING:
                values.append(self._read.text("a name"))
            elif bare_names and self._tokens.next.kind is TokenKind.NAME:
                values.append(self._tokens.take().text)
            else:
                maximum = ENUM_NUMBER_MAX if in_enum else FIELD_NUMBER_MAX
                values.append(self._range(maximum, signed=in_enum))
            if not self._read.accept(","):
                self._read.require(";")
                return Reserved(tuple(values))

    def extensions(self) -> Extensions:
        values = [self._range(FIELD_NUMBER_MAX, signed=False)]
        while self._read.accept(","):
            values.append(self._range(FIELD_NUMBER_MAX, signed=False))
        options = self._read.bracketed()
        self._read.require(";")
        return Extensions(tuple(values), options)

    def _range(self, maximum: int, *, signed: bool) -> int | Range:
        start = self.number(signed=signed)
        if self._tokens.next.text != "to":
            return start
        self._tokens.take()
        if self._tokens.next.text == "max":
            self._tokens.take()
            return Range(start, maximum)
        return Range(start, self.number(signed=signed))

    def number(self, *, signed: bool = False) -> int:
        """An integer of 32 bits, in any base that the language has."""
        at = self._tokens.next.at
        sign = "-" if signed and self._read.accept("-") else ""
        if self._tokens.next.kind is not TokenKind.INTEGER:
            raise self._tokens.error(f"expected an integer but was {self._read.shown()}")
        text = self._tokens.take().text
        number = _integer(text) if len(text) <= _DIGITS_MAX else -1
        if not 0 <= number <= ENUM_NUMBER_MAX + bool(sign):
            raise self._tokens.error(f"expected an integer but was {sign}{text[:40]}", at)
        return -number if sign else number


def _integer(text: str) -> int:
    """A number in decimal, octal (a zero in front) or hexadecimal (0x); -1 if it is none."""
    try:
        if text[:2] in ("0x", "0X"):
            return int(text, 16)
        return int(text, 8 if len(text) > 1 and text[0] == "0" else 10)
    except ValueError:
        return -1
