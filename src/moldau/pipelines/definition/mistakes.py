"""Mistakes of a definition, each with the option that it is about."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.triggers import is_interval
from moldau.pipelines.definition.watermarks import Watermark

__all__ = ["VIEW", "Mistake", "Path", "delay", "mistake", "path_of", "suggestion", "topic_name"]

Path = tuple[str | int, ...]
VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Mistake:
    """`path` leads to the option that it is about; `place` is used where no document is known."""

    place: Place | None
    path: Path
    message: str
    hint: str | None


def path_of(where: str) -> Path:
    """`sources.orders` and `steps[2]` as paths."""
    if where.startswith("steps["):
        return ("steps", int(where[6:-1]))
    return tuple(where.split(".", 1))


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def mistake(
    place: Place | None, message: str, hint: str | None = None, *, at: str | None = None
) -> Mistake:
    """`at` is the option, if it is not the one that the message begins with."""
    where = message.partition(": ")[0]
    return Mistake(place, path_of(where) + (() if at is None else (at,)), message, hint)


def topic_name(topic: str, place: Place | None, where: str) -> Iterable[Mistake]:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield mistake(place, f"{where}: {topic!r} cannot be the name of a topic", at="topic")


def delay(watermark: Watermark, where: str) -> Iterable[Mistake]:
    if not is_interval(watermark.delay):
        yield mistake(
            watermark.place,
            f"{where}: watermark: delay {watermark.delay!r} is no time",
            "e.g. 10 minutes",
            at="watermark",
        )
