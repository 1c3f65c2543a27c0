"""The process beside the broker that compacts: jobs in on stdin, events out on stdout.

It ends when stdin does, when its broker is gone, or when killed; the broker drops whatever
it has not announced. It never touches a file that the broker writes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

from moldau.broker.log.cleaner.compaction import run
from moldau.broker.log.cleaner.job import CleanJob, encode_event
from moldau.broker.log.disk import OsDisk

# Enough to stay out of the broker's way on a busy machine, and not to starve there.
NICENESS = 10
SLEEP_S_MAX = 0.5


class Throttle:
    """Keeps the reported bytes below a rate by waiting when they are ahead of it."""

    def __init__(
        self,
        bytes_per_second_max: float,
        now_s: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._rate = bytes_per_second_max
        self._now_s = now_s
        self._sleep = sleep
        self._due_s = now_s()

    def on_bytes(self, count: int) -> None:
        now_s = self._now_s()
        # Time without work is not saved up for a burst.
        self._due_s = max(self._due_s, now_s) + count / self._rate
        while now_s < self._due_s:
            self._sleep(min(self._due_s - now_s, SLEEP_S_MAX))
            now_s = self._now_s()


def on_bytes_for(job: CleanJob, parent_pid: int) -> Callable[[int], None]:
    def check_parent(_count: int) -> None:
        # A broker that was killed may have a successor, whose own worker writes the
        # same files: ours must not come in between.
        if os.getppid() != parent_pid:
            os._exit(1)

    if job.bytes_per_second_max is None:
        return check_parent

    def checked_sleep(seconds: float) -> None:
        time.sleep(seconds)
        check_parent(0)

    throttle = Throttle(job.bytes_per_second_max, time.monotonic, checked_sleep)

    def check_and_wait(count: int) -> None:
        check_parent(count)
        throttle.on_bytes(count)

    return check_and_wait


def main(parent_pid: int) -> None:
    # Ctrl-C reaches the whole terminal; the broker decides when its worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    disk = OsDisk()
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        job = CleanJob.decode(line)
        for event in run(job, disk, on_bytes_for(job, parent_pid)):
            out.write(encode_event(event))
            out.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
