"""SQL expressions as Python functions, with Spark's results.

Only what is certain to give Spark's result is translated. There are two ways out: `NotTranslated`
when an expression is compiled, and `Uncertain` when a value comes that Spark may treat in another
way (an overflow, a division by zero, letters whose upper case depends on a locale). Nulls follow
SQL's three-valued logic; arithmetic is that of Spark's ANSI mode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from moldau.pipelines.machine.sql_tokens import Token, words_of
from moldau.pipelines.validation.machine.cursor import word_set

__all__ = [
    "BOOLEAN",
    "DOUBLE",
    "RANGES",
    "STRING",
    "Compiled",
    "NotTranslated",
    "Uncertain",
    "compiled",
]

STRING, INT, BIGINT, DOUBLE, BOOLEAN = "string", "int", "bigint", "double", "boolean"
_DECIMAL, _NULL = "decimal", "null"
RANGES: Final[Mapping[str, tuple[int, int]]] = {
    INT: (-(2**31), 2**31 - 1),
    BIGINT: (-(2**63), 2**63 - 1),
}
_SIGNS: Final = ("<=>", "<>", "!=", "==", "<=", ">=", "||", "=", "<", ">", "+", "-", "*", "/")
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_DEPTH_MAX: Final = 50
_RESERVED: Final = word_set(
    "and or not is in between like case when then else end null true false cast as from where "
    "interval distinct exists escape"
)
Row = Sequence[Any]


class NotTranslated(Exception):
    """The text uses something that only Spark does for certain; the message names it."""


class Uncertain(Exception):
    """A value of which it is not certain what Spark makes of it."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression: the type of its result, and how it is worked out from a row."""

    kind: str
    value: Callable[[Row], Any]
    #: The column's name if it is nothing but a column.
    column: str | None = None


def compiled(text: str, columns: Mapping[str, tuple[int, str]]) -> Compiled:
    """`columns` are index and type by name, exactly as written in the schema."""
    parser = _Parser(words_of(text), columns)
    found = parser.either()
    if not parser.is_at_end:
        raise NotTranslated(parser.here)
    return found


class _Parser:
    def __init__(self, tokens: list[Token], columns: Mapping[str, tuple[int, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._columns = columns
        self._depth = 0

    # Tokens.

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._tokens)

    @property
    def here(self) -> str:
        return "the end" if self.is_at_end else self._tokens[self._at].text

    def _peek(self) -> Token | None:
        return None if self.is_at_end else self._tokens[self._at]

    def _sign(self) -> str | None:
        """The operator that begins here: signs that touch each other."""
        text, at, end = "", self._at, None
        while at < len(self._tokens) and self._tokens[at].kind == "sign" and len(text) < 3:
            if end is not None and self._tokens[at].start != end:
                break
            text += self._tokens[at].text
            end = self._tokens[at].end
            at += 1
        return next((sign for sign in _SIGNS if text.startswith(sign)), None)

    def _skip(self, word: str) -> bool:
        token = self._peek()
        if token is not None and token.says(word):
            self._at += 1
            return True
        return False

    def _skip_sign(self, sign: str) -> bool:
        token = self._peek()
        if token is not None and token.kind == "sign" and token.text == sign:
            self._at += 1
            return True
        return False

    def _expect(self, found: bool) -> None:
        if not found:
            raise NotTranslated(self.here)

    # From what binds loosest.

    def either(self) -> Compiled:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise NotTranslated("expressions in expressions")
        left = self._both()
        while self._skip("or"):
            left = _logic(left, self._both(), decisive=True)
        self._depth -= 1
        return left

    def _both(self) -> Compiled:
        left = self._negated()
        while self._skip("and"):
            left = _logic(left, self._negated(), decisive=False)
        return left

    def _negated(self) -> Compiled:
        if self._skip("not"):
            inner = _boolean(self._negated()).value
            return Compiled(BOOLEAN, _or_null(inner, lambda value: not value))
        return self._predicate()

    def _predicate(self) -> Compiled:
        left = self._sum()
        sign = self._sign()
        if sign in _COMPARISONS or sign == "<=>":
            self._at += len(str(sign))
            return _compared(str(sign), left, self._sum())
        if self._skip("is"):
            wanted = not self._skip("not")
            self._expect(self._skip("null"))
            inner = left.value
            return Compiled(BOOLEAN, lambda row: (inner(row) is None) == wanted)
        negated = self._skip("not")
        found = self._membership(left)
        if found is None:
            if negated:
                raise NotTranslated(self.here)
            return left
        inner = found.value
        return Compiled(BOOLEAN, _or_null(inner, lambda value: not value)) if negated else found

    def _membership(self, left: Compiled) -> Compiled | None:
        """IN, BETWEEN and LIKE; None if there is none of them."""
        if self._skip("between"):
            low = self._sum()
            self._expect(self._skip("and"))
            high = self._sum()
            return _logic(_compared(">=", left, low), _compared("<=", left, high), decisive=False)
        if self._skip("in"):
            self._expect(self._skip_sign("("))
            found = _compared("=", left, self._sum())
            while self._skip_sign(","):
                found = _logic(found, _compared("=", left, self._sum()), decisive=True)
            self._expect(self._skip_sign(")"))
            return found
        if self._skip("like"):
            return _like(left, self._text_literal())
        return None

    def _sum(self) -> Compiled:
        left = self._product()
        while (sign := self._sign()) in ("+", "-", "||"):
            self._at += len(str(sign))
            right = self._product()
            left = _joined([left, right]) if sign == "||" else _arithmetic(str(sign), left, right)
        return left

    def _product(self) -> Compiled:
        left = self._unary()
        while (sign := self._sign()) in ("*", "/"):
            self._at += 1
            left = _arithmetic(str(sign), left, self._unary())
        return left

    def _unary(self) -> Compiled:
        if self._skip_sign("-"):
            return _arithmetic("-", Compiled(INT, lambda row: 0), self._unary(), negation=True)
        return self._primary()

    # Operands.

    def _primary(self) -> Compiled:
        token = self._peek()
        if token is None:
            raise NotTranslated("the end")
        if self._skip_sign("("):
            inner = self.either()
            self._expect(self._skip_sign(")"))
            return Compiled(inner.kind, inner.value)
        if token.kind == "number":
            self._at += 1
            return _number(token.text)
        if token.kind == "text":
            text = self._text_literal()
            return Compiled(STRING, lambda row: text)
        if token.kind not in ("word", "quoted"):
            raise NotTranslated(token.text)
        return self._word(token)

    def _word(self, token: Token) -> Compiled:
        word = token.text.lower() if token.kind == "word" else ""
        following = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else None
        self._at += 1
        if following is not None and following.kind == "text":
            raise NotTranslated(token.text)
        if word == "null":
            return Compiled(_NULL, lambda row: None)
        if word in ("true", "false"):
            truth = word == "true"
            return Compiled(BOOLEAN, lambda row: truth)
        if word == "case":
            return self._case()
        if following is not None and following.text == "(" and following.kind == "sign":
            return self._call(word)
        if word in _RESERVED or (following is not None and following.text in (".", "[", ":")):
            raise NotTranslated(token.text)
        name = token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
        if name not in self._columns:
            raise NotTranslated(f"column {name}")
        index, kind = self._columns[name]
        return Compiled(kind, lambda row: row[index], name)

    def _text_literal(self) -> str:
        token = self._peek()
        if token is None or token.kind != "text" or "\\" in token.text:
            raise NotTranslated(self.here)
        text = token.text[1:-1]
        self._at += 1
        after = self._peek()
        if token.text[0] in text or (after is not None and after.kind == "text"):
            raise NotTranslated(token.text)
        return text

    def _case(self) -> Compiled:
        branches: list[tuple[Compiled, Compiled]] = []
        while self._skip("when"):
            condition = _boolean(self.either())
            self._expect(self._skip("then"))
            branches.append((condition, self.either()))
        if not branches:
            raise NotTranslated("CASE with an operand")
        last = self.either() if self._skip("else") else Compiled(_NULL, lambda row: None)
        self._expect(self._skip("end"))
        kind = _same_kind([*(value for _, value in branches), last])
        pairs = [(condition.value, value.value) for condition, value in branches]
        otherwise = last.value

        def chosen(row: Row) -> Any:
            for condition, value in pairs:
                if condition(row):
                    return value(row)
            return otherwise(row)

        return Compiled(kind, chosen)

    def _call(self, name: str) -> Compiled:
        self._at += 1
        arguments = [self.either()] if not self._skip_sign(")") else []
        if name == "cast" and arguments:
            self._expect(self._skip("as"))
            kind = self.here.lower()
            self._at += 1
            self._expect(self._skip_sign(")"))
            return _cast(arguments[0], kind)
        if arguments:
            while self._skip_sign(","):
                arguments.append(self.either())
            self._expect(self._skip_sign(")"))
        return _function(name, arguments)


# Operators.


def _or_null(inner: Callable[[Row], Any], then: Callable[[Any], Any]) -> Callable[[Row], Any]:
    def worked_out(row: Row) -> Any:
        value = inner(row)
        return None if value is None else then(value)

    return worked_out


def _boolean(expression: Compiled) -> Compiled:
    if expression.kind not in (BOOLEAN, _NULL):
        raise NotTranslated(f"{expression.kind} as a condition")
    return expression


def _logic(left: Compiled, right: Compiled, *, decisive: bool) -> Compiled:
    """AND, or OR: `decisive` is the value that decides whatever the other one is."""
    first, second = _boolean(left).value, _boolean(right).value

    def decided(row: Row) -> Any:
        one = first(row)
        if one is decisive:
            return decisive
        two = second(row)
        if two is decisive:
            return decisive
        return None if one is None or two is None else not decisive

    return Compiled(BOOLEAN, decided)


def _compared(sign: str, left: Compiled, right: Compiled) -> Compiled:
    one, two = _comparable(left, right)
    if sign == "<=>":

        def same(row: Row) -> bool:
            first, second = one(row), two(row)
            if first is None or second is None:
                return first is second
            return bool(first == second)

        return Compiled(BOOLEAN, same)
    test = _COMPARISONS[sign]

    def compared(row: Row) -> Any:
        first, second = one(row), two(row)
        return None if first is None or second is None else test(first, second)

    return Compiled(BOOLEAN, compared)


def _comparable(left: Compiled, right: Compiled) -> tuple[Callable[[Row], Any], ...]:
    kinds = {left.kind, right.kind}
    numbers = {INT, BIGINT, DOUBLE, _DECIMAL}
    if _NULL in kinds or len(kinds) == 1:
        return left.value, right.value
    if not kinds <= numbers:
        raise NotTranslated(f"{left.kind} compared with {right.kind}")
    if DOUBLE in kinds:
        # Spark makes doubles of both; Python would compare an int and a float exactly.
        return tuple(
            each.value if each.kind == DOUBLE else _or_null(each.value, float)
            for each in (left, right)
        )
    return left.value, right.value


def _arithmetic(sign: str, left: Compiled, right: Compiled, *, negation: bool = False) -> Compiled:
    kinds = {left.kind, right.kind}
    if negation:
        kinds = {right.kind}
    if kinds == {_DECIMAL} and negation:
        inner = right.value
        return Compiled(_DECIMAL, lambda row: -inner(row))
    if _DECIMAL in kinds and DOUBLE not in kinds:
        raise NotTranslated("arithmetic with decimals")
    if not kinds <= {INT, BIGINT, DOUBLE, _DECIMAL}:
        raise NotTranslated(f"{sign} of {left.kind} and {right.kind}")
    one, two = left.value, right.value
    if DOUBLE in kinds or sign == "/":
        return Compiled(DOUBLE, _float_arithmetic(sign, one, two, negation=negation))
    kind = BIGINT if BIGINT in kinds else INT
    low, high = RANGES[kind]
    operate = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[sign]

    def worked_out(row: Row) -> Any:
        first, second = one(row), two(row)
        if first is None or second is None:
            return None
        value = operate(first, second)
        if not low <= value <= high:
            raise Uncertain(f"{kind} overflow")
        return value

    return Compiled(kind, worked_out)


def _float_arithmetic(
    sign: str, one: Callable[[Row], Any], two: Callable[[Row], Any], *, negation: bool
) -> Callable[[Row], Any]:
    operate = {
        "+": float.__add__,
        "-": float.__sub__,
        "*": float.__mul__,
        "/": float.__truediv__,
    }[sign]

    def worked_out(row: Row) -> Any:
        first, second = one(row), two(row)
        if first is None or second is None:
            return None
        if negation:
            return -float(second)
        if sign == "/" and not second:
            raise Uncertain("division by zero")
        value = operate(float(first), float(second))
        if not math.isfinite(value):
            raise Uncertain("not a finite number")
        return value

    return worked_out


def _number(text: str) -> Compiled:
    if text.isdecimal() and text.isascii():
        number = int(text)
        for kind in (INT, BIGINT):
            if number <= RANGES[kind][1]:
                return Compiled(kind, lambda row: number)
    if re.fullmatch(r"\d{1,9}\.\d{1,9}", text):
        exact = Decimal(text)
        return Compiled(_DECIMAL, lambda row: exact)
    raise NotTranslated(text)


def _like(left: Compiled, pattern: str) -> Compiled:
    if left.kind != STRING:
        raise NotTranslated(f"{left.kind} LIKE")
    translated = "".join(
        ".*" if each == "%" else "." if each == "_" else re.escape(each) for each in pattern
    )
    match = re.compile(translated, re.DOTALL).fullmatch
    return Compiled(BOOLEAN, _or_null(left.value, lambda value: match(value) is not None))


# Functions.


def _function(name: str, arguments: list[Compiled]) -> Compiled:
    if name == "concat" and arguments:
        return _joined(arguments)
    if name == "coalesce" and arguments:
        kind = _same_kind(arguments)
        values = [each.value for each in arguments]

        def first(row: Row) -> Any:
            return next((found for each in values if (found := each(row)) is not None), None)

        return Compiled(kind, first)
    if len(arguments) == 1 and arguments[0].kind == STRING:
        inner = arguments[0].value
        match name:
            case "upper" | "ucase":
                return Compiled(STRING, _or_null(inner, lambda value: _ascii(value).upper()))
            case "lower" | "lcase":
                return Compiled(STRING, _or_null(inner, lambda value: _ascii(value).lower()))
            case "trim":
                return Compiled(STRING, _or_null(inner, lambda value: value.strip(" ")))
            case "length" | "char_length" | "character_length" | "len":
                return Compiled(INT, _or_null(inner, len))
    raise NotTranslated(f"{name}()")


def _ascii(value: str) -> str:
    if not value.isascii():
        raise Uncertain("upper and lower case of letters that are not ASCII")
    return value


def _joined(parts: list[Compiled]) -> Compiled:
    if any(each.kind != STRING for each in parts):
        raise NotTranslated("concat of what is not text")
    values = [each.value for each in parts]

    def joined(row: Row) -> Any:
        found = [each(row) for each in values]
        return None if None in found else "".join(found)

    return Compiled(STRING, joined)


def _same_kind(expressions: Sequence[Compiled]) -> str:
    kinds = {each.kind for each in expressions} - {_NULL}
    if len(kinds) != 1 or kinds == {_DECIMAL}:
        raise NotTranslated("values of several types")
    return kinds.pop()


def _cast(inner: Compiled, kind: str) -> Compiled:
    kind = {"integer": INT, "long": BIGINT}.get(kind, kind)
    value = inner.value
    if inner.kind == kind and kind in (STRING, INT, BIGINT, DOUBLE, BOOLEAN):
        return Compiled(kind, value)
    if inner.kind in (INT, BIGINT):
        if kind == STRING:
            return Compiled(STRING, _or_null(value, str))
        if kind == DOUBLE:
            return Compiled(DOUBLE, _or_null(value, float))
        if kind in RANGES:
            return Compiled(kind, _or_null(value, lambda number: _in_range(number, kind)))
    if inner.kind == DOUBLE and kind in RANGES:
        return Compiled(kind, _or_null(value, lambda number: _in_range(int(number), kind)))
    if inner.kind == BOOLEAN and kind == STRING:
        return Compiled(STRING, _or_null(value, lambda truth: "true" if truth else "false"))
    if inner.kind == STRING and kind in RANGES:
        return Compiled(kind, _or_null(value, lambda text: _in_range(_integer(text), kind)))
    raise NotTranslated(f"cast of {inner.kind} to {kind}")


def _in_range(number: int, kind: str) -> int:
    low, high = RANGES[kind]
    if not low <= number <= high:
        raise Uncertain(f"{kind} overflow")
    return number


def _integer(text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
        raise Uncertain("text that is not plainly a number")
    return int(text)
