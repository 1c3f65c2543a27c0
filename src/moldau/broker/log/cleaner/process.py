"""Workers as the broker sees them: a job goes in, events come out.

`SubprocessWorker` starts its process with the first job and ends it when closed, so a
broker with nothing to compact has no second process. `InlineWorker` does the work in
place, for simulations and tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from typing import Protocol

from moldau.broker.log.cleaner.compaction import run
from moldau.broker.log.cleaner.job import (
    CleanDone,
    CleanEvent,
    CleanFailed,
    CleanJob,
    decode_event,
)
from moldau.broker.log.disk import Disk

WORKER_MODULE = "moldau.broker.log.cleaner.worker"
# An event names the segments it replaces, about 20 bytes for each.
EVENT_SIZE_MAX = 16 * 1024 * 1024


class Worker(Protocol):
    def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
        """Do a job; the last event is CleanDone or CleanFailed."""

    async def kill(self) -> None:
        """Stop whatever runs, at once; nothing is written after this returns."""

    async def close(self) -> None:
        """No more jobs for now: give back what the worker holds."""


class InlineWorker:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
        for event in run(CleanJob.decode(job.encode()), self._disk, lambda _count: None):
            yield event

    async def kill(self) -> None:
        return

    async def close(self) -> None:
        return


class SubprocessWorker:
    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                WORKER_MODULE,
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=EVENT_SIZE_MAX,
            )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the worker's pipes are missing")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(job.encode())
            await process.stdin.drain()
        while True:
            line = await process.stdout.readline()
            if not line.endswith(b"\n"):
                code = await process.wait()
                self._process = None
                yield CleanFailed(f"{job.directory}: the worker ended with {code}", corrupt=False)
                return
            event = decode_event(line)
            yield event
            if isinstance(event, CleanDone | CleanFailed):
                return

    async def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            # It has no job, so the end of its input ends it.
            process.stdin.close()
            await process.wait()
