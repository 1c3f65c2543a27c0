"""Two kinds of time, as types, so that a type checker finds where one is taken for the other.

Both are milliseconds. A sum or a difference of either is a plain int.
"""

from __future__ import annotations

from typing import Final, NewType

WallMs = NewType("WallMs", int)
"""Since 1970: goes into records and files, and jumps when somebody sets the clock."""

ElapsedMs = NewType("ElapsedMs", int)
"""Since some moment: only goes forward, so sessions, delays and rates are measured with it."""

# For callers to whom the time makes no difference.
WALL_ZERO: Final = WallMs(0)
ELAPSED_ZERO: Final = ElapsedMs(0)
