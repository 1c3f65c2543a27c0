"""How long something takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def timed(record: Callable[[float], None] | None) -> Iterator[None]:
    """Pass the milliseconds that the block takes to `record`, also if it fails."""
    began_s = perf_counter()
    try:
        yield
    finally:
        if record is not None:
            record((perf_counter() - began_s) * 1000)
