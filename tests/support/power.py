"""A node's log folders on a disk that loses its power."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from moldau.broker.config import LogConfig
from moldau.broker.log.background import Done, InlineBackground
from moldau.broker.log.context import AppendOrigin
from moldau.broker.log.log import Log
from moldau.broker.log.manager import LogManager
from moldau.sim.disk import Platter
from moldau.wire.records import encode_end_txn_marker
from support.log_folder import NOW_MS, append

TOPIC_ID = UUID(int=7)


class LoseUnsynced(Random):
    """The fate of a power failure: names stay as they are, unsynced bytes are all lost."""

    def random(self) -> float:
        return 0.3

    def randrange(self, start: int, *args: Any, **kwargs: Any) -> int:
        return start - 1


class KeepChanges(LoseUnsynced):
    """The fate that keeps only the first changes of names and sizes that were not synced."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def randrange(self, start: int, *args: Any, **kwargs: Any) -> int:
        return min(self._count, start - 1)


class UndoNames(KeepChanges):
    """The fate that undoes every change of names that was not synced."""

    def __init__(self) -> None:
        super().__init__(0)


class Machine:
    """Logs over a simulated disk, whose process can stop in every way."""

    def __init__(
        self, *, dirs: int = 1, fate: Random | None = None, background: Any = None, **config: Any
    ) -> None:
        self.now_ms = NOW_MS
        self.platter = Platter(lambda: self.now_ms, fate or LoseUnsynced())
        self.paths = [f"/data{number}" for number in range(1, dirs + 1)]
        self.config = LogConfig(
            **{"segment_bytes": 1000, "file_delete_delay_ms": 0, "index_interval_bytes": 0} | config
        )
        self._background = background or InlineBackground()
        self.start()

    def start(self) -> None:
        self.manager = LogManager(
            self.paths,
            disk=self.platter.start(),
            background=self._background,
            now_ms=lambda: self.now_ms,
            random_bytes=lambda count: b"r" * count,
        )
        self.manager.open_dirs(cluster_id="c", node_id=1)
        self.manager.load(lambda _topic: self.config)

    def create(self, topic: str = "t", topic_id: UUID = TOPIC_ID) -> Log:
        return self.manager.create_log(topic, 0, self.config, topic_id=topic_id)

    def log(self, topic: str = "t") -> Log:
        log = self.manager.get_log(topic, 0)
        assert log is not None
        return log

    def kill(self) -> None:
        self.platter.stop()
        self.start()

    def lose_power(self) -> None:
        self.platter.lose_power()
        self.start()

    def stop(self, *, as_one: bool = False) -> None:
        """A clean stop that syncs each file, or the whole disk `as_one`."""
        self.manager.closing.synced_singly_max = 0 if as_one else 1_000
        self.manager.close()
        self.platter.stop()


class Slow:
    """Background work is done when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], object], Done]] = []

    def submit(self, work: Callable[[], object], done: Done) -> None:
        self.jobs.append((work, done))

    def run_next(self) -> None:
        work, done = self.jobs.pop(0)
        work()
        done(None)


def end_transaction(log: Log, producer_id: int, *, committed: bool) -> None:
    marker = encode_end_txn_marker(
        producer_id=producer_id,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )
    log.append_as_leader(
        bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.set_high_watermark(log.log_end_offset)


def abort_one(log: Log) -> None:
    """One aborted transaction at the log's end."""
    append(log, b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 5, committed=False)
