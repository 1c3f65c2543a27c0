"""Reading a text token by token."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipelines.machine.sql_tokens import Token, words_of
from moldau.pipelines.validation.machine.problems import Problem, SyntaxProblem, near

__all__ = ["Cursor", "word_set"]


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Cursor:
    """A place between two tokens of a text."""

    def __init__(self, text: str) -> None:
        self._tokens = words_of(text)
        self._end = Token("end", "", len(text.rstrip()), len(text), 0)
        self._at = 0
        #: The last name that was taken for an alias without AS: perhaps a misspelt keyword.
        self.alias: Token | None = None
        for token in self._tokens:
            if token.kind == "sign" and token.text in "'\"`":
                kind = "name" if token.text == "`" else "text"
                self.fail(f"this {kind} is not closed: {token.text} is missing", token)

    @property
    def next(self) -> Token:
        return self.ahead(0)

    @property
    def position(self) -> int:
        return self._at

    def back_to(self, position: int) -> None:
        self._at = position

    def ahead(self, count: int) -> Token:
        index = self._at + count
        return self._tokens[index] if index < len(self._tokens) else self._end

    def take(self) -> Token:
        token = self.next
        self._at += 1
        return token

    def says(self, *words: str) -> bool:
        """Whether the next words are these; they are not taken."""
        return all(self.ahead(index).says(word) for index, word in enumerate(words))

    def says_one_of(self, words: Iterable[str]) -> bool:
        return self.next.kind == "word" and self.next.text.lower() in words

    def skip(self, *words: str) -> bool:
        """Take these words if they are next."""
        if not self.says(*words):
            return False
        self._at += len(words)
        return True

    def is_sign(self, signs: str, ahead: int = 0) -> bool:
        """Whether the next tokens are these signs, one character each, without spaces between."""
        for index, sign in enumerate(signs):
            token = self.ahead(ahead + index)
            if token.kind != "sign" or token.text != sign:
                return False
            if index and token.start != self.ahead(ahead + index - 1).end:
                return False
        return True

    def skip_sign(self, signs: str) -> bool:
        if not self.is_sign(signs):
            return False
        self._at += len(signs)
        return True

    def expect_sign(self, sign: str) -> Token:
        token = self.next
        if not self.skip_sign(sign):
            self.fail_expecting(f"'{sign}'")
        return token

    def expect(self, word: str) -> Token:
        token = self.next
        if not self.skip(word):
            self.fail_expecting(word.upper())
        return token

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> None:
        raise SyntaxProblem(Problem.at(token or self.next, message, hint))

    def fail_expecting(self, what: str, keywords: Iterable[str] = ()) -> None:
        """What was expected; if a word just before may be a misspelt keyword, that word."""
        for token in (self.alias, self.next):
            if token is not None and token.kind == "word" and token.text.lower() not in keywords:
                meant = near(token.text, keywords, cutoff=0.7)
                if meant is not None and self._at - self._index(token) <= 1:
                    self.fail(f"unknown word {token.text!r}", token, f"did you mean {meant}?")
        token = self.next
        shown = "the end of the statement" if token.kind == "end" else repr(token.text)
        self.fail(f"expected {what}, found {shown}")

    def _index(self, token: Token) -> int:
        return next(
            (index for index, one in enumerate(self._tokens) if one.start == token.start), self._at
        )
