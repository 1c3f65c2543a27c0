"""Send malformed frames to a broker, and watch it and a client that behaves.

    python -m fuzz --frames 1000000 --seed 7

Requests of every API and version with wrong lengths, counts, tags and texts, bytes that are none,
TLS records and logins, before and after a login, whole, in bytes and in halves. The run fails, with
exit code 1 and the broker's log kept, if the broker ends, logs a bug, keeps memory or sockets, or
if the other client sees an error or misses a record. Frames depend on the seed and their number
only: `--first N --frames 1` sends one of them.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console

from fuzz.attack import Attack, Broken
from fuzz.bystander import Bystander
from fuzz.target import Target, missing

#: What a run may leave in memory: caches and codecs fill up, whatever the number of frames.
MEMORY_GROWTH_BYTES_MAX: Final = 80_000_000
DESCRIPTORS_GROWTH_MAX: Final = 2
#: Frames before the first measurement, so that code and codecs are loaded.
WARM_UP_FRAMES: Final = 2_000
REPORT_EVERY: Final = 50_000
_SETTLE_SECONDS_MAX: Final = 30.0


class Log:
    """The broker's log, read as it grows; what is read is dropped, since every frame has a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = path.with_suffix(".bugs")

    def bugs(self) -> list[str]:
        """Lines at ERROR and their tracebacks since the last call."""
        text = self._path.read_text(errors="replace")
        os.truncate(self._path, 0)
        found: list[str] = []
        for line in text.split("\n"):
            if " ERROR " in line or " CRITICAL " in line:
                found.append(line)
            elif found and not line.startswith("["):
                found[-1] += "\n" + line
        if found:
            with self._kept.open("a") as kept:
                kept.write(text)
        return found


class Run:
    def __init__(self, target: Target, *, seed: int, console: Console, seconds_max: float) -> None:
        self._target = target
        self._console = console
        self._deadline = time.monotonic() + seconds_max
        self._log = Log(target.broker.log)
        self._bystander = Bystander(target.client)
        self._sent = 0
        self._attack = Attack(target, seed, self._on_case)
        self.problems: list[str] = []
        self._bugs_seen: set[str] = set()

    def _on_case(self) -> None:
        self._sent += 1

    async def whole(self, *, first: int, count: int) -> None:
        warm_up = min(WARM_UP_FRAMES, count // 2)
        await self._part(first, warm_up)
        await self._settle(None)
        memory, sockets = self._target.memory_bytes(), self._target.descriptors()
        self._bystander.start()
        began, sent = time.monotonic(), self._sent
        position, end = first + warm_up, first + count
        while position < end and self._target.running and time.monotonic() < self._deadline:
            size = min(REPORT_EVERY // 10, end - position)
            await self._part(position, size)
            position += size
            if (position - first) % REPORT_EVERY < size:
                megabytes = self._target.memory_bytes() / 1e6
                rate = (self._sent - sent) / (time.monotonic() - began)
                self._console.print(
                    f"{self._sent:>9,} frames, {rate:,.0f} per second, broker at {megabytes:.0f} MB"
                )
        seconds = time.monotonic() - began
        rate = (self._sent - sent) / seconds if seconds else 0.0
        await asyncio.to_thread(self._bystander.finish)
        self.problems += self._bystander.errors
        await self._settle(sockets)
        self._report(memory=memory, sockets=sockets, rate=rate)

    async def _part(self, first: int, count: int) -> None:
        try:
            await self._attack.run(first, count)
        except* (Broken, TimeoutError) as group:
            self.problems += [str(error) or repr(error) for error in group.exceptions]
        if not self._target.running:
            self.problems.append(f"the broker ended:\n{self._target.broker.output()}")
        for bug in self._log.bugs():
            # The same one comes with thousands of frames.
            end = bug.rstrip().rpartition("\n")[2].rpartition("] ERROR ")[2]
            if end not in self._bugs_seen:
                self._bugs_seen.add(end)
                self.problems.append(bug)

    async def _settle(self, sockets: int | None) -> None:
        """Closed connections are seen a moment later."""
        deadline = time.monotonic() + (1.0 if sockets is None else _SETTLE_SECONDS_MAX)
        while time.monotonic() < deadline and self._target.running:
            if sockets is not None and self._target.descriptors() <= sockets:
                return
            await asyncio.sleep(0.1)

    def _report(self, *, memory: int, sockets: int, rate: float) -> None:
        show = self._console.print
        counts = self._attack.outcomes
        shown = ", ".join(f"{what} {number:,}" for what, number in counts.most_common())
        show(f"{self._sent:,} frames, {rate:,.0f} per second: {shown}")
        for place, number in self._attack.places.most_common():
            show(f"  {place.value}: {number:,}")
        if self._target.running:
            memory_after, sockets_after = self._target.memory_bytes(), self._target.descriptors()
            show(f"memory {memory / 1e6:.0f} MB before, {memory_after / 1e6:.0f} MB after")
            show(f"sockets {sockets} before, {sockets_after} after")
            if memory_after - memory > MEMORY_GROWTH_BYTES_MAX:
                self.problems.append(f"memory grew by {(memory_after - memory) / 1e6:.0f} MB")
            if sockets_after - sockets > DESCRIPTORS_GROWTH_MAX:
                self.problems.append(f"sockets were not closed: {self._target.connections()}")
        latencies = sorted(self._bystander.latencies_s) or [0.0]
        show(
            f"the other client: {len(self._bystander.read):,} records written and read, "
            f"{len(self._bystander.errors)} errors, median "
            f"{statistics.median(latencies) * 1e3:.1f} ms, p99 "
            f"{latencies[len(latencies) * 99 // 100] * 1e3:.0f} ms, worst "
            f"{latencies[-1] * 1e3:.0f} ms"
        )


def run(
    folder: Path,
    *,
    frames: int,
    seed: int,
    console: Console,
    first: int = 0,
    seconds_max: float = float("inf"),
) -> list[str]:
    """The problems that were found."""
    target = Target(folder)
    target.start()
    try:
        whole = Run(target, seed=seed, console=console, seconds_max=seconds_max)
        # Most frames have a connection of their own: a fifth less CPU on this side than by asyncio.
        uvloop.run(whole.whole(first=first, count=frames))
    finally:
        target.broker.kill()
    return whole.problems


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, help="which frames; others each time if not set")
    parser.add_argument("--first", type=int, default=0, help="the first frame's number")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most so long")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    # It warns of every write to a connection that the broker has closed.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"seed {seed}")
    if (reason := missing()) is not None:
        console.print(f"cannot run here: {reason}")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="moldau-fuzz-"))
    problems = run(
        folder,
        frames=options.frames,
        seed=seed,
        console=console,
        first=options.first,
        seconds_max=options.seconds,
    )
    for problem in problems:
        console.print(problem, markup=False)
    if problems:
        console.print(f"{len(problems)} problems with seed {seed}; kept: {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
