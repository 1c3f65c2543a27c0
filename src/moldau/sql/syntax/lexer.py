"""Text to tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from moldau.sql.syntax.expressions import Position

_WORD = r"[A-Za-z_][A-Za-z0-9_@]*"
_PATTERN = re.compile(
    rf"""
      (?P<SPACE>[ \r\n\t]+|--[^\r\n]*|/\*.*?\*/)
    | (?P<IDENTIFIER>{_WORD})
    | (?P<STRING>'(?:[^']|'')*')
    | (?P<FLOATING_POINT_VALUE>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+(?![A-Za-z0-9_@]))
    | (?P<DECIMAL_VALUE>[0-9]+\.[0-9]*|\.[0-9]+)
    | (?P<DIGIT_IDENTIFIER>[0-9]+[A-Za-z_@][A-Za-z0-9_@]*)
    | (?P<INTEGER_VALUE>[0-9]+)
    | (?P<QUOTED_IDENTIFIER>"(?:[^"]|"")*")
    | (?P<BACKQUOTED_IDENTIFIER>`(?:[^`]|``)*`)
    | (?P<VARIABLE>\$\{{{_WORD}\}})
    | (?P<SYMBOL><>|!=|<=|>=|=>|\|\||:=|->|[=<>+\-*/%;(),.\[\]])
    | (?P<UNRECOGNIZED>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_KEYWORDS = """
    EMIT CHANGES FINAL SELECT FROM AS ALL DISTINCT WHERE WITHIN WINDOW GROUP BY HAVING LIMIT AT OR
    AND IN NOT EXISTS BETWEEN LIKE ESCAPE IS NULL TRUE FALSE INTEGER DATE TIME TIMESTAMP INTERVAL
    YEAR MONTH DAY HOUR MINUTE SECOND MILLISECOND YEARS MONTHS DAYS HOURS MINUTES SECONDS
    MILLISECONDS ZONE TUMBLING HOPPING SIZE ADVANCE RETENTION GRACE PERIOD CASE WHEN THEN ELSE END
    JOIN FULL OUTER INNER LEFT RIGHT ON PARTITION STRUCT WITH VALUES CREATE TABLE TOPIC STREAM
    STREAMS INSERT DELETE INTO DESCRIBE EXTENDED PRINT EXPLAIN ANALYZE TYPE TYPES CAST SHOW LIST
    TABLES TOPICS QUERY QUERIES TERMINATE PAUSE RESUME LOAD COLUMNS COLUMN PARTITIONS FUNCTIONS
    FUNCTION DROP TO RENAME ARRAY MAP SET DEFINE UNDEFINE RESET SESSION SAMPLE EXPORT CATALOG
    PROPERTIES BEGINNING UNSET RUN SCRIPT DECIMAL KEY CONNECTOR CONNECTORS SINK SOURCE NAMESPACE
    MATERIALIZED VIEW PRIMARY REPLACE ASSERT ADD ALTER VARIABLES PLUGINS HEADERS HEADER SYSTEM
    TIMEOUT SCHEMA SUBJECT ID IF STRING
"""
_NOT_RESERVED = """
    SHOW TABLES COLUMNS COLUMN PARTITIONS FUNCTIONS FUNCTION SESSION STRUCT MAP ARRAY PARTITION
    INTEGER DATE TIME TIMESTAMP INTERVAL ZONE STRING YEAR MONTH DAY HOUR MINUTE SECOND EXPLAIN
    ANALYZE TYPE TYPES SET RESET IF SOURCE SINK PRIMARY KEY EMIT CHANGES FINAL ESCAPE REPLACE
    ASSERT ALTER ADD HEADER HEADERS GRACE PERIOD DEFINE UNDEFINE VARIABLES PLUGINS SYSTEM TIMEOUT
    SCHEMA SUBJECT ID
"""
KEYWORDS = frozenset(_KEYWORDS.split())
NOT_RESERVED = frozenset(_NOT_RESERVED.split())
RESERVED = KEYWORDS - NOT_RESERVED

EOF = "<EOF>"


class Token(NamedTuple):
    """`kind` is a keyword or a symbol itself, or the name of a class of tokens."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Text:
    """The text of a script with its lines."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        """The line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """A line's text."""
        return self.text.split("\n")[number - 1].rstrip("\r")


def tokens(text: str) -> list[Token]:
    """All tokens but space and comments; the last is EOF."""
    found = []
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "SPACE":
            continue
        piece = match.group()
        if kind == "IDENTIFIER":
            upper = piece.upper()
            if upper in KEYWORDS:
                kind = upper if upper != "STRING" else "'STRING'"
        elif kind == "SYMBOL":
            kind = "<>" if piece == "!=" else piece
        found.append(Token(kind, piece, match.start()))
    found.append(Token(EOF, EOF, len(text)))
    return found
