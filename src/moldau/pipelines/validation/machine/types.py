"""Types and column lists as Spark's DDL has them: `id STRING NOT NULL, tags ARRAY<STRING>`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.pipelines.machine.sql_tokens import Token
from moldau.pipelines.validation.machine.cursor import Cursor
from moldau.pipelines.validation.machine.problems import (
    NotUnderstood,
    Problem,
    SyntaxProblem,
    near,
)

__all__ = [
    "Column",
    "Doubtful",
    "Type",
    "certain",
    "columns_of",
    "name_of",
    "take_type",
    "type_of",
    "with_prefix",
]


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its first word; of a struct with its fields."""

    kind: str
    fields: tuple[Column, ...] = ()
    #: Of an array its items, of a map its keys and values.
    parts: tuple[Type, ...] = ()


class Column(str):
    """The name of a column whose type may be known."""

    type: Type | None = None

    @classmethod
    def of(cls, name: str, kind: Type | None) -> Column:
        made = cls(name)
        made.type = kind
        return made


class Doubtful(str):
    """A column that may be there once a mistake, which is reported, has been corrected.

    What names it is not reported a second time, and no message offers it.
    """


def certain(columns: Iterable[str]) -> list[str]:
    return [name for name in columns if not isinstance(name, Doubtful)]


def with_prefix(prefix: str, column: str) -> str:
    name = f"{prefix}{column}"
    return Doubtful(name) if isinstance(column, Doubtful) else name


def type_of(column: str) -> Type | None:
    """None if it is not known."""
    return column.type if isinstance(column, Column) else None


_PLAIN = (
    "boolean",
    "tinyint",
    "byte",
    "smallint",
    "short",
    "int",
    "integer",
    "bigint",
    "long",
    "float",
    "real",
    "double",
    "date",
    "string",
    "binary",
    "void",
    "null",
    "variant",
)
_SIZED = (
    *("char", "character", "varchar", "decimal", "dec", "numeric"),
    *("time", "timestamp", "timestamp_ntz", "timestamp_ltz"),
)
_NESTED = ("array", "map", "struct")
_OTHER = ("interval", "geometry", "geography")
_KNOWN = (*_PLAIN, *_SIZED, *_NESTED, *_OTHER)
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_DECIMAL_DIGITS_MAX = 38


def name_of(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def columns_of(text: str) -> tuple[list[Column] | None, list[Problem]]:
    """The names of a schema's columns, and every mistake in it; None if they are not known.

    After a mistake the next column is read, so that all are found.
    """
    problems: list[Problem] = []
    try:
        cursor = Cursor(text)
    except SyntaxProblem as error:
        return None, [error.problem]
    if cursor.says("struct") and cursor.is_sign("<", 1):
        return None, _of_single_type(cursor)
    names: list[Column] = []
    try:
        while cursor.next.kind != "end":
            token, known = cursor.next, len(names)
            try:
                _take_column(cursor, names)
                if names[known] in names[:known]:
                    message = f"there is a column {str(names[known])!r} already"
                    problems.append(Problem.at(token, message))
                if cursor.next.kind != "end":
                    cursor.expect_sign(",")
                    if cursor.next.kind == "end":
                        cursor.fail_expecting("a column after ','")
            except SyntaxProblem as error:
                problems.append(error.problem)
                _skip_column(cursor)
    except NotUnderstood:
        return None, problems
    if not names and not problems:
        problems.append(Problem("there are no columns", 0, ""))
    return names, problems


def _of_single_type(cursor: Cursor) -> list[Problem]:
    try:
        take_type(cursor)
        if cursor.next.kind != "end":
            cursor.fail_expecting("the end of the schema")
    except SyntaxProblem as error:
        return [error.problem]
    except NotUnderstood:
        pass
    return []


def _skip_column(cursor: Cursor) -> None:
    """To behind the next comma that is outside of brackets."""
    depth = 0
    while cursor.next.kind != "end":
        sign = cursor.take().text
        depth += (sign in "(<") - (sign in ")>") if sign else 0
        if sign == "," and depth <= 0:
            return


def _take_column(cursor: Cursor, names: list[Column]) -> None:
    """The name counts also if its type is wrong: what uses the column is right."""
    token = cursor.next
    if token.kind not in ("word", "quoted"):
        cursor.fail_expecting("the name of a column")
    cursor.take()
    column = Column(name_of(token))
    names.append(column)
    cursor.skip_sign(":")
    if cursor.next.kind == "end" or cursor.is_sign(","):
        cursor.fail(f"column {token.text!r} has no type", token, "e.g. STRING")
    column.type = take_type(cursor)
    while cursor.next.kind == "word":
        if cursor.skip("not"):
            cursor.expect("null")
        elif cursor.skip("comment"):
            if cursor.take().kind != "text":
                cursor.fail("expected a text after COMMENT", cursor.ahead(-1))
        elif cursor.says_one_of(("default", "generated", "collate")):
            raise NotUnderstood(cursor.next.text)
        else:
            cursor.fail_expecting("',' or NOT NULL", ("NOT", "COMMENT"))


def take_type(cursor: Cursor) -> Type:
    token = cursor.take()
    kind = token.text.lower()
    if token.kind != "word":
        cursor.back_to(cursor.position - 1)
        cursor.fail_expecting("a type")
    if kind not in _KNOWN:
        meant = near(kind, _KNOWN)
        hint = f"did you mean {meant.upper()}?" if meant else None
        cursor.fail(f"unknown type {token.text!r}", token, hint)
    found = Type(kind)
    if kind in _NESTED:
        found = _take_nested(cursor, kind)
    elif kind in _SIZED:
        _take_size(cursor, kind, token)
    elif kind == "interval":
        while cursor.says_one_of((*_UNITS, "to")):
            cursor.take()
    elif kind in _OTHER:
        raise NotUnderstood(kind)
    if cursor.says("collate"):
        cursor.take()
        cursor.take()
    return found


def _take_nested(cursor: Cursor, kind: str) -> Type:
    cursor.expect_sign("<")
    fields: list[Column] = []
    parts: list[Type] = []
    if kind == "struct":
        while not cursor.is_sign(">"):
            _take_column(cursor, fields)
            if not cursor.skip_sign(","):
                break
    else:
        parts.append(take_type(cursor))
        if kind == "map":
            cursor.expect_sign(",")
            parts.append(take_type(cursor))
    cursor.expect_sign(">")
    return Type(kind, tuple(fields), tuple(parts))


def _take_size(cursor: Cursor, kind: str, token: Token) -> None:
    if not cursor.skip_sign("("):
        if kind in ("char", "character", "varchar"):
            cursor.fail(f"{token.text} needs a length", token, f"{kind.upper()}(20)")
        return
    numbers = []
    while True:
        number = cursor.take()
        if not number.text.isdecimal():
            cursor.fail(f"expected a number, found {number.text!r}", number)
        numbers.append(int(number.text))
        if not cursor.skip_sign(","):
            break
    cursor.expect_sign(")")
    if kind in ("decimal", "dec", "numeric"):
        digits, scale = numbers[0], (numbers[1] if len(numbers) > 1 else 0)
        if digits > _DECIMAL_DIGITS_MAX or scale > digits:
            cursor.fail(
                f"a decimal has at most {_DECIMAL_DIGITS_MAX} digits, and not more behind the "
                "point than in all",
                token,
            )
