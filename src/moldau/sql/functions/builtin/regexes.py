"""Functions of regular expressions."""

from __future__ import annotations

from moldau.sql.functions.builtin.java_regex import compile_pattern, expand, java_split
from moldau.sql.functions.declarations import overload, scalar


def _extract(pattern: str, text: str, group: int = 0) -> str | None:
    compiled = compile_pattern(pattern)
    if group > compiled.groups:
        return None
    found = compiled.search(text)
    return None if found is None else found.group(group)


def _extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    compiled = compile_pattern(pattern)
    if group > compiled.groups:
        return None
    return [found.group(group) for found in compiled.finditer(text)]


def _replace(text: str, pattern: str, replacement: str) -> str:
    return compile_pattern(pattern).sub(lambda found: expand(replacement, found), text)


def _split(text: str, pattern: str) -> list[str]:
    compiled = compile_pattern(pattern)
    if not pattern or compiled.fullmatch("") is not None:
        return java_split(compiled, text)
    parts: list[str] = []
    start = 0
    for found in compiled.finditer(text):
        parts.append(text[start : found.start()])
        start = found.end()
    parts.append(text[start:])
    return parts


_KIND = "REGULAR EXPRESSION"

FUNCTIONS = [
    scalar(
        "regexp_extract",
        _KIND,
        "The first part of a text that matches a regular expression, or a group of it.",
        "REGEXP_EXTRACT('a(.)', 'xab', 1) -> 'b'",
        overload("(STRING pattern, STRING input) -> STRING", _extract),
        overload("(STRING pattern, STRING input, INT group) -> STRING", _extract),
    ),
    scalar(
        "regexp_extract_all",
        _KIND,
        "All parts of a text that match a regular expression, or a group of each.",
        "REGEXP_EXTRACT_ALL('[0-9]', 'a1b2') -> ['1', '2']",
        overload("(STRING pattern, STRING input) -> ARRAY<STRING>", _extract_all),
        overload("(STRING pattern, STRING input, INT group) -> ARRAY<STRING>", _extract_all),
    ),
    scalar(
        "regexp_replace",
        _KIND,
        "A text with what matches a regular expression replaced; $1 stands for a group.",
        "REGEXP_REPLACE('a1b2', '[0-9]', '-') -> 'a-b-'",
        overload("(STRING str, STRING regexp, STRING newStr) -> STRING", _replace),
    ),
    scalar(
        "regexp_split_to_array",
        _KIND,
        "The parts of a text between matches of a regular expression.",
        "REGEXP_SPLIT_TO_ARRAY('a1b2c', '[0-9]') -> ['a', 'b', 'c']",
        overload("(STRING string, STRING regexp) -> ARRAY<STRING>", _split),
    ),
]
