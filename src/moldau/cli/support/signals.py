"""SIGINT and SIGTERM for tools that wait in a client: they end in order, leaving their group."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Signals"]


class Signals(AbstractContextManager["Signals"]):
    """While it is entered, SIGINT and SIGTERM set `received` and call `wake` in another thread.

    Another thread, because a signal may come while this one holds the client's own locks.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._previous: dict[int, Any] = {}
        self.received = 0

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.received:
            # The second one ends the tool at once.
            raise KeyboardInterrupt
        self.received = number
        threading.Thread(target=self._wake, daemon=True).start()

    @property
    def exit_code(self) -> int:
        """The code of a process that the signal ended; 0 without one."""
        return 128 + self.received if self.received else 0
