"""Lifecycle: how a task is started, paused, stopped and, if it does not stop, abandoned.

| from | event | to |
|---|---|---|
| starting | `started` | running, or paused if that is wanted |
| running | `pause` | paused, after the current call |
| paused | `resume` | running |
| any | `stop` | stopping: the thread ends soon |
| stopping | `abandon` | its thread is left alone and may no longer report or commit |
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from moldau.connect.machine.ids import State

_WAIT_S = 1.0


class Lifecycle:
    """`on_state` is called in the task's thread when it really runs or pauses."""

    def __init__(self, on_state: Callable[[State], None], *, paused: bool) -> None:
        self.stopping = threading.Event()
        self.abandoned = False
        self._resumed = threading.Event()
        self._on_state = on_state
        self._shown: State | None = None
        if not paused:
            self._resumed.set()

    @property
    def paused(self) -> bool:
        return not self._resumed.is_set()

    def started(self) -> None:
        self._show(State.PAUSED if self.paused else State.RUNNING)

    def _show(self, state: State) -> None:
        if self._shown is not state and not self.abandoned:
            self._shown = state
            self._on_state(state)

    def pause(self) -> None:
        self._resumed.clear()

    def resume(self) -> None:
        self._resumed.set()

    def stop(self) -> None:
        self.stopping.set()
        self._resumed.set()

    def abandon(self) -> None:
        self.abandoned = True

    def wait_while_paused(self) -> bool:
        """For sources: whether the task was paused, in which case the state may have changed."""
        if self._resumed.is_set():
            return False
        self._show(State.PAUSED)
        while not self._resumed.wait(_WAIT_S):
            pass
        if not self.stopping.is_set():
            self._show(State.RUNNING)
        return True

    def note(self) -> None:
        """For sinks, which keep polling while they are paused."""
        self._show(State.PAUSED if self.paused else State.RUNNING)
