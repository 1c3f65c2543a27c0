"""The cleaner beside a running broker: what it picks, and what may come in between."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from moldau.broker.log.cleaner.job import CleanEvent, CleanFailed, CleanJob
from moldau.broker.log.cleaner.process import InlineWorker
from moldau.broker.log.cleaner.shell import Cleaner
from moldau.broker.log.disk import OsDisk
from moldau.broker.log.log import Log
from support.compaction import COMPACT, Broker, contents, put


def fill(broker: Broker, topic: str = "t", *, clean: int = 0, dirty: int = 4) -> Log:
    """A log whose first part is clean and whose second is not, in closed segments."""
    log = broker.manager.get_log(topic, 0) or broker.create(topic)
    for count, then_clean in ((clean, True), (dirty, False)):
        for i in range(count):
            put(log, (b"key %d" % (i % 2), b"value %d" % i))
        if count:
            log.roll(broker.now_ms)
            if then_clean:
                assert broker.clean(topic) is not None
    return log


def leftovers(broker: Broker) -> list[str]:
    return [
        path.name
        for folder in broker.paths
        for path in Path(folder).rglob("*")
        if path.name.endswith((".cleaned", ".swap")) and not path.parent.name.endswith("-delete")
    ]


def checkpoint(broker: Broker, folder: int = 0) -> dict[str, int]:
    offsets = broker.manager.cleaner_offsets(broker.manager.dirs[folder])
    return {topic: offset for (topic, _), offset in offsets.items()}


async def run_until_idle(broker: Broker, *, times: int = 1) -> None:
    """Let the cleaner run until it has found nothing to do so many times."""
    idle = asyncio.Event()
    count = 0

    async def sleep(_seconds: float) -> None:
        nonlocal count
        count += 1
        if count == times:
            idle.set()
            await asyncio.Future()
        await asyncio.sleep(0)

    broker.cleaner._sleep = sleep
    broker.cleaner.start()
    await asyncio.wait_for(idle.wait(), 60)
    await broker.cleaner.stop()


def test_what_is_due_is_cleaned_and_nothing_else(broker: Broker) -> None:
    due = fill(broker, "due")
    tidy = fill(broker, "tidy", clean=40, dirty=1)
    broker.create("plain", cleanup_policy=frozenset({"delete"}))
    plain = fill(broker, "plain")
    open_only = broker.create("open")
    put(open_only, (b"k", b"1"), (b"k", b"2"))
    before = contents(tidy), contents(plain), contents(open_only)
    asyncio.run(run_until_idle(broker))
    assert contents(due) == [(2, b"key 0", b"value 2"), (3, b"key 1", b"value 3")]
    assert (contents(tidy), contents(plain), contents(open_only)) == before
    assert checkpoint(broker) == {"due": 4, "tidy": 40}


def test_a_topic_that_becomes_compacted_is_taken_up(broker: Broker) -> None:
    broker.create(cleanup_policy=frozenset({"delete"}))
    log = fill(broker)
    asyncio.run(run_until_idle(broker))
    assert len(contents(log)) == 4
    broker.manager.update_config("t", log.config.replace(cleanup_policy=COMPACT))
    asyncio.run(run_until_idle(broker))
    assert len(contents(log)) == 2


def test_nothing_runs_when_the_cleaner_is_switched_off(tmp_path: Path) -> None:
    broker = Broker(tmp_path, enable="false")
    log = fill(broker)

    async def start_and_stop() -> int:
        broker.cleaner.start()
        tasks = len(broker.cleaner._tasks)
        await broker.cleaner.stop()
        return tasks

    assert asyncio.run(start_and_stop()) == 0
    assert len(contents(log)) == 4
    broker.manager.unlock()


def test_threads_clean_different_logs_and_follow_the_setting(tmp_path: Path) -> None:
    broker = Broker(tmp_path, threads=2)
    logs = [fill(broker, f"t{i}") for i in range(5)]
    asyncio.run(run_until_idle(broker, times=2))
    assert [len(contents(log)) for log in logs] == [2] * 5

    async def resize() -> list[int]:
        counts = []
        broker.cleaner.start()
        for threads in (3, 1):
            broker.cleaner.update_config(broker.config().replace(log_cleaner_threads=threads))
            counts.append(len(broker.cleaner._tasks))
        await broker.cleaner.stop()
        return counts

    assert asyncio.run(resize()) == [3, 1]
    broker.manager.unlock()


def test_settings_reach_the_job(tmp_path: Path) -> None:
    broker = Broker(
        tmp_path,
        threads=2,
        dedupe_buffer_size=8_000_000,
        io_buffer_load_factor=0.5,
        io_buffer_size=1234,
        io_max_bytes_per_second=3000,
    )
    broker.create(delete_retention_ms=77, segment_bytes=5000, segment_index_bytes=64)
    fill(broker)
    jobs: list[CleanJob] = []

    class Spy(InlineWorker):
        def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
            jobs.append(job)
            return super().clean(job)

    broker.cleaner._make_worker = lambda: Spy(OsDisk())
    assert broker.clean() is not None
    (job,) = jobs
    assert (job.map_size_max, job.buffer_size, job.bytes_per_second_max) == (2_000_000, 1234, 1500)
    assert (job.delete_retention_ms, job.segment_bytes, job.segment_index_bytes) == (77, 5000, 64)
    assert (job.first_dirty_offset, job.upper_offset, job.now_ms) == (0, 4, broker.now_ms)
    broker.cleaner.update_config(
        broker.config().replace(log_cleaner_io_max_bytes_per_second=1.7976931348623157e308)
    )
    fill(broker)
    assert broker.clean() is not None
    assert jobs[1].bytes_per_second_max is None
    broker.manager.unlock()


@pytest.mark.parametrize(
    ("config", "waited_ms", "records"),
    [
        pytest.param({"min_compaction_lag_ms": 1000}, 999, 4, id="too young"),
        pytest.param({"min_compaction_lag_ms": 1000}, 1003, 2, id="old enough"),
        pytest.param({"min_cleanable_dirty_ratio": 1.0}, 5000, 4, id="not dirty enough"),
        pytest.param(
            {"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 4000},
            5000,
            2,
            id="overdue all the same",
        ),
    ],
)
def test_compaction_lags(
    broker: Broker, config: dict[str, float], waited_ms: int, records: int
) -> None:
    broker.create(**config)
    log = fill(broker)
    broker.now_ms += waited_ms
    asyncio.run(run_until_idle(broker))
    assert len(contents(log)) == records


def test_the_active_segment_does_not_outlast_the_compaction_lag(broker: Broker) -> None:
    log = broker.create(max_compaction_lag_ms=1000)
    put(log, (b"k", b"1"))
    put(log, (b"k", b"2"), timestamp=broker.now_ms + 1000)
    assert len(log.segments) == 1
    put(log, (b"k", b"3"), timestamp=broker.now_ms + 1001)
    assert len(log.segments) == 2


# What comes in between --------------------------------------------------------------


class InterruptedWorker(InlineWorker):
    """Something else happens on the loop when the worker has the new segments ready."""

    def __init__(self, happening: Callable[[], object]) -> None:
        super().__init__(OsDisk())
        self.happening = happening
        self.killed = 0

    async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
        events = [event async for event in super().clean(job)]
        self.happening()
        for event in events:
            yield event

    async def kill(self) -> None:
        self.killed += 1


def clean_interrupted(broker: Broker, happening: Callable[[], object]) -> None:
    broker.cleaner._make_worker = lambda: InterruptedWorker(happening)
    assert broker.clean() is None
    broker.cleaner._make_worker = lambda: InlineWorker(OsDisk())


def test_the_topic_is_deleted(broker: Broker) -> None:
    fill(broker)
    clean_interrupted(broker, lambda: broker.manager.delete_log("t", 0))
    assert leftovers(broker) == []
    assert checkpoint(broker) == {}


def test_the_topic_is_deleted_and_made_anew(broker: Broker) -> None:
    fill(broker, clean=4)
    assert checkpoint(broker) == {"t": 4}

    def recreate() -> None:
        broker.manager.delete_log("t", 0)
        log = broker.manager.create_log("t", 0, broker.topics["t"], topic_id=uuid.uuid4())
        for i in range(8):
            put(log, (b"early" if i < 4 else b"late", b"new"))
        log.roll(broker.now_ms)

    clean_interrupted(broker, recreate)
    log = broker.log()
    assert len(contents(log)) == 8
    # What was known of the old one says nothing of the new one.
    assert broker.clean() is not None
    assert contents(log) == [(3, b"early", b"new"), (7, b"late", b"new")]


def test_the_log_is_cut_and_grows_again_to_the_same_size(broker: Broker) -> None:
    log = fill(broker, dirty=4)

    def cut() -> None:
        log.truncate_to(2, now_ms=broker.now_ms)
        put(log, (b"key 0", b"VALUE 2"))
        put(log, (b"key 1", b"VALUE 3"))
        log.roll(broker.now_ms)

    clean_interrupted(broker, cut)
    assert [value for _, _, value in contents(log)] == [
        b"value 0",
        b"value 1",
        b"VALUE 2",
        b"VALUE 3",
    ]
    assert leftovers(broker) == []
    assert broker.clean() is not None
    assert [value for _, _, value in contents(log)] == [b"VALUE 2", b"VALUE 3"]


def test_cleaning_goes_back_to_where_the_log_was_cut(broker: Broker) -> None:
    log = fill(broker, clean=4)
    assert checkpoint(broker) == {"t": 4}
    log.truncate_to(3, now_ms=broker.now_ms)
    for i in range(4):
        put(log, (b"k", b"%d" % i))
    log.roll(broker.now_ms)
    assert broker.clean() is not None
    assert contents(log) == [(2, b"key 0", b"value 2"), (6, b"k", b"3")]


def test_retention_takes_segments_away(broker: Broker) -> None:
    log = fill(broker, dirty=4)
    fill(broker, dirty=4)

    def delete() -> None:
        log.advance_log_start_offset(4)
        log.delete_old_segments(broker.now_ms)

    clean_interrupted(broker, delete)
    assert len(contents(log)) == 4
    assert leftovers(broker) == []
    assert broker.clean() is not None
    assert [offset for offset, _, _ in contents(log)] == [6, 7]


def test_a_move_to_another_folder_takes_the_checkpoint_along(tmp_path: Path) -> None:
    broker = Broker(tmp_path, dirs=2)
    fill(broker, clean=4)
    source = next(i for i in (0, 1) if checkpoint(broker, i))
    target = broker.manager.dirs[1 - source]
    clean_interrupted(broker, lambda: broker.manager.create_future_log("t", 0, target))
    # Nor is a new cleaning begun while the log is being copied.
    assert broker.clean() is None
    future = broker.manager.get_future_log("t", 0)
    assert future is not None
    for result in [broker.log().read(0, 10_000, upper_offset=100, min_one_batch=True)]:
        future.append_as_follower(result.buffers[0], now_ms=broker.now_ms)
    broker.manager.replace_by_future_log("t", 0)
    asyncio.run(run_until_idle(broker))
    assert (checkpoint(broker, source), checkpoint(broker, 1 - source)) == ({}, {"t": 4})
    broker.manager.unlock()


def test_the_broker_stops_in_the_middle(broker: Broker) -> None:
    log = fill(broker)
    reached = asyncio.Event()

    class Stuck(InlineWorker):
        async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
            (Path(job.directory) / "00000000000000000000.log.cleaned").write_bytes(b"half")
            reached.set()
            await asyncio.Future()
            yield CleanFailed("never", corrupt=False)

    async def start_and_stop() -> None:
        broker.cleaner._make_worker = lambda: Stuck(OsDisk())
        broker.cleaner.start()
        await reached.wait()
        await broker.cleaner.stop()

    asyncio.run(start_and_stop())
    assert leftovers(broker) == []
    assert len(contents(log)) == 4


# Trouble ----------------------------------------------------------------------------


def test_a_damaged_log_is_reported_once_and_hinders_nobody(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, sound = fill(broker, "damaged", dirty=8), fill(broker, "sound")
    path = Path(damaged.dir) / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with caplog.at_level(logging.ERROR):
        asyncio.run(run_until_idle(broker, times=3))
    assert len(contents(sound)) == 2
    assert len(contents(damaged)) == 8
    errors = [record.getMessage() for record in caplog.records]
    assert len(errors) == 1
    assert "damaged-0" in errors[0]
    assert leftovers(broker) == []


def test_trouble_that_may_pass_is_tried_again(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    log = fill(broker)
    failures = 2

    class FullDisk(InlineWorker):
        async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
            nonlocal failures
            if failures:
                failures -= 1
                yield CleanFailed("no space left", corrupt=False)
                return
            async for event in super().clean(job):
                yield event

    broker.cleaner._make_worker = lambda: FullDisk(OsDisk())
    with caplog.at_level(logging.ERROR):
        asyncio.run(run_until_idle(broker, times=3))
    assert len(contents(log)) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "no space left; cleaning it is tried again"
    ]


def test_a_log_in_trouble_does_not_keep_others_waiting(broker: Broker) -> None:
    filthiest, other = fill(broker, "filthiest"), fill(broker, "other", clean=4, dirty=8)

    class Failing(InlineWorker):
        async def clean(self, job: CleanJob) -> AsyncGenerator[CleanEvent, None]:
            if "filthiest" in job.directory:
                raise OSError("pipe broke")
            async for event in super().clean(job):
                yield event

    broker.cleaner._make_worker = lambda: Failing(OsDisk())
    asyncio.run(run_until_idle(broker))
    assert len(contents(other)) == 2
    assert len(contents(filthiest)) == 4


# Checkpoints ------------------------------------------------------------------------


def test_cleaning_goes_on_where_it_was_after_a_restart(broker: Broker) -> None:
    fill(broker, clean=4)
    broker.restart()
    assert broker.clean() is not None
    assert checkpoint(broker) == {"t": 8}
    broker.crash()
    assert broker.clean() is None


def test_a_topic_that_is_gone_leaves_the_checkpoint(broker: Broker) -> None:
    fill(broker, "kept")
    fill(broker, "gone")
    asyncio.run(run_until_idle(broker))
    assert checkpoint(broker) == {"kept": 4, "gone": 4}
    broker.manager.delete_log("gone", 0)
    asyncio.run(run_until_idle(broker))
    assert checkpoint(broker) == {"kept": 4}
    broker.manager.delete_log("kept", 0)
    asyncio.run(run_until_idle(broker))
    assert checkpoint(broker) == {}


def test_cleaning_unknown_or_clean_partitions_does_nothing(broker: Broker) -> None:
    assert broker.clean("unknown") is None
    broker.create("empty")
    assert broker.clean("empty") is None
    assert isinstance(broker.cleaner, Cleaner)
