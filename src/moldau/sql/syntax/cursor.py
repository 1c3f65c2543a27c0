"""A place in the tokens, and errors that say what was expected there."""

from __future__ import annotations

from typing import NoReturn

from moldau.config.suggestions import closest_name
from moldau.sql.errors import ParsingException
from moldau.sql.syntax.expressions import Position
from moldau.sql.syntax.lexer import EOF, KEYWORDS, NOT_RESERVED, RESERVED, Text, Token

_COMMANDS = """
    SELECT CREATE INSERT DESCRIBE PRINT EXPLAIN SHOW LIST TERMINATE PAUSE RESUME DROP SET DEFINE
    UNDEFINE UNSET ASSERT ALTER
"""
COMMANDS = _COMMANDS.split()
_IDENTIFIER_KINDS = frozenset(
    {
        "IDENTIFIER",
        "QUOTED_IDENTIFIER",
        "BACKQUOTED_IDENTIFIER",
        "DIGIT_IDENTIFIER",
        "VARIABLE",
        "'STRING'",
    }
    | (NOT_RESERVED - {"STRING"})
)
#: After these a missing token before them is the likely mistake.
_AFTER = frozenset({",", ")", "]", ";", EOF})


def nearest(word: str, choices: list[str]) -> str:
    """The choice with the smallest edit distance."""
    return min(choices, key=lambda each: _distance(each, word))


def _distance(one: str, two: str) -> int:
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(two, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def _shown(kinds: tuple[str, ...]) -> str:
    names = [
        each if each.isupper() and "_" in each else f"'{each.strip(chr(39))}'" for each in kinds
    ]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


class Cursor:
    """Reads tokens one after another."""

    def __init__(self, text: Text, tokens: list[Token], index: int = 0) -> None:
        self.text = text
        self._tokens = tokens
        self.index = index

    @property
    def token(self) -> Token:
        return self._tokens[self.index]

    @property
    def kind(self) -> str:
        return self._tokens[self.index].kind

    def ahead(self, count: int = 1) -> str:
        """The kind of a later token."""
        at = min(self.index + count, len(self._tokens) - 1)
        return self._tokens[at].kind

    @property
    def position(self) -> Position:
        return self.text.position(self.token.start)

    def next(self) -> Token:
        token = self._tokens[self.index]
        if token.kind != EOF:
            self.index += 1
        return token

    def accept(self, *kinds: str) -> bool:
        """Take these tokens if all of them come next."""
        for offset, kind in enumerate(kinds):
            if self.ahead(offset) != kind:
                return False
        self.index += len(kinds)
        return True

    def at_word(self, word: str, *after: str) -> bool:
        """Whether a word stands here that is no keyword, with one of these after it."""
        token = self.token
        is_word = token.kind == "IDENTIFIER" and token.text.upper() == word
        return is_word and (not after or self.ahead() in after)

    def accept_word(self, word: str) -> bool:
        """Take such a word if it comes next."""
        found = self.at_word(word)
        self.index += found
        return found

    def expect(self, *kinds: str) -> Token:
        """Take one token of these kinds."""
        if self.kind not in kinds:
            self._fail(kinds)
        return self.next()

    def expect_all(self, *kinds: str) -> None:
        for kind in kinds:
            self.expect(kind)

    def at_identifier(self) -> bool:
        return self.kind in _IDENTIFIER_KINDS

    def identifier_token(self) -> Token:
        if self.kind not in _IDENTIFIER_KINDS:
            token = self.token
            if token.kind in RESERVED and self.ahead() in _IDENTIFIER_KINDS:
                self.error(_reserved(token.text))
            self.no_viable()
        return self.next()

    def identifier(self, *, keep_case: bool = False) -> str:
        """A name: in capitals unless it is quoted."""
        return name_of(self.identifier_token(), keep_case=keep_case)

    def matching(self) -> int:
        """How many tokens ahead the bracket that opens here is closed; 0 if it is not."""
        depth = 0
        for offset in range(len(self._tokens) - self.index):
            kind = self.ahead(offset)
            if kind in ("(", "["):
                depth += 1
            elif kind in (")", "]"):
                depth -= 1
                if depth == 0:
                    return offset
        return 0

    def _fail(self, kinds: tuple[str, ...]) -> NoReturn:
        token, after = self.token, self.ahead()
        if after in kinds and token.kind != EOF:
            if token.kind in RESERVED:
                self.error(_reserved(token.text))
            self.error(_expecting(kinds) + self._meant(kinds))
        if len(kinds) == 1 and token.kind in _AFTER and token.kind != EOF:
            self.error(f"missing {_shown(kinds)} at '{token.text}'")
        self.error(_expecting(kinds) + self._meant(kinds))

    def _meant(self, kinds: tuple[str, ...] = ()) -> str:
        """The keyword that a name here, or the one before it, is a misspelling of."""
        words = [each for each in kinds if each.isalpha()] or sorted(KEYWORDS)
        if kinds and words[0] not in kinds and ";" not in kinds:
            return ""
        choices = ((self.index, words), (self.index - 1, sorted(KEYWORDS)))
        for index, candidates in choices:
            token = self._tokens[max(index, 0)]
            if token.kind == "IDENTIFIER" and len(token.text) > 2:
                guess = closest_name(token.text.upper(), candidates)
                if guess is not None:
                    return f"\nDid you mean '{guess}' instead of '{token.text}'?"
        return ""

    def no_viable(self, *words: str) -> NoReturn:
        """Nothing that may stand here starts with this token; `words` are what may."""
        at = self.position
        self.error(
            f"Syntax error at or near '{self.token.text}' at line {at.line}:{at.column}"
            f"{self._meant(words)}"
        )

    def unknown_statement(self) -> NoReturn:
        word = self.token.text
        self.error(f"Unknown statement '{word}'\nDid you mean '{nearest(word.upper(), COMMANDS)}'?")

    def error(self, message: str) -> NoReturn:
        at = self.position
        raise ParsingException(f"Syntax Error\n{message}", at.line, at.column)


def _reserved(word: str) -> str:
    return (
        f'"{word}" is a reserved keyword and it can\'t be used as an identifier. '
        f"You can use it as an identifier by escaping it as '{word}' "
    )


def _expecting(kinds: tuple[str, ...]) -> str:
    if EOF in kinds:
        return "Syntax error at or near \";\"\n'}', ']', or ')' is missing"
    return f"Expecting {_shown(kinds)}"


def unquote(text: str) -> str:
    """The inside of a quoted text, with doubled quotes made single."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def name_of(token: Token, *, keep_case: bool = False) -> str:
    """The name that an identifier stands for."""
    if token.kind in ("QUOTED_IDENTIFIER", "BACKQUOTED_IDENTIFIER"):
        return unquote(token.text)
    return token.text if keep_case else token.text.upper()


def needs_quotes(name: str) -> bool:
    """Whether a name must be quoted to be read back as it is."""
    upper = name.upper()
    plain = name.replace("@", "_").isidentifier() and name.isascii() and name == upper
    return not plain or (upper in KEYWORDS and upper in RESERVED)
