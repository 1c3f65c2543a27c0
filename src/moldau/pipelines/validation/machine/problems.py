"""What can be wrong with a text, and where in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.pipelines.machine.sql_tokens import Token

__all__ = ["NotUnderstood", "Problem", "SyntaxProblem", "near"]


@dataclass(frozen=True, slots=True)
class Problem:
    """`word` is at `offset` in the text."""

    message: str
    offset: int
    word: str
    hint: str | None = None

    @classmethod
    def at(cls, token: Token, message: str, hint: str | None = None) -> Problem:
        return cls(message, token.start, token.text, hint)


class SyntaxProblem(Exception):
    """A text that Spark would refuse."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class NotUnderstood(Exception):
    """A text that uses more of the language than is known here: only Spark can check it."""


def near(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant."""
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None
