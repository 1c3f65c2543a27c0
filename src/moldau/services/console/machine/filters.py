"""Filters of records: an expression becomes a function of a record.

    value.amount > 100 and (key = "ada" or header.region in ["eu", "us"])
    $.items[0].sku like "A-%" and not value.test is null
    value contains "timeout" and partition = 3

Names: `key`, `value`, `header.NAME`, `partition`, `offset`, `timestamp`, `topic`; a path goes into
JSON (`value.a.b[0]`, `value["odd name"]`), and `$` stands for the value. Operators: = == != <> < <=
> >=, `contains`, `startswith`, `endswith`, `like` (% and _), `matches` (RE2), `in [...]`,
`is null`, `exists`, and `and`, `or`, `not`. Values of different types are not equal and not
ordered; a number may be written as text in the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import re2

__all__ = ["MISSING", "FilterError", "Record", "compile_filter"]

Record = Mapping[str, Any]
Test = Callable[[Record], bool]
Get = Callable[[Record], Any]

MISSING: Final = object()
LENGTH_MAX: Final = 10_000
DEPTH_MAX: Final = 50
_NAMES: Final = ("key", "value", "header", "partition", "offset", "timestamp", "topic")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w])"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<word>[A-Za-z_@][\w@-]*)"
    r"|(?P<sign><=|>=|<>|!=|==|[=<>()\[\],.$]))"
)
_WORDS: Final = frozenset(
    {"and", "or", "not", "in", "is", "null", "exists", "contains", "startswith", "endswith",
     "like", "matches", "true", "false"}
)  # fmt: skip


class FilterError(ValueError):
    """An expression that cannot be read; the message says where."""


def compile_filter(text: str) -> Test:
    """Raises FilterError."""
    if len(text) > LENGTH_MAX:
        raise FilterError(f"The filter has more than {LENGTH_MAX} characters.")
    parser = _Parser(_tokens(text), text)
    test = parser.either()
    parser.finish()
    return test


def _tokens(text: str) -> list[tuple[str, str, int]]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].strip()
            if not rest:
                break
            raise FilterError(f"Cannot read the filter at {rest[:20]!r}.")
        kind = str(match.lastgroup)
        word, start = match[kind], match.start(kind)
        if kind == "word" and word.lower() in _WORDS:
            kind, word = "keyword", word.lower()
        found.append((kind, word, start))
        position = match.end()
    return found


class _Parser:
    def __init__(self, tokens: list[tuple[str, str, int]], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0
        self._depth = 0

    def either(self) -> Test:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise FilterError("The filter has too many parentheses.")
        tests = [self._both()]
        while self._take("keyword", "or"):
            tests.append(self._both())
        self._depth -= 1
        return tests[0] if len(tests) == 1 else lambda record: any(each(record) for each in tests)

    def _both(self) -> Test:
        tests = [self._single()]
        while self._take("keyword", "and"):
            tests.append(self._single())
        return tests[0] if len(tests) == 1 else lambda record: all(each(record) for each in tests)

    def _single(self) -> Test:
        negations = 0
        while self._take("keyword", "not"):
            negations += 1
        if negations % 2:
            test = self._single()
            return lambda record: not test(record)
        if self._take("sign", "("):
            inner = self.either()
            self._need(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Test:
        get = self._operand()
        kind, word, _ = self._peek()
        if kind == "sign" and word in _ORDERS:
            self._at += 1
            other, order = self._operand(), _ORDERS[word]
            return lambda record: order(get(record), other(record))
        if kind == "keyword" and word == "is":
            self._at += 1
            negated = self._take("keyword", "not")
            if not self._take("keyword", "null"):
                raise self._wrong("null")
            return lambda record: (get(record) in (None, MISSING)) is not negated
        if kind == "keyword" and word == "exists":
            self._at += 1
            return lambda record: get(record) is not MISSING
        negated = self._take("keyword", "not")
        test = self._text_test(get)
        return (lambda record: not test(record)) if negated else test

    def _text_test(self, get: Get) -> Test:
        kind, word, _ = self._peek()
        if kind == "keyword" and word == "in":
            self._at += 1
            choices = self._list()
            return lambda record: any(_equal(get(record), each) for each in choices)
        if kind == "keyword" and word in ("contains", "startswith", "endswith", "like", "matches"):
            self._at += 1
            wanted = self._literal()
            return _text_tests(word, get, str(wanted))
        if kind == "end" or word in (")", "and", "or"):
            # A path alone is true where JSON has true.
            return lambda record: get(record) is True
        raise self._wrong("an operator")

    def _operand(self) -> Get:
        kind, word, _ = self._peek()
        if kind in ("number", "text") or (kind == "keyword" and word in ("true", "false", "null")):
            value = self._literal()
            return lambda record: value
        if kind == "sign" and word == "$":
            self._at += 1
            return _path("value", self._steps())
        if kind == "word":
            self._at += 1
            if word not in _NAMES:
                # A plain name is a field of the value.
                return _path("value", [word, *self._steps()])
            return _path(word, self._steps())
        raise self._wrong("a name or a value")

    def _steps(self) -> list[str | int]:
        steps: list[str | int] = []
        while True:
            if self._take("sign", "."):
                kind, word, _ = self._peek()
                if kind not in ("word", "keyword"):
                    raise self._wrong("a field name")
                self._at += 1
                steps.append(word)
            elif self._peek()[:2] == ("sign", "["):
                self._at += 1
                step = self._literal()
                if not isinstance(step, str | int):
                    raise self._wrong("a number or a name in quotes")
                steps.append(step)
                self._need("]")
            else:
                return steps

    def _list(self) -> list[Any]:
        self._need("[")
        found = []
        while not self._take("sign", "]"):
            found.append(self._literal())
            if not self._take("sign", ",") and self._peek()[1] != "]":
                raise self._wrong("a comma or ]")
        return found

    def _literal(self) -> Any:
        kind, word, _ = self._peek()
        self._at += 1
        if kind == "number":
            return float(word) if any(each in word for each in ".eE") else int(word)
        if kind == "text":
            if word[0] == "'":
                word = '"' + word[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
            try:
                return json.loads(word)
            except ValueError:
                raise FilterError(f"Cannot read the text {word[:40]}.") from None
        if kind == "keyword" and word in ("true", "false", "null"):
            return json.loads(word)
        self._at -= 1
        raise self._wrong("a number or a text in quotes")

    def finish(self) -> None:
        if self._peek()[0] != "end":
            raise self._wrong("and, or, or the end")

    def _peek(self) -> tuple[str, str, int]:
        if self._at < len(self._tokens):
            return self._tokens[self._at]
        return ("end", "", len(self._text))

    def _take(self, kind: str, word: str) -> bool:
        if self._peek()[:2] == (kind, word):
            self._at += 1
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._take("sign", word):
            raise self._wrong(word)

    def _wrong(self, expected: str) -> FilterError:
        _, word, position = self._peek()
        found = f"{word!r} at character {position + 1}" if word else "the end of the filter"
        return FilterError(f"Expected {expected}, but found {found}.")


def _path(name: str, steps: list[str | int]) -> Get:
    def get(record: Record) -> Any:
        found = record.get(name, MISSING)
        for step in steps:
            if isinstance(found, dict):
                found = found.get(step, MISSING)
            elif isinstance(found, list) and isinstance(step, int):
                found = found[step] if -len(found) <= step < len(found) else MISSING
            else:
                return MISSING
        return found

    return get


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _equal(left: Any, right: Any) -> bool:
    if left is MISSING or right is MISSING:
        return False
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) != isinstance(right, int | float):
        left_number, right_number = _number(left), _number(right)
        return left_number is not None and left_number == right_number
    return bool(left == right)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def order(left: Any, right: Any) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        left_number, right_number = _number(left), _number(right)
        if left_number is None or right_number is None:
            return False
        return compare(left_number, right_number)

    return order


_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": _equal,
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<>": lambda left, right: not _equal(left, right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
}


def _as_text(value: Any) -> str | None:
    if value is MISSING or value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text_tests(word: str, get: Get, wanted: str) -> Test:
    if word in ("like", "matches"):
        pattern = wanted if word == "matches" else _like(wanted)
        try:
            compiled = re2.compile(pattern)
        except re2.error as error:
            raise FilterError(f"{wanted!r} is not a regular expression: {error}") from None
        find = compiled.search if word == "matches" else compiled.fullmatch
        return lambda record: (text := _as_text(get(record))) is not None and bool(find(text))
    check: Callable[[str, str], bool] = {
        "contains": lambda text, part: part in text,
        "startswith": str.startswith,
        "endswith": str.endswith,
    }[word]

    def test(record: Record) -> bool:
        text = _as_text(get(record))
        return text is not None and check(text, wanted)

    return test


def _like(pattern: str) -> str:
    parts = {"%": "(?s:.*)", "_": "(?s:.)"}
    return "".join(parts.get(each) or re2.escape(each) for each in pattern)
