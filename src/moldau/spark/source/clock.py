"""Time as a source in Spark's driver sees it: it blocks, and it counts what its work costs."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["SourceClock", "SystemClock"]


class SourceClock(Protocol):
    def now_ms(self) -> int:
        """Wall time: is compared with the timestamps of records."""
        ...

    def elapsed_s(self) -> float:
        """Time that only goes forward."""
        ...

    def cpu_s(self) -> float:
        """What this process has used of a core."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_s(self) -> float:
        return time.monotonic()

    def cpu_s(self) -> float:
        return time.process_time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
