"""Waits until a descriptor can be read, whatever its number.

`select.select` refuses numbers from 1,024 on, which a process with many files or clients reaches.
"""

from __future__ import annotations

import select
from typing import Protocol

__all__ = ["wait_readable"]


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


def wait_readable(source: int | HasDescriptor, timeout_s: float) -> bool:
    """Whether there is something to read, or the end, within the time."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_s) * 1000))
