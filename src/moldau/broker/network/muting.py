"""The time for which a connection handles no further request: its client exceeded a quota."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.broker.network.context import ConnectionInfo


class Muting:
    """Lasts as long as the last handler asked for (`ConnectionInfo.mute_ms`, KIP-219)."""

    __slots__ = ("_info", "_loop", "_on_over", "_timer", "active")

    def __init__(
        self,
        info: ConnectionInfo,
        loop: asyncio.AbstractEventLoop,
        on_over: Callable[[], None],
    ) -> None:
        self._info = info
        self._loop = loop
        self._on_over = on_over
        self._timer: asyncio.TimerHandle | None = None
        self.active = False

    def begin(self) -> None:
        """Mute from now on for `mute_ms`."""
        self.cancel()
        self._timer = self._loop.call_later(self._info.mute_ms / 1000, self._end)
        self._info.mute_ms = 0
        self.active = True

    def cancel(self) -> None:
        self.active = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self.cancel()
        self._info.phases.forget()
        self._on_over()
