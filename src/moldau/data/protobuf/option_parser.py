"""Reads options: their names, and values of every form."""

from __future__ import annotations

from moldau.data.protobuf.lexer import Token, TokenKind, Tokens
from moldau.data.protobuf.model import Aggregate, Items, Option, Text, Value, Word, WordKind

#: Messages in messages, and values in values, are read to this depth.
DEPTH_MAX = 64


class OptionParser:
    """Reads options from the tokens at hand."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def is_next(self, symbol: str) -> bool:
        token = self._tokens.next
        return token.kind is TokenKind.SYMBOL and token.text == symbol

    def accept(self, symbol: str) -> bool:
        """Whether the symbol is next. If so it is taken."""
        if not self.is_next(symbol):
            return False
        self._tokens.take()
        return True

    def require(self, symbol: str) -> None:
        if not self.accept(symbol):
            raise self._tokens.error(f"expected '{symbol}' but was {self.shown()}")

    def shown(self) -> str:
        """The next token, for messages."""
        token = self._tokens.next
        return "the end of the text" if token.kind is TokenKind.END else f"'{token.text}'"

    def name(self, what: str = "a name") -> Token:
        if self._tokens.next.kind is not TokenKind.NAME:
            raise self._tokens.error(f"expected {what} but was {self.shown()}")
        return self._tokens.take()

    def dotted_name(self, what: str = "a name") -> str:
        """A name of several parts, maybe with a dot in front."""
        parts = [""] if self.accept(".") else []
        parts.append(self.name(what).text)
        while self.accept("."):
            parts.append(self.name(what).text)
        return ".".join(parts)

    def text(self, what: str) -> str:
        """A quoted string of UTF-8."""
        at = self._tokens.next.at
        data = self.data(what)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self._tokens.error(f"{what} is not UTF-8", at) from None

    def data(self, what: str) -> bytes:
        """Adjacent quoted strings, as one."""
        if self._tokens.next.kind is not TokenKind.STRING:
            raise self._tokens.error(f"expected {what} in quotes but was {self.shown()}")
        data = b""
        while self._tokens.next.kind is TokenKind.STRING:
            data += self._tokens.bytes_of(self._tokens.take())
        return data

    def statement(self) -> Option:
        """What follows the word `option`, to the semicolon."""
        option = self.option()
        self.require(";")
        return option

    def bracketed(self) -> tuple[Option, ...]:
        """`[a = 1, b = 2]` if it is there."""
        if not self.accept("["):
            return ()
        options = [self.option()]
        while self.accept(","):
            options.append(self.option())
        self.require("]")
        return tuple(options)

    def option(self) -> Option:
        at = self._tokens.next.at
        parts = [self._part()]
        while self.accept("."):
            if len(parts) == DEPTH_MAX:
                raise self._tokens.error(f"more than {DEPTH_MAX} parts in the name of an option")
            parts.append(self._part())
        # Plain names up to the first custom one are one name, `features.enum_type`.
        while len(parts) > 1 and not parts[0][1] and not parts[1][1]:
            parts[0:2] = [(f"{parts[0][0]}.{parts[1][0]}", False)]
        self.require("=")
        value: Value | Option = self.value()
        for name, custom in reversed(parts):
            value = Option(name, value, custom, at)
        if not isinstance(value, Option):
            raise self._tokens.error("expected the name of an option", at)
        return value

    def value(self, depth: int = 0) -> Value:
        if depth > DEPTH_MAX:
            raise self._tokens.error(f"values are nested more than {DEPTH_MAX} deep")
        token = self._tokens.next
        if token.kind is TokenKind.STRING:
            return Text(self.data("a value"))
        if token.kind is TokenKind.NAME:
            kind = WordKind.BOOLEAN if token.text in ("true", "false") else WordKind.ENUM
            return Word(kind, self._tokens.take().text)
        if token.kind in (TokenKind.INTEGER, TokenKind.FLOAT):
            return Word(WordKind.NUMBER, self._tokens.take().text)
        if self.accept("-"):
            if self._tokens.next.kind not in (
                TokenKind.INTEGER,
                TokenKind.FLOAT,
                TokenKind.NAME,
            ):
                raise self._tokens.error(f"expected a number but was {self.shown()}")
            return Word(WordKind.NUMBER, "-" + self._tokens.take().text)
        if self.is_next("{"):
            return self._aggregate("{", "}", depth)
        if self.is_next("[") and depth == 0:
            return self._items(depth)
        raise self._tokens.error(f"expected a value but was {self.shown()}")

    def _part(self) -> tuple[str, bool]:
        if not self.accept("("):
            return self.name("the name of an option").text, False
        name = self.dotted_name("the name of an option")
        self.require(")")
        return name, True

    def _aggregate(self, opening: str, closing: str, depth: int) -> Aggregate:
        self.require(opening)
        fields: dict[str, list[Value]] = {}
        while not self.accept(closing):
            name = self._aggregate_name()
            fields.setdefault(name, []).extend(self._aggregate_value(depth + 1))
            if not self.accept(","):
                self.accept(";")
        return Aggregate(
            tuple(
                (name, values[0] if len(values) == 1 else _flat(values))
                for name, values in fields.items()
            )
        )

    def _aggregate_name(self) -> str:
        if not self.accept("["):
            return self.name("the name of a field").text
        name = self.dotted_name("the name of an extension")
        if self.accept("/"):
            name += "/" + self.dotted_name("the name of a type")
        self.require("]")
        return f"[{name}]"

    def _aggregate_value(self, depth: int) -> list[Value]:
        if depth > DEPTH_MAX:
            raise self._tokens.error(f"values are nested more than {DEPTH_MAX} deep")
        colon = self.accept(":")
        if self.is_next("<"):
            return [self._aggregate("<", ">", depth)]
        if self.is_next("["):
            return [self._items(depth)]
        if not colon and not self.is_next("{"):
            raise self._tokens.error(f"expected ':' but was {self.shown()}")
        return [self.value(depth)]

    def _items(self, depth: int) -> Items:
        self.require("[")
        values: list[Value] = []
        while not self.accept("]"):
            if self.is_next("<"):
                values.append(self._aggregate("<", ">", depth + 1))
            else:
                values.append(self.value(depth + 1))
            if not self.accept(",") and not self.is_next("]"):
                raise self._tokens.error(f"expected ',' or ']' but was {self.shown()}")
        return Items(tuple(values))


def _flat(values: list[Value]) -> Items:
    """The values of a field that is named several times, as one list."""
    flat: list[Value] = []
    for value in values:
        flat.extend(value.values if isinstance(value, Items) else (value,))
    return Items(tuple(flat))
