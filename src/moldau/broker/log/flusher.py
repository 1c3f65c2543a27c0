"""Making a log durable without stalling the loop.

Decides which files an fsync must cover and when the recovery point may move. Invariants: the
recovery point only moves after every fsync below it has succeeded, one flush
of a log runs at a time, and requests that come meanwhile are served together by the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, Protocol

from moldau.broker.log.context import LogContext, LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.segments import Segments
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode

Waiter = Callable[[BaseException | None], None]

#: A log that is flushed has a few descriptors open.
FLUSHED_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class FlushPlan:
    """One flush: what a thread must do, and what holds when it is done."""

    up_to: int
    syncs: tuple[Callable[[], None], ...]
    # Changes in the directory and replaced files, by their numbers, that it covers.
    change: int
    replaced: dict[str, int]

    def run(self) -> None:
        for index, sync in enumerate(self.syncs):
            try:
                sync()
            except BaseException:
                # Each holds a descriptor that must be given back.
                for rest in self.syncs[index + 1 :]:
                    try:
                        rest()
                    except OSError:
                        continue
                raise


class Flusher:
    __slots__ = (
        "_change",
        "_change_synced",
        "_closed",
        "_context",
        "_cut",
        "_dir_state",
        "_replaced",
        "_running",
        "_segments",
        "_unwritten",
        "_waiters",
        "_wanted",
        "_whole",
        "directory",
        "last_flush_ms",
        "recovery_point",
    )

    def __init__(
        self,
        context: LogContext,
        dir_state: LogDirState,
        directory: str,
        segments: Segments,
        recovery_point: int,
        now_ms: WallMs,
        new_files: bool = True,
    ) -> None:
        self._context = context
        self._dir_state = dir_state
        self._segments = segments
        self.directory = directory
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        # New files are durable only when their directory is: changes are counted, and those
        # synced are known when a flush has ended, not when it begins.
        self._change = 1 if new_files else 0
        self._change_synced = 0
        # Names of files replaced as a whole since the last flush; a dict, because the order
        # of syncs must be the same in every run of the simulator.
        self._replaced: dict[str, int] = {}
        # Small files that are to be replaced with the next flush, and by what.
        self._unwritten: dict[str, Callable[[], bytes]] = {}
        self._running = False
        # Where the log was cut while a flush ran: beyond it the flush proves nothing.
        self._cut: int | None = None
        self._wanted = recovery_point
        # Offset and number of the change in the directory that each waits for.
        self._waiters: list[tuple[int, int, Waiter]] = []
        self._closed = False
        self._whole = False

    def note_new_file(self, name: str | None = None) -> None:
        """The directory has a new segment, or the small file `name` has been replaced."""
        self._change += 1
        if name is not None:
            self._replaced[name] = self._change
            self._unwritten.pop(name, None)

    def note_unwritten(self, name: str, content: Callable[[], bytes]) -> None:
        """The small file `name` is to hold what `content` then gives, from the next flush on.

        For what the batches above the recovery point tell as well: a crash loses nothing.
        """
        self._change += 1
        self._unwritten[name] = content
        self._context.unwritten[self] = None

    @property
    def _dir_changed(self) -> bool:
        return self._change > self._change_synced

    def needs_sync(self, up_to: int) -> bool:
        """Whether anything below `up_to`, or a name in the directory, may not be durable."""
        return up_to > self.recovery_point or self._dir_changed

    def plan(self, up_to: int) -> FlushPlan | None:
        """What makes everything below `up_to` durable; None when it is already."""
        if not self.needs_sync(up_to):
            return None
        self.write_small_files()
        syncs: list[Callable[[], None]] = []
        active = self._segments.active
        for segment in self._segments.overlapping(self.recovery_point, up_to):
            if segment is active:
                # Its indexes are rebuilt after a crash anyway.
                syncs.append(segment.file.begin_sync())
            else:
                syncs += segment.begin_sync()
        disk, directory = self._context.disk, self.directory
        for name in self._replaced:
            file = disk.open(f"{directory}/{name}")
            syncs.append(file.begin_sync())
            file.close()
        if self._dir_changed:
            syncs.append(partial(_sync_dir, disk, directory))
        return FlushPlan(up_to, tuple(syncs), self._change, dict(self._replaced))

    def write_small_files(self, *, stopping: bool = False) -> None:
        """Write the files that wait for a flush; durable they are only after it.

        If the broker is `stopping`, a file is replaced in two steps: a rename over an existing file
        makes ext4 write its content at once, which takes most of a stop where there are thousands.
        After a crash between the steps the batches have it all, but all of them must be read.
        """
        disk = self._context.disk
        for name, content in list(self._unwritten.items()):
            path, data = f"{self.directory}/{name}", content()
            try:
                # Nothing is lost if it remains incomplete: the batches have it all.
                disk.write_new(path, data)
            except FileExistsError:
                if stopping:
                    disk.remove(path)
                    disk.write_new(path, data)
                else:
                    disk.write_atomic(path, data, sync=False)
            self.note_new_file(name)
        self._context.unwritten.pop(self, None)

    def write_ahead(self) -> None:
        """Write the small files before a flush asks for it, and the last entries of the indexes:
        those of thousands of logs, most of them idle again, would make a stop long."""
        try:
            self.write_small_files()
            self._segments.active.complete_indexes()
            self._segments.active.release()
        except OSError as error:
            raise self._dir_state.fail(f"writing in {self.directory}", error) from error

    def flush_now(self, up_to: int, now_ms: WallMs) -> None:
        """Flush in place; for stops, tools and tests."""
        try:
            plan = self.plan(up_to)
            if plan is not None:
                plan.run()
        except OSError as error:
            raise self._dir_state.fail(f"fsync in {self.directory}", error) from error
        if plan is not None:
            self._finished(plan, plan.up_to, now_ms)

    def request(self, up_to: int, now_ms: WallMs, waiter: Waiter | None = None) -> None:
        """Flush in the background; `waiter` is called when `up_to` is durable or lost."""
        if self._closed or self._dir_state.failure is not None:
            if waiter is not None:
                failure = self._dir_state.failure
                waiter(_gone() if failure is None else failure.again())
            return
        if not self.needs_sync(up_to):
            if waiter is not None:
                waiter(None)
            return
        self._wanted = max(self._wanted, up_to)
        if waiter is not None:
            self._waiters.append((up_to, self._change, waiter))
        if not self._running:
            self._start(now_ms)

    def _start(self, now_ms: WallMs) -> None:
        try:
            plan = self.plan(self._wanted)
        except OSError as error:
            self._failed(error)
            return
        if plan is None:
            self._wake()
            return
        self._running = True
        began_s = perf_counter()

        def done(error: BaseException | None) -> None:
            self._running = False
            if self._context.on_flushed is not None:
                self._context.on_flushed((perf_counter() - began_s) * 1000)
            if self._closed:
                return
            if error is not None:
                self._failed(error)
                return
            up_to = plan.up_to if self._cut is None else min(plan.up_to, self._cut)
            self._cut = None
            self._finished(plan, up_to, now_ms)
            self._wake()
            if self._wanted > self.recovery_point or self._waiters:
                self._start(now_ms)

        self._context.background.submit(plan.run, done)

    def _finished(self, plan: FlushPlan, up_to: int, now_ms: WallMs) -> None:
        self._change_synced = max(self._change_synced, plan.change)
        self._replaced = {
            name: change for name, change in self._replaced.items() if change > plan.change
        }
        self.recovery_point = max(self.recovery_point, up_to)
        self.last_flush_ms = max(self.last_flush_ms, now_ms)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for up_to, change, waiter in waiters:
            if up_to <= self.recovery_point and change <= self._change_synced:
                waiter(None)
            else:
                self._waiters.append((up_to, change, waiter))

    def _failed(self, error: BaseException) -> None:
        failure = self._dir_state.fail(f"fsync in {self.directory}", error)
        waiters, self._waiters = self._waiters, []
        for _, _, waiter in waiters:
            waiter(failure)

    def close(self) -> None:
        """The log is closed: its files may be gone any moment, so nothing is flushed now."""
        self._closed = True
        self._context.unwritten.pop(self, None)
        waiters, self._waiters = self._waiters, []
        for _, _, waiter in waiters:
            waiter(_gone())

    def closed_cleanly(self, end_offset: int) -> None:
        """All files of the log, which ends there, are complete and durable, indexes included."""
        self.recovery_point = end_offset
        self._whole = True

    def truncated(self, end_offset: int) -> None:
        """Offsets from `end_offset` on are gone; nothing there is durable any more."""
        self.recovery_point = min(self.recovery_point, end_offset)
        self._wanted = min(self._wanted, end_offset)
        if self._running:
            self._cut = end_offset if self._cut is None else min(self._cut, end_offset)
        lost = [waiter for up_to, _, waiter in self._waiters if up_to > end_offset]
        self._waiters = [entry for entry in self._waiters if entry[0] <= end_offset]
        for waiter in lost:
            waiter(_gone())

    def rolled_at(self, base_offset: int) -> None:
        """The segment before `base_offset` is closed: its indexes must become durable, too.

        Until then the recovery point stays inside of it, even if all its batches are durable,
        because the next start trusts the indexes of everything below the recovery point.
        """
        self.recovery_point = min(self.recovery_point, base_offset - 1)
        if self._running:
            self._cut = base_offset - 1 if self._cut is None else min(self._cut, base_offset - 1)

    @property
    def checkpoint(self) -> int:
        """The recovery point as it is to be written down. After a clean stop the indexes are
        durable, too, and nothing is rolled later: then it is the end."""
        if self._whole:
            return self.recovery_point
        return checkpoint_of(self.recovery_point, self._segments.active.base_offset)

    def started_at(self, start_offset: int) -> None:
        """Nothing below the log's start needs recovery."""
        self.recovery_point = max(self.recovery_point, start_offset)
        self._wanted = max(self._wanted, start_offset)


def checkpoint_of(recovery_point: int, active_base_offset: int) -> int:
    """Inside the active segment rather than at its end, which is where a segment that is rolled
    later begins."""
    return recovery_point - 1 if recovery_point > active_base_offset else recovery_point


class Flushable(Protocol):
    async def flush_async(self, *, now_ms: WallMs) -> None: ...


async def flush_together(logs: Iterable[Flushable], now_ms: WallMs) -> None:
    """Make logs durable, several at a time: a file system writes its journal once for all that
    wait. What fails has taken its log directory offline."""
    waiting = iter(logs)

    async def flush_in_turn() -> None:
        for log in waiting:
            with contextlib.suppress(ApiError):
                await log.flush_async(now_ms=now_ms)

    await asyncio.gather(*(flush_in_turn() for _ in range(FLUSHED_AT_ONCE)))


def _gone() -> ApiError:
    return ApiError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, "the records were cut or the log closed before a flush"
    )


def _sync_dir(disk: Disk, directory: str) -> None:
    # A directory renamed meanwhile belongs to a partition that was deleted or moved.
    with contextlib.suppress(FileNotFoundError):
        disk.sync_dir(directory)
