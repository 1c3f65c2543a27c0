"""The worker process: jobs over pipes, its rate, its end, and crashes at every step."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.log.cleaner.filtering import LastBatch
from moldau.broker.log.cleaner.job import (
    CleanDone,
    CleanedSegment,
    CleanEvent,
    CleanFailed,
    CleanJob,
    decode_event,
    encode_event,
)
from moldau.broker.log.cleaner.machine.schedule import SourceSegment
from moldau.broker.log.cleaner.process import WORKER_MODULE, InlineWorker, SubprocessWorker
from moldau.broker.log.cleaner.worker import Throttle
from moldau.broker.log.disk import OsDisk
from support.compaction import Broker, contents, put


def job_for(directory: str, **fields: Any) -> CleanJob:
    return CleanJob(
        **{
            "directory": directory,
            "first_dirty_offset": 0,
            "upper_offset": 10,
            "now_ms": 5,
            "delete_retention_ms": 6,
            "segment_bytes": 7,
            "segment_index_bytes": 1024,
            "index_interval_bytes": 9,
            "segments": (SourceSegment(0, 10, 100, 8, 12),),
            "txn_index_offsets": (0,),
            "producers": {7: LastBatch(3, 1), 8: LastBatch(-1, 2)},
            "map_size_max": 10_000,
            "buffer_size": 11,
            "bytes_per_second_max": None,
            **fields,
        }
    )


def test_a_job_travels_as_one_line() -> None:
    job = job_for("/data/line\nbreak and ü-0", bytes_per_second_max=1.5)
    line = job.encode()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert CleanJob.decode(line) == job


@pytest.mark.parametrize(
    "event",
    [
        CleanedSegment(0, (0, 10, 20), 100, 8, 12, 34),
        CleanDone(30, 5, 100, 50, 1),
        CleanFailed("why\nnot", corrupt=True),
    ],
)
def test_events_travel_as_one_line(event: CleanEvent) -> None:
    line = encode_event(event)
    assert line.count(b"\n") == 1
    assert decode_event(line) == event


def test_the_throttle_keeps_the_rate() -> None:
    now_s = 100.0
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now_s
        waits.append(seconds)
        now_s += seconds

    throttle = Throttle(1000, lambda: now_s, sleep)
    for _ in range(10):
        throttle.on_bytes(400)
    assert now_s == pytest.approx(104.0)
    now_s += 50
    throttle.on_bytes(1000)
    assert now_s == pytest.approx(155.0), "idle time must not be saved up for a burst"
    # Long waits are cut up, so that the end of the broker is noticed.
    assert max(waits) <= 0.5


def fill(broker: Broker, topic: str = "t") -> None:
    log = broker.create(topic, segment_bytes=400)
    for i in range(20):
        put(log, (b"key %d" % (i % 3), b"value %d" % i), (b"other %d" % (i % 7), bytes(20)))
    log.roll(broker.now_ms)


def test_jobs_run_in_a_process_that_does_not_outlive_them(broker: Broker) -> None:
    fill(broker, "first")
    fill(broker, "second")
    workers: list[SubprocessWorker] = []
    pids: list[int | None] = []
    niceness: list[int] = []

    def make_worker() -> SubprocessWorker:
        workers.append(SubprocessWorker())
        return workers[-1]

    async def run() -> None:
        idle = asyncio.Event()

        async def sleep(_seconds: float) -> None:
            idle.set()
            await asyncio.Future()

        broker.cleaner._make_worker = make_worker
        broker.cleaner._sleep = sleep
        close = SubprocessWorker.close

        async def observed_close(self: SubprocessWorker) -> None:
            pids.append(self.pid)
            if self.pid is not None:
                niceness.append(os.getpriority(os.PRIO_PROCESS, self.pid))
            await close(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SubprocessWorker, "close", observed_close)
            broker.cleaner.start()
            await asyncio.wait_for(idle.wait(), 60)
        await broker.cleaner.stop()

    asyncio.run(run())
    for topic in ("first", "second"):
        keys = [key for _, key, _ in contents(broker.log(topic))]
        assert sorted(keys) == sorted(set(keys))
        assert len(keys) == 10
    # One process did both jobs, out of the broker's way, and is gone.
    assert len(pids) == 1
    assert pids[0] is not None
    assert niceness == [min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)]
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert workers[0].pid is None


def test_a_worker_that_dies_is_replaced(broker: Broker) -> None:
    fill(broker)

    async def run() -> list[CleanEvent]:
        worker = SubprocessWorker()
        missing = job_for(str(Path(broker.log().dir) / "missing"), txn_index_offsets=())
        first = [event async for event in worker.clean(missing)]
        await worker.kill()
        second = [event async for event in worker.clean(missing)]
        await worker.close()
        return [*first, *second]

    events = asyncio.run(run())
    assert len(events) == 2
    for event in events:
        assert isinstance(event, CleanFailed)
        assert "missing" in event.reason
        assert not event.corrupt


def test_a_worker_that_is_killed_at_work_is_an_error_not_a_hang(tmp_path: Path) -> None:
    async def run() -> list[CleanEvent]:
        worker = SubprocessWorker()
        job = job_for(str(tmp_path / "missing"), txn_index_offsets=())
        events = [event async for event in worker.clean(job)]
        assert worker.pid is not None
        # The next job is slow: one byte per second.
        (tmp_path / "00000000000000000000.log").write_bytes(bytes(100))
        slow = job_for(str(tmp_path), txn_index_offsets=(), bytes_per_second_max=1.0)
        stuck = worker.clean(slow)
        waiting = asyncio.ensure_future(anext(stuck))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        os.kill(worker.pid, 9)
        events.append(await asyncio.wait_for(waiting, 30))
        await worker.close()
        return events

    events = asyncio.run(run())
    assert [type(event) for event in events] == [CleanFailed, CleanFailed]
    assert "the worker ended with -9" in str(events[1])


def test_a_worker_without_its_broker_writes_nothing(broker: Broker) -> None:
    fill(broker)
    log = broker.log()
    jobs: list[CleanJob] = []

    class Spy(InlineWorker):
        def clean(self, job: CleanJob) -> Any:
            jobs.append(job)
            return super().clean(job._replace(segments=()))

    broker.cleaner._make_worker = lambda: Spy(OsDisk())
    broker.clean()
    result = subprocess.run(
        [sys.executable, "-m", WORKER_MODULE, "1"],  # a parent that is not its parent
        input=jobs[0].encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout == b""
    assert not [p for p in Path(log.dir).iterdir() if p.name.endswith(".cleaned")]


# Crashes ----------------------------------------------------------------------------


class Crashed(BaseException):
    """Stands for the end of the process: nothing may catch it and tidy up."""


class CrashingDisk(OsDisk):
    """Stops at the n-th operation that changes the directory."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def _step(self) -> None:
        if self.left == 0:
            raise Crashed
        self.left -= 1

    def rename(self, source: str, target: str, *, sync: bool = False) -> None:
        self._step()
        super().rename(source, target, sync=sync)

    def remove(self, path: str, *, missing_ok: bool = False) -> None:
        self._step()
        super().remove(path, missing_ok=missing_ok)

    def sync_dir(self, path: str) -> None:
        self._step()
        super().sync_dir(path)

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self._step()
        super().set_mtime_ms(path, mtime_ms)


def test_a_crash_at_any_step_loses_no_newest_record(tmp_path: Path) -> None:
    newest: dict[bytes | None, tuple[int, bytes | None]] = {}
    uncleaned: set[Any] = set()
    cleaned_once = False
    for step in range(10_000):
        broker = Broker(tmp_path / str(step))
        fill(broker)
        end = broker.log().log_end_offset
        rows = contents(broker.log())
        uncleaned = set(rows)
        newest = {key: (offset, value) for offset, key, value in rows}
        crashed = _clean_until(broker, step)
        broker.crash()
        log = broker.log()
        after = contents(log)
        assert log.log_end_offset == end
        assert {key: (offset, value) for offset, key, value in after} == newest
        assert set(after) <= uncleaned
        assert [offset for offset, _, _ in after] == sorted({offset for offset, _, _ in after})
        names = [path.name for path in Path(log.dir).iterdir()]
        assert not [n for n in names if n.endswith((".cleaned", ".swap", ".deleted"))]
        # And cleaning can simply go on.
        broker.clean()
        assert len(contents(log)) == len(newest)
        broker.manager.unlock()
        if not crashed:
            cleaned_once = True
            break
    assert cleaned_once
    assert step > 20


def _clean_until(broker: Broker, step: int) -> bool:
    disk = CrashingDisk(step)
    log = broker.log()
    log.context.disk = disk
    for segment in log.segments:
        segment._disk = disk
    broker.cleaner._make_worker = lambda: InlineWorker(disk)
    try:
        broker.clean()
    except Crashed:
        return True
    return False
