"""Reads the calls of functions in SQL, with all that may stand in and behind their brackets."""

from __future__ import annotations

from typing import Final, Protocol

from moldau.pipelines.machine.sql_tokens import Token
from moldau.pipelines.validation.machine.cursor import Cursor, word_set
from moldau.pipelines.validation.machine.problems import NotUnderstood
from moldau.pipelines.validation.machine.types import take_type

__all__ = ["CallParser"]

#: What may stand between a function's arguments instead of a comma: `extract(day FROM at)`.
_BETWEEN_ARGUMENTS: Final = {
    "extract": ("from",),
    "trim": ("from",),
    "substring": ("from", "for"),
    "substr": ("from", "for"),
    "overlay": ("placing", "from", "for"),
    "position": ("in",),
    "ceil": ("to",),
    "floor": ("to",),
}
#: Words that are arguments, not columns.
_UNITS_OF: Final = word_set(
    "timestampadd timestampdiff dateadd datediff date_add date_diff extract"
)


class Outer(Protocol):
    """Takes the expressions that are arguments."""

    def note_function(self, name: Token) -> None: ...
    def take_query(self) -> None: ...
    def take_whole(self) -> None: ...
    def take_operand(self) -> None: ...
    def take_ordered(self) -> None: ...


class CallParser:
    """Takes calls from the cursor that it shares with the parser of expressions around it."""

    def __init__(self, cursor: Cursor, outer: Outer) -> None:
        self._cursor = cursor
        self._outer = outer

    def call(self, parts: list[Token]) -> None:
        cursor = self._cursor
        name = parts[-1].text.lower()
        cursor.take()
        if len(parts) == 1:
            self._outer.note_function(parts[0])
        if name in ("cast", "try_cast"):
            self._outer.take_whole()
            cursor.expect("as")
            take_type(cursor)
            if cursor.says("format"):
                raise NotUnderstood("format")
        elif not cursor.is_sign(")"):
            self._arguments(name)
        cursor.expect_sign(")")
        self._after_call()

    def _arguments(self, name: str) -> None:
        cursor = self._cursor
        cursor.skip("distinct") or cursor.skip("all")
        if cursor.says_one_of(("select", "with")):
            self._outer.take_query()
            return
        if name == "trim":
            cursor.skip("both") or cursor.skip("leading") or cursor.skip("trailing")
            cursor.skip("from")
        if (
            name in _UNITS_OF
            and cursor.next.kind == "word"
            and (cursor.is_sign(",", 1) or cursor.ahead(1).says("from"))
        ):
            # A unit, unless it is a column; then nothing is said about it.
            cursor.take()
            cursor.take()
        separators = _BETWEEN_ARGUMENTS.get(name, ())
        while True:
            self.argument(is_position=name == "position")
            if cursor.says_one_of(separators):
                cursor.take()
            elif not cursor.skip_sign(","):
                break
        if cursor.skip("order"):
            cursor.expect("by")
            self._outer.take_ordered()
        if cursor.says_one_of(("ignore", "respect")):
            cursor.take()
            cursor.expect("nulls")

    def argument(self, *, is_position: bool = False) -> None:
        cursor = self._cursor
        if cursor.skip_sign("*"):
            return
        if cursor.next.kind == "word" and cursor.is_sign("=>", 1):
            # By its name.
            cursor.take()
            cursor.skip_sign("=>")
        if is_position:
            self._outer.take_operand()
        else:
            self._outer.take_whole()
        if cursor.skip("as"):
            cursor.take()

    def _after_call(self) -> None:
        cursor = self._cursor
        if cursor.says("within", "group"):
            raise NotUnderstood("within")
        if cursor.says("filter") and cursor.is_sign("(", 1):
            cursor.take()
            cursor.take()
            cursor.expect("where")
            self._outer.take_whole()
            cursor.expect_sign(")")
        if cursor.says_one_of(("ignore", "respect")) and cursor.ahead(1).says("nulls"):
            cursor.take()
            cursor.take()
        if cursor.skip("over"):
            if cursor.is_sign("("):
                self._window()
            else:
                cursor.take()

    def _window(self) -> None:
        """`(PARTITION BY a ORDER BY b ROWS BETWEEN ...)`."""
        cursor = self._cursor
        cursor.take()
        while cursor.says_one_of(("partition", "order", "distribute", "sort", "cluster")):
            cursor.take()
            cursor.expect("by")
            self._outer.take_ordered()
        if cursor.says_one_of(("rows", "range", "groups")):
            depth = 1
            while depth and cursor.next.kind != "end":
                if cursor.is_sign(")") and depth == 1:
                    break
                depth += cursor.is_sign("(") - cursor.is_sign(")")
                cursor.take()
        cursor.expect_sign(")")
