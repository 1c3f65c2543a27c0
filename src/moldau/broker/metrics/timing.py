"""How long something takes."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


class timed:
    """Pass the milliseconds that the block takes to `record`, also if it fails.

    A class, not a generator: every request to a coordinator enters one.
    """

    __slots__ = ("_began_s", "_record")

    def __init__(self, record: Callable[[float], None] | None) -> None:
        self._record = record
        self._began_s = 0.0

    def __enter__(self) -> None:
        self._began_s = perf_counter()

    def __exit__(self, *_: object) -> None:
        if self._record is not None:
            self._record((perf_counter() - self._began_s) * 1000)
