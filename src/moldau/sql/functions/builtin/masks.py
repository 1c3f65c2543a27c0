"""Texts made unreadable, in whole or in part."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import ScalarFunction, overload, scalar
from moldau.sql.functions.errors import FunctionError

_Masks = tuple[str | None, str | None, str | None, str | None]
_DEFAULT: _Masks = ("X", "x", "n", "-")
_PARTS = {"Lu": 0, "Ll": 1, "Nd": 2}


def _masked(text: str, masks: _Masks) -> str:
    out = []
    for letter in text:
        mask = masks[_PARTS.get(unicodedata.category(letter), 3)]
        out.append(letter if mask is None else mask)
    return "".join(out)


def _checked(masks: tuple[str | None, ...]) -> _Masks:
    if not masks:
        return _DEFAULT
    for mask in masks:
        if mask is not None and len(mask) != 1:
            raise KsqlException(
                f"Invalid mask character. Must be only single character, but was '{mask}'"
            )
    upper, lower, digit, other = masks
    return upper, lower, digit, other


def _mask(text: str | None, *masks: str | None) -> str | None:
    checked = _checked(masks)
    return None if text is None else _masked(text, checked)


def _partly(name: str, masked: Callable[[int, int], tuple[int, int]]) -> ScalarFunction:
    """`masked` says which part of a text of some length is masked, for a number of characters."""

    def evaluate(text: str | None, count: int | None, *masks: str | None) -> str | None:
        checked = _checked(masks)
        if count is None or count < 0:
            raise FunctionError(
                f"function {name} requires a non-negative number of characters to mask or skip"
            )
        if text is None:
            return None
        start, end = masked(len(text), min(count, len(text)))
        return text[:start] + _masked(text[start:end], checked) + text[end:]

    side = "left" if "left" in name else "right"
    what = f"all but the {side}most" if "keep" in name else f"the {side}most"
    return scalar(
        name,
        "STRING",
        f"A text with {what} characters masked.",
        f"{name.upper()}('Ab1', 1)",
        overload("(STRING input, INT numChars) -> STRING", evaluate, nulls=True),
        overload(
            "(STRING input, INT numChars, STRING upper, STRING lower, STRING digit, STRING other) "
            "-> STRING",
            evaluate,
            nulls=True,
        ),
    )


FUNCTIONS = [
    scalar(
        "mask",
        "STRING",
        "A text with its characters replaced: by X, x, n or -, or by characters of your own; NULL "
        "leaves a kind of characters alone.",
        "MASK('Ab1?') -> 'Xxn-'",
        overload("(STRING input) -> STRING", _mask, nulls=True),
        overload(
            "(STRING input, STRING upper, STRING lower, STRING digit, STRING other) -> STRING",
            _mask,
            nulls=True,
        ),
    ),
    _partly("mask_keep_left", lambda size, count: (count, size)),
    _partly("mask_keep_right", lambda size, count: (0, size - count)),
    _partly("mask_left", lambda size, count: (0, count)),
    _partly("mask_right", lambda size, count: (size - count, size)),
]
