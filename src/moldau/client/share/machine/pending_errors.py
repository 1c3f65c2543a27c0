"""The errors that the next polls raise, one each.

Invariants: no more than `ERRORS_MAX` wait, none of them twice. The loop adds while the application
takes; a deque's ends are safe to use from both.
"""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["ERRORS_MAX", "PendingErrors"]

#: An application that does not poll must not collect what every metadata response repeats.
ERRORS_MAX: Final = 16


class PendingErrors:
    """See the module."""

    def __init__(self) -> None:
        self._errors: deque[BaseException] = deque()

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, error: BaseException) -> bool:
        """Whether the error will be raised; it is dropped if too many wait."""
        waiting = tuple(self._errors)
        if any(type(each) is type(error) and str(each) == str(error) for each in waiting):
            return True
        if len(waiting) >= ERRORS_MAX:
            return False
        self._errors.append(error)
        return True

    def raise_first(self) -> None:
        """Raise the oldest, if there is one."""
        if self._errors:
            raise self._errors.popleft()
