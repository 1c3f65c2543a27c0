"""Folders, start and stop, deletion, upkeep and moves between folders."""

from __future__ import annotations

import asyncio
import os
import struct
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.broker.config import LogConfig
from moldau.broker.log.background import Done, InlineBackground, ThreadBackground
from moldau.broker.log.context import LogContext, LogDirState
from moldau.broker.log.disk import OsDisk
from moldau.broker.log.flusher import FLUSHED_AT_ONCE
from moldau.broker.log.loader import open_log
from moldau.broker.log.log_dirs import WrongLogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.log.moves import copy_step
from moldau.broker.log.offset_index import OffsetIndex
from moldau.wire.errors import ApiError
from support.faulty_disk import FaultyDisk
from support.log_folder import NOW_MS, append, batch_of, read_all, values_of


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


CONFIG = LogConfig(segment_bytes=1000, file_delete_delay_ms=60_000)


class Broker:
    """A log manager that can be stopped, killed and started again."""

    def __init__(self, *paths: Path) -> None:
        self.paths = [str(path) for path in paths]
        self.clock = Clock()
        self.disk = FaultyDisk()
        self.configs: dict[str, LogConfig] = {}
        self.manager = self.start()

    def start(self) -> LogManager:
        self.opened().load(lambda topic: self.configs.get(topic, CONFIG))
        return self.manager

    def opened(self) -> LogManager:
        """Its folders are, its logs are not loaded yet."""
        self.manager = LogManager(
            self.paths,
            disk=self.disk,
            background=InlineBackground(),
            now_ms=self.clock,
            random_bytes=os.urandom,
        )
        self.manager.open_dirs(cluster_id="cluster", node_id=1)
        return self.manager

    def kill(self) -> None:
        self.manager.unlock()

    def stop(self, **kwargs: int) -> None:
        self.manager.close(**kwargs)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path / "data")


@pytest.fixture
def wide(tmp_path: Path) -> Broker:
    return Broker(tmp_path / "one", tmp_path / "two")


class TestStartAndStop:
    def test_a_clean_stop_is_remembered_and_used_once(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 0, CONFIG, topic_id=uuid.UUID(int=77))
        for _ in range(20):
            append(log, b"x" * 100)
        broker.stop(broker_epoch=9)
        mark = Path(broker.paths[0]) / ".kafka_cleanshutdown"
        assert mark.read_text() == '{"version":0,"brokerEpoch":9}'
        manager = broker.start()
        assert manager.last_broker_epoch == 9
        assert not mark.exists()
        found = manager.get_log("t", 0)
        assert found is not None
        assert (found.log_end_offset, found.high_watermark, found.recovery_point) == (20, 20, 20)
        assert found.topic_id == uuid.UUID(int=77)
        assert manager.dirs[0].clean_shutdown
        broker.kill()
        manager = broker.start()
        assert not manager.dirs[0].clean_shutdown
        assert manager.last_broker_epoch == -1

    def test_checkpoints_survive_a_kill(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 3, CONFIG)
        for _ in range(20):
            append(log, b"x" * 100)
        log.flush()
        append(log, b"unflushed")
        log.set_high_watermark(12)
        log.advance_log_start_offset(5)
        broker.manager.checkpoint_recovery_points()
        broker.manager.checkpoint_log_starts()
        broker.manager.checkpoint_high_watermarks()
        folder = Path(broker.paths[0])
        # All is flushed, but the active segment's indexes are to be checked after a crash.
        assert (folder / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 3 19\n"
        assert (folder / "log-start-offset-checkpoint").read_text() == "0\n1\nt 3 5\n"
        assert (folder / "replication-offset-checkpoint").read_text() == "0\n1\nt 3 12\n"
        broker.kill()
        found = broker.start().get_log("t", 3)
        assert found is not None
        assert (found.log_start_offset, found.high_watermark, found.log_end_offset) == (5, 12, 21)
        assert found.recovery_point == 19

    def test_the_log_start_at_a_segment_needs_no_checkpoint(self, broker: Broker) -> None:
        append(broker.manager.create_log("t", 0, CONFIG), b"x")
        broker.manager.checkpoint_log_starts()
        text = (Path(broker.paths[0]) / "log-start-offset-checkpoint").read_text()
        assert text == "0\n0\n"

    def test_damaged_checkpoints_cost_time_not_data(self, broker: Broker) -> None:
        append(broker.manager.create_log("t", 0, CONFIG), b"x")
        broker.stop()
        for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
            (Path(broker.paths[0]) / name).write_bytes(b"\xff\xfe nonsense")
        found = broker.start().get_log("t", 0)
        assert found is not None
        assert found.log_end_offset == 1

    def test_a_folder_in_use_is_refused(self, broker: Broker) -> None:
        run = os.fork()
        if run == 0:
            try:
                broker.manager.dirs[0]._lock = None
                LogManager(
                    broker.paths,
                    disk=OsDisk(),
                    background=InlineBackground(),
                    now_ms=broker.clock,
                    random_bytes=os.urandom,
                ).open_dirs()
            except BlockingIOError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]) == 7

    def test_another_owner_is_refused(self, broker: Broker) -> None:
        broker.stop()
        for cluster_id, node_id, message in (("other", 1, "cluster"), ("cluster", 2, "node")):
            manager = LogManager(
                broker.paths, disk=OsDisk(), background=InlineBackground(),
                now_ms=broker.clock, random_bytes=os.urandom,
            )  # fmt: skip
            with pytest.raises(WrongLogDir, match=f"of {message}"):
                manager.open_dirs(cluster_id=cluster_id, node_id=node_id)

    def test_directory_ids_stay(self, broker: Broker) -> None:
        first = broker.manager.dirs[0].directory_id
        assert first is not None
        broker.kill()
        manager = broker.start()
        assert manager.dirs[0].directory_id == first
        assert manager.dir_by_id(first) is manager.dirs[0]

    def test_foreign_directories_are_left_alone(self, broker: Broker) -> None:
        data = Path(broker.paths[0])
        broker.stop()
        for name in ("lost+found", "__cluster_metadata-0", "notes"):
            (data / name).mkdir()
        (data / "file").write_text("x")
        manager = broker.start()
        assert len(manager) == 0
        assert {"lost+found", "__cluster_metadata-0", "notes", "file"} <= set(os.listdir(data))


class TestDeletion:
    def test_the_directory_goes_after_the_delay(self, broker: Broker) -> None:
        manager = broker.manager
        log = manager.create_log("t", 0, CONFIG)
        append(log, b"x")
        view = log.read(0, 100, upper_offset=1, min_one_batch=True).buffers[0]
        manager.delete_log("t", 0)
        assert manager.get_log("t", 0) is None
        (name,) = [n for n in os.listdir(broker.paths[0]) if n.startswith("t-0")]
        assert name.endswith("-delete")
        # The name is free at once.
        again = manager.create_log("t", 0, CONFIG)
        assert again.log_end_offset == 0
        broker.clock.now_ms += 59_999
        manager.removals.run_due()
        assert name in os.listdir(broker.paths[0])
        broker.clock.now_ms += 1
        manager.removals.run_due()
        assert name not in os.listdir(broker.paths[0])
        assert len(bytes(view)) == len(view)

    def test_deletion_goes_on_after_a_restart(self, broker: Broker) -> None:
        broker.manager.create_log("t", 0, CONFIG)
        broker.manager.delete_log("t", 0)
        broker.kill()
        manager = broker.start()
        assert manager.get_log("t", 0) is None
        broker.clock.now_ms += 60_000
        manager.removals.run_due()
        assert not [n for n in os.listdir(broker.paths[0]) if n.startswith("t-0")]

    def test_strays_are_kept_but_not_served(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 0, CONFIG)
        append(log, b"x")
        broker.manager.set_stray(log)
        broker.kill()
        manager = broker.start()
        assert manager.get_log("t", 0) is None
        (name,) = [n for n in os.listdir(broker.paths[0]) if n.startswith("t-0")]
        assert name.endswith("-stray")


class TestUpkeep:
    def test_retention_reaches_every_log(self, broker: Broker) -> None:
        logs = [
            broker.manager.create_log("t", number, LogConfig(segment_bytes=1000, retention_ms=100))
            for number in range(3)
        ]
        for log in logs:
            for _ in range(10):
                append(log, b"x" * 200)
        assert broker.manager.delete_old_segments() == 0
        broker.clock.now_ms += 101
        assert broker.manager.delete_old_segments() > 3
        assert [log.log_start_offset for log in logs] == [10, 10, 10]

    def test_flush_ms(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 0, LogConfig(flush_ms=500))
        other = broker.manager.create_log("u", 0, CONFIG)
        assert broker.manager.flush_ms_min == 500
        append(log, b"x")
        append(other, b"x")
        broker.clock.now_ms += 499
        broker.manager.flush_overdue()
        assert log.recovery_point == 0
        broker.clock.now_ms += 1
        broker.manager.flush_overdue()
        assert (log.recovery_point, other.recovery_point) == (1, 0)
        broker.manager.update_config("t", CONFIG)
        assert broker.manager.flush_ms_min == 2**63 - 1

    def test_idle_producers_are_forgotten(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 0, CONFIG)
        append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=0)
        broker.clock.now_ms += 86_400_000
        broker.manager.expire_producers()
        assert log.producers.entries == {}

    def test_an_unchanged_checkpoint_is_not_written_again(self, broker: Broker) -> None:
        append(broker.manager.create_log("t", 0, CONFIG), b"x")
        broker.manager.checkpoint_high_watermarks()
        broker.disk.fail("write", "replication-offset-checkpoint")
        broker.manager.checkpoint_high_watermarks()
        assert broker.manager.offline_dirs == []


class TestFlush:
    def test_flush_messages_asks_for_a_flush(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 0, LogConfig(flush_messages=3))
        due = [
            log.append_as_leader(batch_of(b"x"), leader_epoch=0, now_ms=NOW_MS).flush_due
            for _ in range(3)
        ]
        assert due == [False, False, True]
        log.flush()
        assert log.recovery_point == 3

    def test_a_repeated_batch_waits_for_the_flush_of_the_first(self, broker: Broker) -> None:
        log = broker.manager.create_log("t", 0, LogConfig(flush_messages=1))
        fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}

        def send() -> tuple[bool, bool]:
            batch = batch_of(b"x", b"y", **fields)
            info = log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
            return info.duplicate, info.flush_due

        assert [send(), send()] == [(False, True), (True, True)]
        log.flush()
        assert send() == (True, False)

    def test_the_recovery_point_waits_for_the_fsync(self, tmp_path: Path) -> None:
        started: list[tuple[Callable[[], object], Done]] = []

        class Held(InlineBackground):
            def submit(self, work: Callable[[], object], done: Done) -> None:
                started.append((work, done))

        disk = FaultyDisk()
        log = open_log(
            LogContext(disk=disk, background=Held()), LogDirState(str(tmp_path)),
            str(tmp_path / "t-0"), "t", 0, LogConfig(), now_ms=NOW_MS,
        )  # fmt: skip

        async def scenario() -> None:
            append(log, b"a")
            first = asyncio.ensure_future(log.flush_async())
            await asyncio.sleep(0)
            append(log, b"b")
            append(log, b"c")
            rest = [asyncio.ensure_future(log.flush_async()) for _ in range(5)]
            await asyncio.sleep(0)
            assert len(started) == 1
            assert log.recovery_point == 0
            work, done = started.pop()
            work()
            done(None)
            await first
            assert log.recovery_point == 1
            # The five that came meanwhile share one fsync.
            ((work, done),) = started
            assert not any(task.done() for task in rest)
            work()
            done(None)
            await asyncio.gather(*rest)
            assert log.recovery_point == 3
            # What is cut away while a flush runs does not become durable by it.
            append(log, b"d")
            lost = asyncio.ensure_future(log.flush_async())
            await asyncio.sleep(0)
            log.truncate_to(2, now_ms=NOW_MS)
            work, done = started.pop()
            work()
            done(None)
            with pytest.raises(ApiError):
                await lost
            assert log.recovery_point == 2

        asyncio.run(scenario())
        log.close(clean=False)

    def test_deleting_a_log_during_its_flush_is_no_failure(self, tmp_path: Path) -> None:
        started: list[tuple[Callable[[], object], Done]] = []

        class Held(InlineBackground):
            def submit(self, work: Callable[[], object], done: Done) -> None:
                started.append((work, done))

        manager = LogManager(
            [str(tmp_path)],
            disk=OsDisk(),
            background=Held(),
            now_ms=lambda: NOW_MS,
            random_bytes=os.urandom,
        )
        manager.open_dirs()
        log = manager.create_log("t", 0, LogConfig(file_delete_delay_ms=0))
        outcomes: list[BaseException | None] = []
        append(log, b"a")
        log.flusher.request(1, NOW_MS, outcomes.append)
        append(log, b"b")
        log.flusher.request(2, NOW_MS, outcomes.append)
        manager.delete_log("t", 0)
        manager.removals.run_due()
        remove, _ = started.pop()
        remove()
        work, done = started.pop(0)
        work()
        done(None)
        assert manager.offline_dirs == []
        assert [isinstance(outcome, ApiError) for outcome in outcomes] == [True, True]
        manager.unlock()

    def test_threads_do_the_waiting(self, tmp_path: Path) -> None:
        async def scenario() -> int:
            background = ThreadBackground(asyncio.get_running_loop())
            log = open_log(
                LogContext(background=background), LogDirState(str(tmp_path)),
                str(tmp_path / "t-0"), "t", 0, LogConfig(), now_ms=NOW_MS,
            )  # fmt: skip
            append(log, b"a")
            await asyncio.gather(*(log.flush_async() for _ in range(3)))
            log.close()
            background.close()
            return log.recovery_point

        assert asyncio.run(scenario()) == 1

    def test_a_stop_syncs_every_file_it_wrote(self, broker: Broker) -> None:
        append(broker.manager.create_log("t", 0, CONFIG), b"x")
        broker.disk.synced.clear()
        broker.stop()
        assert f"{0:020d}.log" in broker.disk.synced


class TestMoves:
    def test_new_logs_go_to_the_emptiest_folder(self, wide: Broker) -> None:
        for number in range(6):
            wide.manager.create_log("t", number, CONFIG)
        assert [len(os.listdir(path)) for path in map(Path, wide.paths)] == [5, 5]
        chosen = wide.manager.dirs[1]
        log = wide.manager.create_log("u", 0, CONFIG, directory=chosen)
        assert log.dir_state is chosen

    def test_a_partition_moves_while_it_is_written(self, wide: Broker) -> None:
        manager = wide.manager
        config = wide.configs["t"] = LogConfig(segment_bytes=200_000)
        log = manager.create_log("t", 0, config, directory=manager.dirs[0])
        for number in range(2000):
            append(log, b"%04d" % number * 200, leader_epoch=number // 500)
        future = manager.create_future_log("t", 0, manager.dirs[1])
        infos = {info.path: info.replicas for info in manager.describe()}
        (replica,) = infos[wide.paths[1]]
        assert (replica.is_future, replica.offset_lag) == (True, 2000)

        expected = values_of(read_all(log, max_bytes=100_000))[:1999]
        copied = copy_step(log, future, now_ms=NOW_MS)
        assert not copied  # a step is bounded, so that clients have their turn
        append(log, b"late", leader_epoch=9)
        while not copy_step(log, future, now_ms=NOW_MS):
            pass
        # Cut and gone on otherwise, and more that came after the last step.
        log.truncate_to(1999, now_ms=NOW_MS)
        for value in (b"instead", b"more"):
            append(log, value, leader_epoch=10)
        expected += [(1999, b"instead"), (2000, b"more")]
        manager.replace_by_future_log("t", 0)
        moved = manager.get_log("t", 0)
        assert moved is not None
        assert moved.dir == f"{wide.paths[1]}/t-0"
        assert not moved.is_future
        assert moved.high_watermark == log.high_watermark
        assert values_of(read_all(moved, max_bytes=100_000)) == expected
        assert moved.leader_epochs.entries() == log.leader_epochs.entries()
        assert moved.log_end_offset == log.log_end_offset
        assert manager.get_future_log("t", 0) is None
        (old,) = [n for n in os.listdir(wide.paths[0]) if n.startswith("t-0")]
        assert old.endswith("-delete")
        assert append(moved, b"on") == log.log_end_offset
        end = moved.log_end_offset
        wide.kill()
        found = wide.start().get_log("t", 0)
        assert found is not None
        assert found.log_end_offset == end

    def test_a_crash_before_the_swap_keeps_both(self, wide: Broker) -> None:
        manager = wide.manager
        log = manager.create_log("t", 0, CONFIG, directory=manager.dirs[0])
        append(log, b"x")
        future = manager.create_future_log("t", 0, manager.dirs[1])
        assert copy_step(log, future, now_ms=NOW_MS)
        wide.kill()
        manager = wide.start()
        current, other = manager.get_log("t", 0), manager.get_future_log("t", 0)
        assert current is not None
        assert other is not None
        assert (current.dir_state, other.dir_state) == (manager.dirs[0], manager.dirs[1])
        # Nobody knows whether it still is a copy, so it is made again.
        assert (current.log_end_offset, other.log_end_offset) == (1, 0)

    def test_a_crash_in_the_swap_completes_it(self, wide: Broker) -> None:
        manager = wide.manager
        log = manager.create_log("t", 0, CONFIG, directory=manager.dirs[0])
        append(log, b"x")
        future = manager.create_future_log("t", 0, manager.dirs[1])
        copy_step(log, future, now_ms=NOW_MS)
        manager._registry.set_aside(log, "-delete")
        wide.kill()
        found = wide.start().get_log("t", 0)
        assert found is not None
        assert values_of(read_all(found)) == [(0, b"x")]
        assert found.dir == f"{wide.paths[1]}/t-0"

    def test_deleting_a_moving_partition_deletes_both(self, wide: Broker) -> None:
        manager = wide.manager
        manager.create_log("t", 0, CONFIG, directory=manager.dirs[0])
        manager.create_future_log("t", 0, manager.dirs[1])
        manager.delete_log("t", 0)
        names = [n for path in wide.paths for n in os.listdir(path) if n.startswith("t-0")]
        assert len(names) == 2
        assert all(name.endswith("-delete") for name in names)


def test_two_thousand_partitions_load_quickly(broker: Broker) -> None:
    """Bounded work per log: no mapping, no descriptor, a handful of system calls."""
    for number in range(2000):
        append(broker.manager.create_log("t", number, CONFIG), b"x")
    broker.stop()
    descriptors = len(os.listdir("/proc/self/fd"))
    manager = broker.start()
    assert len(manager) == 2000
    assert all(log.log_end_offset == 1 for log in manager.logs())
    assert len(os.listdir("/proc/self/fd")) - descriptors < 20


def test_a_stop_with_many_unsynced_logs_syncs_the_file_system_once(
    broker: Broker,
) -> None:
    for index in range(40):
        append(broker.manager.create_log("t", index, CONFIG), b"x")
    broker.disk.synced.clear()
    broker.stop()
    assert broker.disk.synced == broker.paths
    assert broker.start().live_dirs[0].clean_shutdown
    logs = list(broker.manager.logs())
    assert [(log.log_end_offset, log.recovery_point) for log in logs] == [(1, 1)] * 40


def test_a_stop_that_cannot_sync_leaves_no_mark(broker: Broker) -> None:
    for index in range(40):
        append(broker.manager.create_log("t", index, CONFIG), b"x")
    broker.disk.fail("sync", broker.paths[0])
    broker.stop()
    broker.disk.heal()
    assert not broker.start().live_dirs[0].clean_shutdown
    assert all(values_of(read_all(log)) == [(0, b"x")] for log in broker.manager.logs())


def test_everything_is_flushed_together_before_a_stop(tmp_path: Path) -> None:
    at_once = Counter[str]()

    class Threads(InlineBackground):
        """Ends work only when the loop gets to it, so that much is under way."""

        def submit(self, work: Callable[[], object], done: Done) -> None:
            at_once["now"] += 1
            at_once["most"] = max(at_once["most"], at_once["now"])

            def end() -> None:
                at_once["now"] -= 1
                super(Threads, self).submit(work, done)

            asyncio.get_running_loop().call_soon(end)

    async def run() -> None:
        manager = LogManager(
            [str(tmp_path / "logs")],
            disk=OsDisk(),
            background=Threads(),
            now_ms=lambda: NOW_MS,
            random_bytes=os.urandom,
        )
        manager.closing.synced_singly_max = 100
        manager.open_dirs(cluster_id="c", node_id=1)
        manager.load(lambda topic: CONFIG)
        logs = [manager.create_log("t", index, CONFIG) for index in range(100)]
        for log in logs:
            append(log, b"x")
        await manager.flush_all()
        assert [log.recovery_point for log in logs] == [1] * 100
        assert 1 < at_once["most"] <= FLUSHED_AT_ONCE
        manager.close()

    asyncio.run(run())


def test_loading_may_be_left_off_after_each_log(broker: Broker) -> None:
    """A controller in the same process must not wait for thousands of logs."""
    for number in range(3):
        append(broker.manager.create_log("t", number, CONFIG), b"x")
    broker.stop()
    manager = broker.opened()
    assert [len(manager) for _ in manager.loading(lambda topic: CONFIG)] == [1, 2, 3]


def test_a_preallocated_index_ends_where_its_zeros_begin(broker: Broker) -> None:
    """As a killed Kafka leaves it below the recovery point; for any number of entries."""
    log = broker.manager.create_log("t", 0, CONFIG)
    path = f"{log.dir}/00000000000000000000.index"
    for count in (0, 1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 1000):
        entries = b"".join(struct.pack(">ii", n + 1, 100 * n + 1) for n in range(count))
        Path(path).write_bytes(entries.ljust(8 * 1001, b"\0"))
        index = OffsetIndex(broker.disk, path, 0, size_max=8 * 1001, file_size=8 * 1001)
        index.load()
        assert index.entry_count == count
