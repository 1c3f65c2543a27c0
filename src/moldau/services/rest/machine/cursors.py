"""Cursors: positions in a topic as text, `0:15,2:7` for partition and next offset.

They are all the state of reading over v3: any proxy continues with one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from moldau.http.machine.errors import HttpError

__all__ = ["format_cursor", "parse_cursor"]

_PAIR: Final = re.compile(r"([0-9]{1,9}):([0-9]{1,18})")
_LENGTH_MAX: Final = 64 * 1024


def format_cursor(positions: Mapping[int, int]) -> str:
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def parse_cursor(text: str) -> dict[int, int]:
    """Raises HttpError with 400."""
    if len(text) > _LENGTH_MAX:
        raise _invalid(text)
    found: dict[int, int] = {}
    for part in text.split(","):
        match = _PAIR.fullmatch(part.strip())
        if match is None or int(match[1]) in found:
            raise _invalid(text)
        found[int(match[1])] = int(match[2])
    return found


def _invalid(text: str) -> HttpError:
    return HttpError(
        400, f"cursor {text[:100]} is not of the form partition:offset,partition:offset"
    )
