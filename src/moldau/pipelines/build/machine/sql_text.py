"""What the text of a SQL step says, as far as it must be known before Spark reads it.

Bad records travel beside good ones, in the same rows, until they reach the sink. A plain SELECT
(one view, no grouping, no joining) is rewritten here so that it lets them through untouched; what
is not plain is left alone, and the bad records take another way. The rewriting only ever adds to
the statement, and its callers let Spark analyse the result before trusting it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from moldau.pipelines.machine.sql_tokens import Token, tokens_of, words_of

ERROR = "__error"
"""The column that marks a bad record: its value is null for good ones."""

_NOT_PLAIN = re.compile(
    r"group|having|order|limit|offset|union|intersect|except|minus|join|lateral|window|cluster"
    r"|distribute|sort|qualify|distinct|pivot|unpivot|tablesample|with",
    re.IGNORECASE,
)
# These can fail or multiply rows whatever their arguments are, so bad records must not meet them.
_NOT_FOR_BAD_ROWS = re.compile(
    r"raise_error|assert_true|(pos)?explode(_outer)?|inline(_outer)?|stack|json_tuple|over",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PlainSelect:
    """`SELECT items FROM view [AS alias] [WHERE condition]`, cut at those words."""

    items: tuple[str, ...]
    source: str
    condition: str | None

    @property
    def has_star(self) -> bool:
        return any(_is_star(item) for item in self.items)

    def names(self, column: str) -> bool:
        """Whether the column is one of the items by its own name."""
        return any(
            _is_bare(tokens) and tokens[-1].text.strip("`").lower() == column.lower()
            for tokens in (words_of(item) for item in self.items)
        )

    def with_columns(self, names: Sequence[str], *, result: Sequence[str], guard: bool) -> str:
        """The same statement that also gives the columns `names`.

        `result` are the names of the columns it gives by itself. With `guard`, rows that are
        marked as bad pass the condition, and no expression is worked out for them.
        """
        items = list(self.items)
        if guard:
            items = [
                _guarded(item, name) for item, name in zip(items, self._names(result), strict=True)
            ]
        added = [name for name in names if name not in result]
        where = ""
        if self.condition is not None:
            condition = self.condition
            if guard:
                condition = f"CASE WHEN {ERROR} IS NOT NULL THEN true ELSE ({condition}\n) END"
            where = f" WHERE {condition}"
        return f"SELECT {', '.join([*items, *added])} FROM {self.source}{where}"

    def _names(self, result: Sequence[str]) -> list[str | None]:
        """The result's name of each item; None for a star, which stands for several."""
        stars = [index for index, item in enumerate(self.items) if _is_star(item)]
        if not stars:
            return list(result)
        after = len(self.items) - stars[0] - 1
        return [*result[: stars[0]], None, *(result[len(result) - after :] if after else ())]


def mentions(sql: str, name: str) -> bool:
    """Whether the statement has the name somewhere outside of texts and comments."""
    wanted = name.lower()
    return any(
        (token.kind == "word" and token.text.lower() == wanted)
        or (token.kind == "quoted" and token.text[1:-1].lower() == wanted)
        for token in tokens_of(sql)
    )


def plain_select(sql: str, view: str) -> PlainSelect | None:
    """The statement's parts if it is a plain SELECT over `view`, else None."""
    tokens = words_of(sql)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if len(tokens) < 4 or not tokens[0].says("select"):
        return None
    words = [token for token in tokens[1:] if token.kind == "word"]
    top = [token for token in tokens if token.depth == 0]
    if any(
        _NOT_FOR_BAD_ROWS.fullmatch(word.text)
        or (word.depth == 0 and _NOT_PLAIN.fullmatch(word.text))
        for word in words
    ):
        return None
    start = next((token for token in top if token.says("from")), None)
    if start is None:
        return None
    where = next((token for token in top if token.says("where")), None)
    end = tokens[-1].end
    source = sql[start.end : where.start if where else end].strip()
    if not _is_only(source, view):
        return None
    items = _split(sql, tokens, tokens[0].end, start.start)
    stars = sum(_is_star(item) for item in items)
    if stars > 1 or not all(items):
        return None
    condition = sql[where.end : end].strip() if where else None
    return PlainSelect(tuple(items), source, condition)


def _is_only(source: str, view: str) -> bool:
    """Whether the FROM clause is the view alone, with or without an alias."""
    tokens = words_of(source)
    words = [token.text.strip("`").lower() for token in tokens if token.kind in ("word", "quoted")]
    if len(words) != len(tokens) or not words or words[0] != view.lower():
        return False
    return len(words) == 1 or (len(words) == 2 and words[1] != "as") or words[1:-1] == ["as"]


def _split(sql: str, tokens: Sequence[Token], start: int, end: int) -> list[str]:
    cuts = [
        token.start
        for token in tokens
        if token.text == "," and token.depth == 0 and start <= token.start < end
    ]
    borders = [start, *[cut + 1 for cut in cuts]]
    return [sql[left:right].strip() for left, right in zip(borders, [*cuts, end], strict=True)]


def _is_star(item: str) -> bool:
    tokens = words_of(item)
    return bool(tokens) and tokens[-1].text == "*"


def _is_bare(tokens: Sequence[Token]) -> bool:
    """Whether it is a column as it is: `a`, `t.a`."""
    return len(tokens) % 2 == 1 and all(
        token.text == "." if index % 2 else token.kind in ("word", "quoted")
        for index, token in enumerate(tokens)
    )


def _guarded(item: str, name: str | None) -> str:
    tokens = words_of(item)
    if name is None or _is_bare(tokens):
        return item  # a column as it is cannot fail
    expression = item
    alias = tokens[-1].text.strip("`").lower() == name.lower() and len(tokens) > 1
    if alias and tokens[-2].says("as"):
        expression = item[: tokens[-2].start].strip()
    elif alias and (tokens[-2].kind != "sign" or tokens[-2].text in ")]"):
        expression = item[: tokens[-1].start].strip()
    quoted = name.replace("`", "``")
    return f"CASE WHEN {ERROR} IS NULL THEN ({expression}\n) END AS `{quoted}`"
