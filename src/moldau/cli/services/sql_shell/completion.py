"""Which words may stand at the end of a text that is being typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from moldau.cli.services.sql_shell.splitting import CLIENT_COMMANDS
from moldau.sql.syntax.lexer import KEYWORDS, Token, tokens

__all__ = ["Catalogue", "complete"]

#: After these comes the name of a source.
_BEFORE_SOURCES: Final = frozenset({"FROM", "JOIN", "INTO", "DESCRIBE"})
_BEFORE_QUERIES: Final = frozenset({"TERMINATE", "PAUSE", "RESUME", "EXPLAIN"})
_WORD = re.compile(r"[\w`@]*\Z")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the server has: columns by source, and names."""

    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    functions: Sequence[str] = ()
    queries: Sequence[str] = ()
    topics: Sequence[str] = ()


def complete(text: str, known: Catalogue) -> tuple[list[str], int]:
    """The words that fit, and how many characters at the end of the text they replace."""
    found = _WORD.search(text)
    word = "" if found is None else found.group()
    before = text[: len(text) - len(word)]
    statement = _last_statement(tokens(before)[:-1])
    return _starting(_choices(statement, before, known), word), len(word)


def _last_statement(found: list[Token]) -> list[Token]:
    last = max((i for i, each in enumerate(found) if each.kind == ";"), default=-1)
    return found[last + 1 :]


def _starting(words: Iterable[str], typed: str) -> list[str]:
    wanted = typed.strip("`").upper()
    found = [each for each in dict.fromkeys(words) if each.upper().startswith(wanted)]
    # Who types small letters gets keywords in small letters.
    small = typed.islower()
    return [each.lower() if small and each in KEYWORDS else each for each in found]


def _choices(statement: list[Token], before: str, known: Catalogue) -> Iterable[str]:
    if not statement:
        return sorted({*_STARTS, *CLIENT_COMMANDS})
    last = statement[-1].kind
    if last == "." and len(statement) > 1:
        return known.sources.get(_source_of(statement[-2].text, statement, known), ())
    if last in _BEFORE_SOURCES or (
        last in ("STREAM", "TABLE") and any(each.kind in ("DROP", "ALTER") for each in statement)
    ):
        more = ("FUNCTION", "STREAMS", "TABLES", "CONNECTOR") if last == "DESCRIBE" else ()
        return [*sorted(known.sources), *more]
    if last in _BEFORE_QUERIES:
        return [*known.queries, "ALL", *(_STARTS if last == "EXPLAIN" else ())]
    if last == "PRINT":
        return [f"'{each}'" for each in known.topics]
    if last == "FUNCTION":
        return known.functions
    if last in ("SHOW", "LIST"):
        return _SHOWN
    if before.rstrip().endswith("'"):
        return ()
    columns = [
        column
        for name in _named(statement, known) or known.sources
        for column in known.sources.get(name, ())
    ]
    return [*columns, *_named(statement, known), *known.functions, *_MORE, *sorted(KEYWORDS)]


def _named(statement: list[Token], known: Catalogue) -> list[str]:
    """The sources that a statement names."""
    return [
        name
        for name in dict.fromkeys(each.text.strip("`").upper() for each in statement)
        if name in known.sources
    ]


def _source_of(alias: str, statement: list[Token], known: Catalogue) -> str:
    """What an alias stands for: FROM orders AS o."""
    wanted = alias.strip("`").upper()
    if wanted in known.sources:
        return wanted
    for index, each in enumerate(statement[1:], 1):
        if each.text.strip("`").upper() != wanted:
            continue
        at = index - 2 if statement[index - 1].kind == "AS" else index - 1
        name = statement[at].text.strip("`").upper()
        if at >= 0 and name in known.sources:
            return name
    return wanted


_STARTS: Final = (
    "SELECT", "CREATE", "INSERT", "DESCRIBE", "PRINT", "EXPLAIN", "SHOW", "LIST", "TERMINATE",
    "PAUSE", "RESUME", "DROP", "SET", "UNSET", "DEFINE", "UNDEFINE", "ASSERT", "ALTER",
)  # fmt: skip
#: Clauses whose words are not reserved.
_MORE: Final = ("ORDER BY", "OFFSET", "UNION ALL")
_SHOWN: Final = (
    "STREAMS", "TABLES", "TOPICS", "ALL TOPICS", "QUERIES", "FUNCTIONS", "PROPERTIES", "TYPES",
    "VARIABLES", "CONNECTORS", "CONNECTOR PLUGINS",
)  # fmt: skip
