"""Java's regular expressions, translated to Python's.

Classes such as \\d are ASCII in Java, so patterns are compiled with re.ASCII. What Python has no
equivalent for, class intersections above all, is an error.
"""

from __future__ import annotations

import re
from functools import lru_cache

from moldau.sql.functions.errors import FunctionError

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t\\n\\x0b\\f\\r",
    # Unicode's classes, for the letters of Latin, Greek and Cyrillic scripts.
    "L": "a-zA-Z\\u00aa\\u00b5\\u00ba\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02c1\\u0370-\\u0373"
    "\\u0376-\\u037d\\u037f\\u0386-\\u0481\\u048a-\\u0556\\u0561-\\u0587\\u05d0-\\u05ea"
    "\\u0620-\\u064a\\u0900-\\u0d7f\\u1e00-\\u1fff\\u3040-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7a3",
    "Lu": "A-Z\\u00c0-\\u00d6\\u00d8-\\u00de\\u0391-\\u03a9\\u0410-\\u042f",
    "Ll": "a-z\\u00df-\\u00f6\\u00f8-\\u00ff\\u03b1-\\u03c9\\u0430-\\u044f",
    "N": "0-9\\u00b2\\u00b3\\u00b9\\u00bc-\\u00be\\u0660-\\u0669",
    "Nd": "0-9\\u0660-\\u0669",
    "Z": " \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000",
    "P": "!-#%-*,-/:;?@\\[-\\]_{}\\u00a1\\u00a7\\u00ab\\u00b6\\u00b7\\u00bb\\u00bf\\u2010-\\u2027",
    "S": "$+<->^`|~\\u00a2-\\u00a9\\u00ac\\u00ae-\\u00b1\\u20a0-\\u20bf\\u2190-\\u23ff",
}
_ALIASES = {
    "IsAlphabetic": "L",
    "IsLetter": "L",
    "IsL": "L",
    "javaLowerCase": "Ll",
    "IsLowercase": "Ll",
    "javaUpperCase": "Lu",
    "IsUppercase": "Lu",
    "IsDigit": "Nd",
    "IsPunctuation": "P",
    "IsWhite_Space": "Space",
}
_ESCAPES = {
    "h": ("[ \\t\\xa0]", " \\t\\xa0"),
    "e": ("\\x1b", "\\x1b"),
    "R": ("(?:\\r\\n|[\\n\\x0b\\f\\r\\x85\\u2028\\u2029])", ""),
    "z": ("\\Z", ""),
    "Z": ("(?=\\n?\\Z)", ""),
    "G": ("\\A", ""),
}


@lru_cache(maxsize=1000)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError):
        raise FunctionError(f"Invalid regular expression pattern: {pattern}") from None


def _translated(pattern: str) -> str:
    out: list[str] = []
    position = 0
    in_class = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "\\":
            position = _escape(pattern, position, out, in_class=bool(in_class))
            continue
        if letter == "[":
            if in_class:
                raise FunctionError(f"Invalid regular expression pattern: {pattern}")
            in_class += 1
            out.append("[")
            position += 1
            if pattern.startswith("^", position):
                out.append("^")
                position += 1
            continue
        if letter == "]" and in_class:
            in_class -= 1
        if in_class and pattern.startswith("&&", position):
            raise FunctionError(f"Invalid regular expression pattern: {pattern}")
        if not in_class and re.match(r"\(\?<[A-Za-z]", pattern[position : position + 4]):
            out.append("(?P<")
            position += 3
            continue
        out.append(letter)
        position += 1
    return "".join(out)


def _escape(pattern: str, position: int, out: list[str], *, in_class: bool) -> int:
    following = pattern[position + 1 : position + 2]
    if following == "Q":
        end = pattern.find("\\E", position + 2)
        end = len(pattern) if end < 0 else end
        out.append(re.escape(pattern[position + 2 : end]))
        return end + 2
    if following in ("p", "P"):
        found = re.match(r"\{\^?(\w+)\}|(\w)", pattern[position + 2 :])
        name = (found[1] or found[2]) if found else ""
        inner = _POSIX.get(_ALIASES.get(name, name))
        if found is None or inner is None or (in_class and following == "P"):
            raise FunctionError(f"Invalid regular expression pattern: {pattern}")
        out.append(inner if in_class else f"[{'^' if following == 'P' else ''}{inner}]")
        return position + 2 + found.end()
    if following == "x" and pattern.startswith("{", position + 2):
        end = pattern.find("}", position)
        out.append(re.escape(chr(int(pattern[position + 3 : end], 16))))
        return end + 1
    if following == "k":
        found = re.match(r"<(\w+)>", pattern[position + 2 :])
        if found is not None:
            out.append(f"(?P={found[1]})")
            return position + 2 + found.end()
    replacement = _ESCAPES.get(following)
    if replacement is not None:
        out.append(replacement[1] if in_class else replacement[0])
        return position + 2
    if following and not (following.isascii() and following.isalnum()):
        out.append(re.escape(following))
    else:
        out.append("\\" + following)
    return position + 2


def expand(template: str, match: re.Match[str]) -> str:
    """Java's replacement: $1 and ${name} are groups, a backslash takes the meaning away."""
    out: list[str] = []
    position = 0
    while position < len(template):
        letter = template[position]
        if letter == "\\":
            if position + 1 == len(template):
                raise FunctionError("character to be escaped is missing")
            out.append(template[position + 1])
            position += 2
        elif letter == "$":
            text, position = _group(template, position, match)
            out.append(text)
        else:
            out.append(letter)
            position += 1
    return "".join(out)


def _group(template: str, position: int, match: re.Match[str]) -> tuple[str, int]:
    named = re.match(r"\$\{(\w+)\}", template[position:])
    if named is not None:
        if named[1] not in match.re.groupindex:
            raise FunctionError(f"No group with name {{{named[1]}}}")
        return match[named[1]] or "", position + named.end()
    digits = re.match(r"\$(\d+)", template[position:], re.ASCII)
    if digits is None:
        raise FunctionError("Illegal group reference")
    number, used = int(digits[1][0]), 1
    if number > match.re.groups:
        raise FunctionError(f"No group {number}")
    # As many digits as still name a group.
    while used < len(digits[1]) and number * 10 + int(digits[1][used]) <= match.re.groups:
        number = number * 10 + int(digits[1][used])
        used += 1
    return match[number] or "", position + 1 + used


def java_split(pattern: re.Pattern[str], text: str) -> list[str]:
    """Pattern.split: no empty text before a match of nothing at the start, none at the end."""
    parts: list[str] = []
    start = 0
    for found in pattern.finditer(text):
        if found.end() == 0 or (found.start() == found.end() == len(text)):
            continue
        parts.append(text[start : found.start()])
        start = found.end()
    parts.append(text[start:])
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts
