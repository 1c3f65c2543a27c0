"""Files and directories that are to be removed after a while."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from functools import partial

from moldau.broker.log.background import Background
from moldau.broker.log.disk import Disk
from moldau.times import WallMs

logger = logging.getLogger(__name__)


class Removals:
    """Removes in the background what has waited its delay (file.delete.delay.ms).

    Readers may still hold the files open or mapped; the system keeps their content until
    they close them. What a crash leaves behind is found by its name at the next start.
    """

    def __init__(self, disk: Disk, background: Background, now_ms: Callable[[], WallMs]) -> None:
        self._disk = disk
        self._background = background
        self._now_ms = now_ms
        self._queue: list[tuple[int, int, list[str], bool]] = []
        self._sequence = 0

    def files(self, paths: list[str], delay_ms: int) -> None:
        self._push(paths, delay_ms, tree=False)

    def directory(self, path: str, delay_ms: int) -> None:
        self._push([path], delay_ms, tree=True)

    def _push(self, paths: list[str], delay_ms: int, *, tree: bool) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self._now_ms() + delay_ms, self._sequence, paths, tree))

    @property
    def next_due_ms(self) -> int | None:
        return self._queue[0][0] if self._queue else None

    def run_due(self) -> None:
        now_ms = self._now_ms()
        while self._queue and self._queue[0][0] <= now_ms:
            _, _, paths, tree = heapq.heappop(self._queue)
            self._background.submit(partial(self._remove, paths, tree), _report)

    def _remove(self, paths: list[str], tree: bool) -> None:
        for path in paths:
            if tree:
                self._disk.remove_tree(path)
            else:
                self._disk.remove(path, missing_ok=True)


def _report(error: BaseException | None) -> None:
    if error is not None:
        logger.warning("cannot remove a deleted file yet: %s", error)
