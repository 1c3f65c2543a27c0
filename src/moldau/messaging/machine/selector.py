"""Message selectors: the SQL-92 subset of JMS 1.1, section 3.8.1.

A selector is parsed once into functions and evaluated with three values: true, false and unknown
(None). A message is selected only by true. Parsing takes time by the length of the text, which is
bounded like its nesting; evaluating takes time by the size of the selector and, with LIKE, of the
value: patterns are RE2's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import re2

from moldau.messaging.machine.errors import InvalidSelectorError

__all__ = ["Selector", "parse_selector"]

Values = Mapping[str, Any]
Evaluate = Callable[[Values], Any]

LENGTH_MAX: Final = 65_536
DEPTH_MAX: Final = 50

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[lLfFdD]?)(?![\w$.])
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>[^\W\d][\w$]*|\$[\w$]*)
    |(?P<sign><>|<=|>=|[=<>()+\-*/,])
    |(?P<end>$)
    )""",
    re.VERBOSE,
)
_WORDS: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
_BOOL, _NUMBER, _TEXT, _ANY = "a condition", "a number", "a string", "a property"
#: Header fields that a selector may use; others that begin with JMS are null.
_HEADERS: Final = frozenset(
    {"JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID",
     "JMSType"}
)  # fmt: skip


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Node(NamedTuple):
    kind: str
    evaluate: Evaluate


class Selector:
    """Selects messages by their properties and header fields."""

    def __init__(self, text: str, evaluate: Evaluate) -> None:
        self.text = text
        self._evaluate = evaluate

    def __call__(self, values: Values) -> bool:
        return self._evaluate(values) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def parse_selector(text: str | None) -> Selector | None:
    """None for no selector: a null or empty text. Raises InvalidSelectorError."""
    if text is None or not text.strip():
        return None
    if len(text) > LENGTH_MAX:
        raise InvalidSelectorError(f"the selector has more than {LENGTH_MAX} characters")
    parser = _Parser(_tokens(text))
    node = parser.condition()
    parser.expect_end()
    return Selector(text, _truth(node))


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise InvalidSelectorError(f"the selector is not understood at {text[at : at + 20]!r}")
        kind = str(token.lastgroup)
        start = token.start(kind)
        found.append(_Token(kind, token[kind], start))
        if kind == "end":
            return found
        at = token.end()


class _Parser:
    """Recursive descent, lowest precedence first."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    # Tokens.

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _word(self) -> str:
        return self._token.text.upper() if self._token.kind == "name" else ""

    def _take_word(self, *words: str) -> bool:
        """The next words, if they are these."""
        for number, word in enumerate(words):
            token = self._tokens[min(self._at + number, len(self._tokens) - 1)]
            if token.kind != "name" or token.text.upper() != word:
                return False
        self._at += len(words)
        return True

    def _take_sign(self, *signs: str) -> str:
        token = self._token
        if token.kind == "sign" and token.text in signs:
            self._at += 1
            return token.text
        return ""

    def _fail(self, what: str) -> InvalidSelectorError:
        token = self._token
        where = "at the end" if token.kind == "end" else f"at {token.text!r} ({token.at})"
        return InvalidSelectorError(f"the selector needs {what} {where}")

    def _expect_sign(self, sign: str) -> None:
        if not self._take_sign(sign):
            raise self._fail(repr(sign))

    def expect_end(self) -> None:
        if self._token.kind != "end":
            raise self._fail("an operator")

    # Conditions.

    def condition(self) -> _Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise InvalidSelectorError(f"the selector nests more than {DEPTH_MAX} levels")
        parts = [self._conjunction()]
        while self._take_word("OR"):
            parts.append(self._conjunction())
        self._depth -= 1
        if len(parts) == 1:
            return parts[0]
        return _Node(_BOOL, _any_of([self._as_condition(each) for each in parts]))

    def _conjunction(self) -> _Node:
        parts = [self._negation()]
        while self._take_word("AND"):
            parts.append(self._negation())
        if len(parts) == 1:
            return parts[0]
        return _Node(_BOOL, _all_of([self._as_condition(each) for each in parts]))

    def _negation(self) -> _Node:
        count = 0
        while self._take_word("NOT"):
            count += 1
        node = self._comparison()
        if not count:
            return node
        inner = self._as_condition(node)
        return _Node(_BOOL, _negated(inner) if count % 2 else inner)

    def _as_condition(self, node: _Node) -> Evaluate:
        if node.kind not in (_BOOL, _ANY):
            raise InvalidSelectorError(f"{node.kind} stands where a condition is needed")
        return _truth(node)

    def _comparison(self) -> _Node:
        left = self._sum()
        if sign := self._take_sign("=", "<>", "<", "<=", ">", ">="):
            right = self._sum()
            _check_comparable(left, right, sign)
            return _Node(_BOOL, _compare(sign, left.evaluate, right.evaluate))
        if self._take_word("IS"):
            negative = self._take_word("NOT")
            if not self._take_word("NULL"):
                raise self._fail("NULL")
            self._need_property(left)
            return _Node(_BOOL, _is_null(left.evaluate, negative))
        negative = self._take_word("NOT")
        if self._take_word("BETWEEN"):
            return self._between(left, negative)
        if self._take_word("IN"):
            return self._in(left, negative)
        if self._take_word("LIKE"):
            return self._like(left, negative)
        if negative:
            raise self._fail("BETWEEN, IN or LIKE")
        return left

    def _need_property(self, node: _Node) -> None:
        if node.kind != _ANY:
            raise InvalidSelectorError(
                f"{node.kind} stands before IS NULL, IN or LIKE, where a property is needed"
            )

    def _between(self, left: _Node, negative: bool) -> _Node:
        low = self._sum()
        if not self._take_word("AND"):
            raise self._fail("AND")
        high = self._sum()
        for each in (left, low, high):
            if each.kind not in (_NUMBER, _ANY):
                raise InvalidSelectorError(f"BETWEEN compares numbers, not {each.kind}")
        inside = _all_of(
            [
                _compare(">=", left.evaluate, low.evaluate),
                _compare("<=", left.evaluate, high.evaluate),
            ]
        )
        return _Node(_BOOL, _negated(inside) if negative else inside)

    def _in(self, left: _Node, negative: bool) -> _Node:
        self._need_property(left)
        self._expect_sign("(")
        values = {self._string()}
        while self._take_sign(","):
            values.add(self._string())
        self._expect_sign(")")
        return _Node(_BOOL, _is_in(left.evaluate, frozenset(values), negative))

    def _like(self, left: _Node, negative: bool) -> _Node:
        self._need_property(left)
        pattern = self._string()
        escape = ""
        if self._take_word("ESCAPE"):
            escape = self._string()
            if len(escape) != 1:
                raise InvalidSelectorError("ESCAPE has one character")
        return _Node(_BOOL, _is_like(left.evaluate, _like_pattern(pattern, escape), negative))

    def _string(self) -> str:
        token = self._token
        if token.kind != "text":
            raise self._fail("a string")
        self._at += 1
        return token.text[1:-1].replace("''", "'")

    # Values.

    def _sum(self) -> _Node:
        node = self._product()
        while sign := self._take_sign("+", "-"):
            node = _arithmetic(sign, node, self._product())
        return node

    def _product(self) -> _Node:
        node = self._factor()
        while sign := self._take_sign("*", "/"):
            node = _arithmetic(sign, node, self._factor())
        return node

    def _factor(self) -> _Node:
        negative, signed = False, False
        while sign := self._take_sign("+", "-"):
            negative, signed = negative ^ (sign == "-"), True
        node = self._value()
        if not signed:
            return node
        if node.kind not in (_NUMBER, _ANY):
            raise InvalidSelectorError(f"a sign stands before {node.kind}")
        return _Node(_NUMBER, _signed(node.evaluate, -1 if negative else 1))

    def _value(self) -> _Node:
        token = self._token
        if self._take_sign("("):
            node = self.condition()
            self._expect_sign(")")
            return node
        if token.kind == "text":
            return _Node(_TEXT, _constant(self._string()))
        if token.kind == "number":
            self._at += 1
            return _Node(_NUMBER, _constant(_number(token.text)))
        word = self._word()
        if word in ("TRUE", "FALSE"):
            self._at += 1
            return _Node(_BOOL, _constant(word == "TRUE"))
        if token.kind != "name" or word in _WORDS:
            raise self._fail("a value")
        self._at += 1
        return _Node(_ANY, _property(token.text))


# What is evaluated. Unknown is None, everywhere.


def _number(text: str) -> int | float:
    suffix = text[-1].lower()
    if suffix in "lfd":
        text = text[:-1]
    if suffix == "l" and not text.isdigit():
        raise InvalidSelectorError(f"{text}L is not a whole number")
    if text.isdigit() and suffix not in "fd":
        value = int(text)
        if value > 2**63:
            raise InvalidSelectorError(f"{text} is larger than a long")
        return value
    return float(text)


def _constant(value: Any) -> Evaluate:
    return lambda _: value


def _property(name: str) -> Evaluate:
    if name.startswith("JMS") and not name.startswith("JMSX") and name not in _HEADERS:
        return _constant(None)
    return lambda values: values.get(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _truth(node: _Node) -> Evaluate:
    if node.kind not in (_BOOL, _ANY):
        raise InvalidSelectorError(f"the selector is {node.kind}, not a condition")
    if node.kind == _BOOL:
        return node.evaluate
    inner = node.evaluate

    def truth(values: Values) -> Any:
        value = inner(values)
        return value if isinstance(value, bool) else None

    return truth


def _all_of(parts: list[Evaluate]) -> Evaluate:
    def all_of(values: Values) -> Any:
        result: bool | None = True
        for each in parts:
            value = each(values)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return all_of


def _any_of(parts: list[Evaluate]) -> Evaluate:
    def any_of(values: Values) -> Any:
        result: bool | None = False
        for each in parts:
            value = each(values)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return any_of


def _negated(inner: Evaluate) -> Evaluate:
    def negated(values: Values) -> Any:
        value = inner(values)
        return None if value is None else not value

    return negated


def _check_comparable(left: _Node, right: _Node, sign: str) -> None:
    kinds = {left.kind, right.kind} - {_ANY}
    if len(kinds) > 1:
        raise InvalidSelectorError(f"{left.kind} is compared with {right.kind}")
    if sign not in ("=", "<>") and kinds and kinds != {_NUMBER}:
        raise InvalidSelectorError(f"{kinds.pop()} can be compared with = and <> only")


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _compare(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    operation = _COMPARE[sign]
    orders = sign not in ("=", "<>")

    def compare(values: Values) -> Any:
        a, b = left(values), right(values)
        if a is None or b is None:
            return None
        numbers = _is_number(a) and _is_number(b)
        # Values of different types are neither equal nor unequal.
        if not numbers and (orders or type(a) is not type(b)):
            return False
        return operation(a, b)

    return compare


def _arithmetic(sign: str, left: _Node, right: _Node) -> _Node:
    for each in (left, right):
        if each.kind not in (_NUMBER, _ANY):
            raise InvalidSelectorError(f"{sign} calculates with numbers, not with {each.kind}")
    a_of, b_of = left.evaluate, right.evaluate

    def calculate(values: Values) -> Any:
        a, b = a_of(values), b_of(values)
        if not _is_number(a) or not _is_number(b):
            return None
        try:
            return _calculate(sign, a, b)
        except (ZeroDivisionError, OverflowError):
            return None

    return _Node(_NUMBER, calculate)


def _calculate(sign: str, a: Any, b: Any) -> Any:
    if sign == "+":
        return a + b
    if sign == "-":
        return a - b
    if sign == "*":
        return a * b
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    # Java's division of whole numbers, towards zero.
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _signed(inner: Evaluate, factor: int) -> Evaluate:
    def signed(values: Values) -> Any:
        value = inner(values)
        return value * factor if _is_number(value) else None

    return signed


def _is_null(inner: Evaluate, negative: bool) -> Evaluate:
    return lambda values: (inner(values) is None) != negative


def _is_in(inner: Evaluate, wanted: frozenset[str], negative: bool) -> Evaluate:
    def is_in(values: Values) -> Any:
        value = inner(values)
        if value is None:
            return None
        if not isinstance(value, str):
            return False
        return (value in wanted) != negative

    return is_in


def _like_pattern(pattern: str, escape: str) -> Any:
    parts = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if escape and character == escape:
            at += 1
            if at == len(pattern):
                raise InvalidSelectorError("a LIKE pattern ends with its escape character")
            parts.append(re2.escape(pattern[at]))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(re2.escape(character))
        at += 1
    return re2.compile("(?s)" + "".join(parts))


def _is_like(inner: Evaluate, pattern: Any, negative: bool) -> Evaluate:
    def is_like(values: Values) -> Any:
        value = inner(values)
        if value is None:
            return None
        if not isinstance(value, str):
            return False
        return (pattern.fullmatch(value) is not None) != negative

    return is_like
