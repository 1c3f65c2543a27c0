"""Which tables a source copies, and which columns it follows in each.

A table is named by its parts: catalogue and schema as far as the database has them, then its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from moldau.connect.api.errors import ConnectError

Name = tuple[str, ...]


def listed(names: Iterable[Name]) -> str:
    """Names as a text that `parse_names` reads, whatever is in them."""
    return ",".join(".".join(map(_part, name)) for name in names)


def _part(text: str) -> str:
    if re.fullmatch(r"[^\s.,\"`]+", text):
        return text
    return '"' + text.replace('"', '""') + '"'


_PART = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^.,"`]*')


def parse_names(text: str) -> list[Name]:
    """Names between commas, whose parts are between dots and may be in quotes."""
    found: list[Name] = []
    parts: list[str] = []
    at = 0
    while text:
        match = _PART.match(text, at)
        part = match.group() if match is not None else ""
        end = at + len(part)
        if end < len(text) and text[end] not in ".,":
            raise ValueError(f"{text!r} has a quote within a name")
        parts.append(_unquoted(part))
        if end == len(text) or text[end] == ",":
            found.append(tuple(parts))
            parts = []
        if end == len(text):
            return found
        at = end + 1
    return found


def _unquoted(part: str) -> str:
    if part[:1] in ('"', "`"):
        return part[1:-1].replace(part[0] * 2, part[0])
    return part.strip()


def selected(
    names: Iterable[Name],
    *,
    whitelist: Collection[str] = (),
    blacklist: Collection[str] = (),
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    quote: str = '"',
) -> list[Name]:
    """`whitelist` and `blacklist` are names of tables, with or without what is above them and with
    or without quotes; `include` and `exclude` regular expressions of full names."""
    return [
        name for name in names if _is_selected(name, whitelist, blacklist, include, exclude, quote)
    ]


def _is_selected(
    name: Name,
    whitelist: Collection[str],
    blacklist: Collection[str],
    include: Collection[str],
    exclude: Collection[str],
    quote: str,
) -> bool:
    if include or exclude:
        full = ".".join(name)
        return _matches(include, full) and not _matches(exclude, full)
    forms = {".".join(name[start:]) for start in range(len(name))}
    forms.add(".".join(f"{quote}{part}{quote}" for part in name))
    return (not whitelist or bool(forms & set(whitelist))) and not forms & set(blacklist)


def _matches(patterns: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def check_distinct(names: Iterable[Name]) -> None:
    """ConnectError if two tables would be one topic."""
    by_table: dict[str, list[str]] = {}
    for name in names:
        by_table.setdefault(name[-1], []).append(".".join(name))
    twice = [each for each in by_table.values() if len(each) > 1]
    if twice:
        raise ConnectError(
            "The connector uses the unqualified table name as the topic name and has detected "
            "duplicate unqualified table names. This could lead to mixed data types in the topic. "
            "Choose one of each by table.whitelist, table.blacklist or schema.pattern: "
            + "; ".join(", ".join(each) for each in twice)
        )


def parse_mapping(text: str) -> tuple[str, tuple[str, ...]]:
    """`REGEX:COLUMN` or `REGEX:[COLUMN|COLUMN]`. Raises ValueError."""
    pattern, separator, columns = text.rpartition(":")
    names = columns.strip().removeprefix("[").removesuffix("]").split("|")
    found = tuple(each.strip() for each in names if each.strip())
    if not separator or not pattern.strip() or not found:
        raise ValueError(f"{text!r} is not REGEX:COLUMN or REGEX:[COLUMN|COLUMN]")
    re.compile(pattern.strip())
    return pattern.strip(), found


def columns_of(mappings: Sequence[str], table: str, key: str) -> tuple[str, ...]:
    """Those of the one mapping that a full name matches. Raises ConnectError."""
    parsed = [parse_mapping(each) for each in mappings]
    found = [names for pattern, names in parsed if re.fullmatch(pattern, table)]
    if len(found) != 1:
        many = "more than one of" if found else "none of"
        raise ConnectError(f"table {table} matches {many} the regular expressions of {key}")
    return found[0]
