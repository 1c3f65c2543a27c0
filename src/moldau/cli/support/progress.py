"""Progress of long operations, on standard error so that standard output has only results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Progress", "progress"]


class Progress(Protocol):
    """Progress of an operation."""

    def advance(self, count: float = 1) -> None: ...

    def update(self, completed: float) -> None: ...


class _Silent:
    def advance(self, count: float = 1) -> None:
        return

    def update(self, completed: float) -> None:
        return


@contextmanager
def progress(
    description: str, *, total: float | None = None, unit: str = "records"
) -> Iterator[Progress]:
    """Shows progress, rate and time left on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from moldau.cli.support.progress_bar import Bar

    bar = Bar(description, total, unit)
    try:
        yield bar
    finally:
        bar.close()
