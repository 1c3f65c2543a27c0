"""Variables: `${name}` in a script, replaced before it is parsed.

A value never becomes more than one name or one literal, or a part of a text: what a client defines
cannot bring statements of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from moldau.sql.errors import ParseFailedException
from moldau.sql.syntax.lexer import EOF, Text, Token, tokens

#: `$${name}` stands for `${name}` itself.
_VARIABLE = re.compile(r"\$?\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")
_QUOTES = {"STRING": "'", "QUOTED_IDENTIFIER": '"', "BACKQUOTED_IDENTIFIER": "`"}
_WHOLE = re.compile(
    r"""
      '(?:[^']|'')*'                                             # a text
    | "(?:[^"]|"")*" | `(?:[^`]|``)*` | [A-Za-z_][A-Za-z0-9_@]*  # a name
    | [+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?  # a number
    """,
    re.VERBOSE,
)


def substitute(sql: str, variables: Mapping[str, str]) -> str:
    """The script with its variables replaced, those that it defines itself too.

    Names are the same in upper and lower case. What is not defined is left as it is.
    """
    if "${" not in sql:
        return sql
    known = {name.upper(): value for name, value in variables.items()}
    text, out, end = Text(sql), [], 0
    statement: list[Token] = []
    for token in tokens(sql):
        if token.kind == EOF:
            break
        replaced = _replaced(token, known, text)
        out += [sql[end : token.start], replaced]
        end = token.end
        statement.append(token._replace(text=replaced))
        if token.kind == ";":
            _define(statement, known)
            statement = []
    return "".join([*out, sql[end:]])


def _replaced(token: Token, known: Mapping[str, str], text: Text) -> str:
    if token.kind == "VARIABLE":
        value = known.get(token.text[2:-1].upper())
        if value is None:
            return token.text
        if not _WHOLE.fullmatch(value):
            place = text.position(token.start)
            raise ParseFailedException(
                f"Illegal argument at line: {place.line}, col: {place.column}. The value of a "
                f"variable must be a name, a number, a boolean or a text in quotes. Got: '{value}'",
                text.line(place.line),
            )
        return value
    quote = _QUOTES.get(token.kind)
    if quote is None or "${" not in token.text:
        return token.text

    def inside(found: re.Match[str]) -> str:
        if found[0].startswith("$$"):
            return found[0][1:]
        value = known.get(found[1].upper())
        return found[0] if value is None else value.replace(quote, quote * 2)

    return quote + _VARIABLE.sub(inside, token.text[1:-1]) + quote


def _define(statement: list[Token], known: dict[str, str]) -> None:
    """Note what DEFINE and UNDEFINE change for the statements behind them."""
    words = [each.text for each in statement]
    first = words[0].upper()
    if first == "DEFINE" and len(words) == 5 and words[2] == "=" and words[3].startswith("'"):
        known[words[1].upper()] = words[3][1:-1].replace("''", "'")
    elif first == "UNDEFINE" and len(words) == 3:
        known.pop(words[1].upper(), None)
